"""Stations that were apart come together; chains that contradict each other do not."""

from __future__ import annotations

import hashlib
import json
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robo_eval.core.errors import InputError
from robo_eval_incidents import open_log
from robo_eval_incidents.hours import logged_times
from robo_eval_incidents.kinds import Attachment, Evidence, Exposure, Nil, Review
from robo_eval_incidents.lists import list_incidents
from robo_eval_incidents.log import DATABASE
from robo_eval_incidents.merge import export_records, merge
from robo_eval_incidents.record import new_id
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.words import Severity, Via


@pytest.fixture
def station(tmp_path):
    """Opens the log of a station of its own."""
    opened = []

    def open_station(name):
        log = open_log(tmp_path / name / DATABASE, station=name, make=True)
        opened.append(log)
        return log

    yield open_station
    for log in opened:
        log.close()


def _contents(log):
    return {(one.content, one.texts) for one in log.stored()}


def test_chains_come_together_as_they_are(station, report, nil, say):
    lab, cell = station("lab"), station("cell")
    say(lab, report())
    say(cell, report(severity="major"))
    say(cell, nil(3))
    before = _contents(lab) | _contents(cell)
    merged = merge(cell.database.path, lab)
    assert (merged.added, merged.known) == ({"cell": 3}, 0)
    assert _contents(lab) == before
    assert {row.station for row in list_incidents(lab).rows} == {"lab", "cell"}
    found = verify_log(lab.database.path)
    assert found.ok, found.problems
    assert found.stations["cell"] == verify_log(cell.database.path).stations["cell"]


def test_merging_again_adds_what_is_new(station, report, say):
    lab, cell = station("lab"), station("cell")
    about = say(cell, report()).record_id
    merge(cell.database.path, lab)
    say(cell, Review(verdict="confirmed", note="seen"), by="B", incident_id=about)
    assert merge(cell.database.path, lab).added == {"cell": 1}
    assert lab.incident(about).status == "confirmed"
    assert merge(cell.database.path, lab).added == {}
    assert list_incidents(lab).rows[0].status == "confirmed"


def test_a_log_that_is_behind_adds_nothing(station, report, say, tmp_path):
    lab, cell = station("lab"), station("cell")
    say(cell, report())
    old = tmp_path / "old.jsonl"
    old.write_text("".join(export_records(cell)))
    say(cell, report())
    merge(cell.database.path, lab)
    merged = merge(old, lab)
    assert (merged.added, merged.known) == ({}, 2)


def test_both_ways_leads_to_the_same(station, report, say):
    lab, cell = station("lab"), station("cell")
    about = say(cell, report(severity="minor")).record_id
    merge(cell.database.path, lab)
    say(lab, Review(verdict="confirmed", note="in the lab"), by="B", incident_id=about)
    merge(lab.database.path, cell)
    assert cell.incident(about).status == "confirmed"
    assert _contents(lab) == _contents(cell)


def test_an_export_is_the_canonical_forms_and_can_be_merged(station, report, nil, say, tmp_path):
    lab, cell = station("lab"), station("cell")
    say(cell, report(description="line one\nline two"))
    say(cell, nil(1))
    path = tmp_path / "cell.jsonl"
    path.write_text("".join(export_records(cell)))
    previous = "0" * 64
    for line in path.read_text().splitlines()[1:]:
        content = line.partition("\t")[0]
        assert json.loads(content)["previous_sha256"] == previous
        previous = hashlib.sha256(content.encode()).hexdigest()
    assert merge(path, lab).added == {"cell": 3}
    assert verify_log(lab.database.path).ok


def test_two_logs_of_one_station_name_that_differ_are_refused(station, report, say, tmp_path):
    lab = station("lab")
    with open_log(tmp_path / "x" / DATABASE, station="cell", make=True) as one:
        say(one, report(description="one"))
        merge(one.database.path, lab)
    with open_log(tmp_path / "y" / DATABASE, station="cell", make=True) as other:
        say(other, report(description="other"))
        before = _contents(lab)
        for _ in range(3):
            with pytest.raises(InputError, match="station cell forks at"):
                merge(other.database.path, lab)
            say(other, report(description="more"))
    assert _contents(lab) == before
    assert verify_log(lab.database.path).ok


@pytest.mark.parametrize("damage", ["changed", "removed", "swapped", "doubled"])
def test_a_source_that_was_changed_is_refused(station, report, say, tmp_path, damage):
    lab, cell = station("lab"), station("cell")
    for number in range(5):
        say(cell, report(description=f"event {number}"))
    lines = list(export_records(cell))
    match damage:
        case "changed":
            lines[3] = lines[3].replace("event 1", "event 9")
        case "removed":
            del lines[3]
        case "swapped":
            lines[3], lines[4] = lines[4], lines[3]
        case "doubled":
            lines.insert(3, lines[3])
    path = tmp_path / "cell.jsonl"
    path.write_text("".join(lines))
    with pytest.raises(InputError, match=r"cell\.jsonl, line [45]: "):
        merge(path, lab)
    assert verify_log(lab.database.path).ok
    assert 1 <= lab.heads()["cell"].sequence <= 3, "what came before is sound"
    assert sum(merge(cell.database.path, lab).added.values()) >= 3
    assert verify_log(lab.database.path).ok


@pytest.mark.parametrize("damage", ["changed", "lost"])
def test_a_source_whose_end_is_another_is_refused(station, report, say, tmp_path, damage):
    lab, cell = station("lab"), station("cell")
    for number in range(5):
        say(cell, report(description=f"event {number}"))
    lines = list(export_records(cell))
    if damage == "changed":
        lines[-1] = lines[-1].replace("ur5e", "ur6e")
    else:
        del lines[-1]
    path = tmp_path / "cell.jsonl"
    path.write_text("".join(lines))
    with pytest.raises(InputError, match="its end was lost or changed"):
        merge(path, lab)
    assert merge(cell.database.path, lab).added
    assert verify_log(lab.database.path).ok


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"", "is not how an export begins"),
        (b"{}\n", "is not how an export begins"),
        (b'{"kind":"report"}\n', "is not how an export begins"),
        (b'{"form":2,"heads":{},"kind":"export"}\n', "is of form 2, this program reads 1"),
        (b"{\xff}\n", "not UTF-8"),
        (b'{"kind": "nil"', "ends in the middle"),
        (b"{" * 100_000 + b"\n", "is not how an export begins"),
        (b"{" + b"x" * 500_000 + b"\n", "ends in the middle"),
    ],
)
def test_a_file_that_is_no_export_is_refused(log, tmp_path, line, said):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(line)
    with pytest.raises(InputError, match=said) as caught:
        merge(path, log)
    assert str(caught.value).startswith(f"{path}, line 1")
    assert log.heads() == {}


def test_a_record_in_another_form_of_json_is_refused(station, report, say, tmp_path):
    lab, cell = station("lab"), station("cell")
    say(cell, report())
    path = tmp_path / "cell.jsonl"
    first, second, *_ = export_records(cell)
    path.write_text(first + json.dumps(json.loads(second)) + "\n")
    with pytest.raises(InputError, match="canonical form"):
        merge(path, lab)


def test_a_log_is_not_merged_into_itself(log):
    with pytest.raises(InputError, match="is the log to merge into"):
        merge(log.database.path, log)


def test_what_two_stations_drafted_of_one_event_is_one_incident(station, report, say):
    """Two people captured the same trial, each at a station that was offline."""
    lab, cell = station("lab"), station("cell")
    same = {"record_id": new_id(), "by": "robo-eval", "via": Via.RULE}
    say(lab, report(rule="stop"), **same)
    say(cell, report(rule="stop", severity="major"), **same)
    list_incidents(lab)
    merge(cell.database.path, lab)
    (row,) = list_incidents(lab).rows
    assert (row.severity, row.status) == (Severity.MAJOR, "draft")
    assert lab.incident(row.incident_id).people_needed == 2
    found = verify_log(lab.database.path)
    assert found.ok, found.problems
    assert merge(lab.database.path, cell).added == {"lab": 2}
    assert list_incidents(cell).rows[0].severity == Severity.MAJOR


def test_one_station_that_forks_keeps_no_other_out(station, report, say, tmp_path):
    lab = station("lab")
    with open_log(tmp_path / "x" / DATABASE, station="aa", make=True) as one:
        say(one, report(description="one"))
        merge(one.database.path, lab)
    with open_log(tmp_path / "y" / DATABASE, station="aa", make=True) as other:
        say(other, report(description="other"))
        zz = station("zz")
        say(zz, report(severity="critical"))
        merge(zz.database.path, other)
        with pytest.raises(InputError, match="station aa forks at"):
            merge(other.database.path, lab)
    assert lab.heads()["zz"].sequence == 2
    assert verify_log(lab.database.path).ok


def test_hours_that_two_stations_logged_are_listed_once_everywhere(station, say):
    lab, cell = station("lab"), station("cell")
    body = Exposure(robot="ur5e", side="real", mode="autonomous", start_ns=10**18, seconds=5.0)
    same = {"record_id": new_id(), "by": "robo-eval", "via": Via.RULE}
    say(lab, body, **same)
    say(cell, body, **same)
    merge(cell.database.path, lab)
    with open_log(lab.database.path, read_only=True) as reading:
        assert logged_times(reading) == logged_times(lab)
        assert len(logged_times(lab)[0]) == 1


def test_lists_do_not_depend_on_the_order_of_arrival(station, report, say, tmp_path):
    same = {"record_id": new_id(), "by": "robo-eval", "via": Via.RULE}
    cells = [station("sa"), station("sb")]
    for cell, robot in zip(cells, ("arm_1", "arm_9"), strict=True):
        say(cell, report(rule="stop", robot=robot), **same)
    rows = set()
    for name, order in (("one", cells), ("other", cells[::-1])):
        with open_log(tmp_path / name / DATABASE, make=True) as log:
            for cell in order:
                merge(cell.database.path, log)
            with open_log(log.database.path, read_only=True) as reading:
                rows |= {list_incidents(one).rows[0] for one in (log, reading)}
            rows_of = {one.report.robot for one in (log.incidents()[0], log.incident("sa/2"))}
            assert rows_of == {"arm_1"}
    assert len(rows) == 1


# Evidence --------------------------------------------------------------------------------------


@pytest.fixture
def with_evidence(station, report, say):
    """A station with one incident, whose piece of trace is beside its log."""

    def make(uri="incidents/piece.mcap", data=b"what happened"):
        cell = station("cell")
        place = cell.evidence_folder / uri
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        about = say(cell, report()).record_id
        piece = Evidence(uri=uri, sha256=hashlib.sha256(data).hexdigest())
        say(cell, Attachment(evidence=(piece,)), incident_id=about)
        return cell, place

    return make


def test_pieces_of_traces_come_along(station, with_evidence):
    cell, place = with_evidence()
    lab = station("lab")
    merged = merge(cell.database.path, lab)
    assert (merged.files, merged.left) == (["incidents/piece.mcap"], [])
    copy = lab.evidence_folder / "incidents" / "piece.mcap"
    assert copy.read_bytes() == place.read_bytes()
    assert sorted(entry.name for entry in copy.parent.iterdir()) == ["piece.mcap"]


def test_a_piece_that_was_changed_stays_behind_and_is_named(station, with_evidence):
    cell, place = with_evidence()
    place.write_bytes(b"something else")
    lab = station("lab")
    merged = merge(cell.database.path, lab)
    assert merged.files == []
    assert "was changed" in merged.left[0]
    assert list((lab.evidence_folder).rglob("*.mcap")) == []
    assert lab.heads()["cell"].sequence == 3, "the records are there all the same"


def test_a_piece_that_leads_elsewhere_stays_behind(station, with_evidence, tmp_path):
    cell, place = with_evidence()
    secret = tmp_path / "secret"
    secret.write_bytes(place.read_bytes())
    place.unlink()
    place.symlink_to(secret)
    merged = merge(cell.database.path, station("lab"))
    assert "leads out of" in merged.left[0]


def test_a_piece_that_is_gone_is_named(station, with_evidence):
    cell, place = with_evidence()
    place.unlink()
    assert "is not in" in merge(cell.database.path, station("lab")).left[0]


def test_a_file_elsewhere_beside_a_log_stays_behind_and_is_named(station, with_evidence):
    """Nobody who sends records puts a file beside the log of somebody else."""
    cell, _ = with_evidence("plan.yaml")
    lab = station("lab")
    merged = merge(cell.database.path, lab)
    assert merged.left == ["plan.yaml: is not below incidents/"]
    assert not (lab.evidence_folder / "plan.yaml").exists()


# Any order -------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), max_size=12))
def test_any_order_of_writing_and_merging_keeps_every_chain(tmp_path_factory, steps):
    """A step of one station with itself writes; with another one it merges."""
    folder = tmp_path_factory.mktemp("stations")
    logs = {name: open_log(folder / name / DATABASE, station=name, make=True) for name in "abc"}
    written = dict.fromkeys("abc", 0)
    for number, (one, other) in enumerate(steps):
        if one == other:
            body = Nil(start_ns=number, end_ns=number + 1)
            logs[one].file(body, by="Operator A", via=Via.CLI)
            written[one] += 1
        else:
            merge(logs[one].database.path, logs[other])
    for log in logs.values():
        if log is not logs["a"]:
            merge(log.database.path, logs["a"])
        assert verify_log(log.database.path).ok
    heads = logs["a"].heads()
    assert {name: head.sequence - 1 for name, head in heads.items()} == {
        name: count for name, count in written.items() if count
    }
    for log in logs.values():
        log.close()


def test_a_merge_that_was_cut_off_goes_on(station, report, say, monkeypatch):
    lab, cell = station("lab"), station("cell")
    for number in range(30):
        say(cell, report(description=f"event {number}"))
    monkeypatch.setattr("robo_eval_incidents.merge._BATCH", 10)
    calls = []
    put = type(lab).put_records

    def cut_off(self, *given):
        calls.append(given)
        if len(calls) == 3:
            raise sqlite3.OperationalError("database or disk is full")
        put(self, *given)

    monkeypatch.setattr(type(lab), "put_records", cut_off)
    with pytest.raises(InputError, match="full"):
        merge(cell.database.path, lab)
    assert lab.heads()["cell"].sequence == 20
    assert verify_log(lab.database.path).ok
    assert merge(cell.database.path, lab).added == {"cell": 11}
    assert verify_log(lab.database.path).ok
