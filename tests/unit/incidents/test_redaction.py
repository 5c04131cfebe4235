"""Taking texts out: two people ask, every digest stays, and no older copy brings them back."""

from __future__ import annotations

import json

import pytest

from robo_eval.core.errors import InputError
from robo_eval_incidents import open_log
from robo_eval_incidents.kinds import Correction, Nil
from robo_eval_incidents.lists import Filter, list_incidents
from robo_eval_incidents.log import DATABASE
from robo_eval_incidents.merge import export_records, merge
from robo_eval_incidents.paper import printed
from robo_eval_incidents.record import GONE
from robo_eval_incidents.state import RefusedError
from robo_eval_incidents.tables import export
from robo_eval_incidents.tables_read import import_reports
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.words import Via

NAME = "Zarathustra Quux"


def ask(log, name, field="description", by="R. Example", reason="names a person"):
    return log.redact(name, field, reason, by=by, via=Via.CLI)


@pytest.fixture
def named(log, report, say):
    """A log in which a report and its correction name a person."""
    about = say(log, report(description=f"{NAME} was near. " * 9)).record_id
    fields = {"description": f"{NAME} stood by. " * 9}
    say(log, Correction(fields=fields, reason="plainer"), incident_id=about)
    return log


def bytes_of(log):
    """All that the files of a log hold."""
    folder = log.database.path.parent
    return b"".join(file.read_bytes() for file in sorted(folder.glob(f"{DATABASE}*")))


def take_out(log, *names):
    for name, field in names or (("cell-1/2", "description"), ("cell-1/3", "fields.description")):
        assert ask(log, name, field)[1] is False
        assert ask(log, name, field, by="S. Example")[1] is True


def test_it_takes_two_people(named):
    _, is_out = ask(named, "cell-1/3", "fields.description")
    assert not is_out
    assert named.incident("cell-1/2").report.description == (f"{NAME} stood by. " * 9).strip()
    with pytest.raises(RefusedError, match="a second person has to ask for the same"):
        ask(named, "cell-1/3", "fields.description", by="r.  example")
    _, is_out = ask(named, "cell-1/3", "fields.description", by="S. Example")
    assert is_out
    assert named.incident("cell-1/2").report.description == GONE
    with pytest.raises(RefusedError, match="was taken out already"):
        ask(named, "cell-1/3", "fields.description", by="T. Example")


@pytest.mark.parametrize(
    ("name", "field", "said"),
    [
        ("cell-1/2", "robot", "has no free text 'robot'; it has description"),
        ("cell-1/3", "description", "it has fields.description, reason"),
        ("cell-1/9", "description", "no record 'cell-1/9'"),
    ],
)
def test_what_is_no_text_is_refused(named, name, field, said):
    before = named.heads()
    with pytest.raises(InputError, match=said):
        ask(named, name, field)
    assert named.heads() == before


def test_it_is_gone_from_file_page_search_export_and_lists(named, tmp_path):
    assert NAME.encode() in bytes_of(named)
    digests = [one.content for one in named.stored()]
    take_out(named)
    assert NAME.encode() not in bytes_of(named)
    assert NAME.casefold().encode() not in bytes_of(named)
    assert [one.content for one in named.stored()][: len(digests)] == digests, "no digest changed"
    assert list_incidents(named, Filter(text="Zarathustra")).rows == ()
    assert list_incidents(named).rows[0].description == GONE
    assert NAME not in printed(named)
    for ending in (".csv", ".json", ".jsonl"):
        export(named, tmp_path / f"all{ending}")
        assert NAME not in (tmp_path / f"all{ending}").read_text()


def test_verification_says_what_was_taken_out_by_whom_and_why(named):
    take_out(named)
    found = verify_log(named.database.path)
    assert found.ok, found.problems
    (note,) = [one for one in found.notes if "cell-1/2: description was taken out" in one]
    assert note.endswith("asked for by R. Example and S. Example: names a person")
    said = [step for step in named.incident("cell-1/2").records if step.kind == "redaction"]
    assert [one.by for one in said] == ["R. Example", "S. Example"] * 2


def test_a_text_that_is_missing_without_that_is_found(named, path, tamper):
    named.close()
    tamper("UPDATE records SET texts = NULL WHERE number = 2")
    assert any(
        "cell-1/2: its description is missing" in one.what for one in verify_log(path).problems
    )


def test_one_person_alone_takes_nothing_out(named, path, tamper):
    ask(named, "cell-1/2")
    named.close()
    tamper("UPDATE records SET texts = NULL WHERE number = 2")
    assert any("was not to be taken out" in one.what for one in verify_log(path).problems)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda texts: {**texts, "description": [texts["description"][0], "nothing"]}, "changed"),
        (lambda texts: {**texts, "description": ["00" * 16, texts["description"][1]]}, "changed"),
        (lambda texts: {**texts, "more": ["00" * 16, "x"]}, "that it does not name"),
        (lambda texts: {"description": "x"}, "changed"),
        (lambda texts: [], "is no record"),
    ],
)
def test_a_text_that_was_changed_is_found(named, path, tamper, change, said):
    texts = json.loads(next(one.texts for one in named.stored(after=1)))
    named.close()
    tamper("UPDATE records SET texts = ? WHERE number = 2", parameters=(json.dumps(change(texts)),))
    assert any(said in one.what for one in verify_log(path).problems)


def test_a_text_that_somebody_put_back_is_found(named, path, tamper):
    texts = next(one.texts for one in named.stored(after=1))
    take_out(named, ("cell-1/2", "description"))
    named.close()
    tamper("UPDATE records SET texts = ? WHERE number = 2", parameters=(texts,))
    assert any("and is there" in one.what for one in verify_log(path).problems)


def test_an_older_copy_does_not_bring_it_back(named, tmp_path):
    old = tmp_path / "old.jsonl"
    old.write_text("".join(export_records(named)))
    take_out(named)
    with open_log(tmp_path / "office" / DATABASE, station="office", make=True) as lab:
        merge(old, lab)
        assert NAME.encode() in bytes_of(lab)
        merge(named.database.path, lab)
        assert lab.incident("cell-1/2").report.description == GONE
        assert NAME.encode() not in bytes_of(lab)
        assert list_incidents(lab, Filter(text="Zarathustra")).rows == ()
        merge(old, lab)
        assert lab.incident("cell-1/2").report.description == GONE
        assert verify_log(lab.database.path).ok


def test_what_comes_after_its_redaction_comes_without_it(log, report, say, tmp_path):
    """The redaction is of a station that was merged first."""
    with open_log(tmp_path / "far" / DATABASE, station="far", make=True) as far:
        say(far, report(description=f"{NAME} was near. " * 9))
        with open_log(tmp_path / "near" / DATABASE, station="near", make=True) as near:
            merge(far.database.path, near)
            take_out(near, ("far/2", "description"))
            only = tmp_path / "near.jsonl"
            lines = list(export_records(near))
            heads = json.loads(lines[0])
            del heads["heads"]["far"]
            kept = [line for line in lines[1:] if '"station":"near"' in line]
            only.write_text(json.dumps(heads) + "\n" + "".join(kept))
        merge(only, log)
        merge(far.database.path, log)
    assert log.incident("far/2").report.description == GONE
    assert NAME.encode() not in bytes_of(log)
    assert verify_log(log.database.path).ok


def test_notes_of_shifts_can_be_taken_out_as_well(log, say):
    shift = say(log, Nil(start_ns=1, end_ns=2, note=f"with {NAME}"))
    take_out(log, (shift.name, "note"))
    assert NAME.encode() not in bytes_of(log)
    assert verify_log(log.database.path).ok


def test_an_older_table_does_not_bring_it_back(log, report, say, tmp_path):
    made = say(log, report(description=f"{NAME} fell"))
    export(log, tmp_path / "old.csv")
    take_out(log, (made.name, "description"))
    import_reports(log, tmp_path / "old.csv", by="Operator C")
    import_reports(log, tmp_path / "old.csv", by="Operator C", as_corrections=True)
    assert log.incident(made.name).report.description == GONE
    assert NAME.encode() not in bytes_of(log)


def test_a_table_without_ids_does_not_bring_it_back_either(log, tmp_path):
    path = tmp_path / "old.csv"
    path.write_text(
        "time,robot,severity,description,source_id\n"
        f"2026-01-05T10:00:00Z,ur5e,minor,{NAME} fell,7\n"
    )
    (name,) = import_reports(log, path, by="Operator C").added
    take_out(log, (name, "description"))
    assert import_reports(log, path, by="Operator C").known == 1
    assert import_reports(log, path, by="Operator C", as_corrections=True).corrected == ()
    assert NAME.encode() not in bytes_of(log)


def test_a_place_can_be_taken_out(log, report, say):
    made = say(log, report(place=f"the room of {NAME}"))
    take_out(log, (made.name, "place"))
    assert log.incident(made.name).report.place == GONE
    assert NAME.encode() not in bytes_of(log)


def test_no_page_of_the_file_keeps_a_copy(log, report, say):
    """Where a page of an index was divided, cells that moved are left behind."""
    made = [say(log, report(description=f"{number:03} {NAME}{number:03} fell")) for number in
            range(120)]  # fmt: skip
    take_out(log, *((one.name, "description") for one in made[60:75]))
    data = bytes_of(log).lower()
    assert not [n for n in range(60, 75) if f"{NAME}{n:03}".lower().encode() in data]
