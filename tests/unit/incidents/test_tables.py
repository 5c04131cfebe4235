"""Incidents as CSV and JSON: written safely, read back exactly, imported whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
import unicodedata
from pathlib import Path

import jsonschema_rs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval_incidents import open_log
from robo_eval_incidents.kinds import (
    Action,
    Attachment,
    Evidence,
    Quantity,
    Reclassification,
    Review,
    plain,
)
from robo_eval_incidents.lists import Filter, tally
from robo_eval_incidents.merge import merge
from robo_eval_incidents.tables import (
    COLUMNS,
    IncidentTable,
    Piece,
    Row,
    _cells_of,
    export,
    rows,
    schema,
    write_csv,
    write_json,
)
from robo_eval_incidents.tables_read import import_reports, read_csv, read_table
from robo_eval_incidents.text import (
    LATEST_NS,
    answers_cell,
    answers_of,
    evidence_cell,
    evidence_of,
    iso_of,
    ns_of,
    plain_cell,
    quantities_cell,
    quantities_of,
    safe_cell,
)
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.words import Severity, Status, Via

SCHEMA = Path(__file__).parents[3] / "docs" / "incidents.schema.json"
AWKWARD = {
    "description": '=HYPERLINK("http://x")\nsecond line, with \'quotes\'; and "more"',
    "robot": "-arm, 1",
    "engagement": "teleoperated",
    "episode_id": "@e;1",
    "policy": "'tis",
    "task": "+1+2",
    "quantities": [
        {"name": "force; peak", "value": 81.2, "unit": "N (x=1)", "limit": 80},
        {"name": "ratio\\", "value": -1.5e-9},
    ],
    "evidence": [
        {"uri": "incidents/a; (b).mcap", "start_ns": 1, "end_ns": 10**18 + 1, "sha256": "0" * 64},
        {"uri": "photo (1).jpg"},
    ],
    "answers": {"medical_treatment": "no", "hospital": "unknown"},
}


@pytest.fixture
def other(tmp_path):
    """Another log, to import into."""
    with open_log(tmp_path / "other.db", station="desk", make=True) as opened:
        yield opened


@pytest.fixture
def table(tmp_path):
    """Writes a table."""

    def write(text: str | bytes, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def imported(log):
    return {incident.report.source_id: incident.report for incident in log.incidents()}


# There and back --------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".csv", ".json"])
def test_what_was_exported_is_imported_as_it_was(log, other, report, say, tmp_path, ending):
    filed = [say(log, report(**AWKWARD)), say(log, report(severity="critical"))]
    out = tmp_path / f"table{ending}"
    assert export(log, out) == 2
    done = import_reports(other, out, by="Operator B")
    assert len(done.added) == 2
    found = imported(other)
    for record in filed:
        expected = {**plain(record.body), "source_id": record.record_id}
        assert plain(found[record.record_id]) == expected
    assert {incident.record.by for incident in other.incidents()} == {"Operator B"}


@pytest.mark.parametrize("ending", [".csv", ".json"])
def test_what_is_known_is_not_added_again(log, other, report, say, tmp_path, ending):
    say(log, report())
    out, again = tmp_path / f"one{ending}", tmp_path / f"again{ending}"
    export(log, out)
    assert import_reports(log, out, by="Operator B").known == 1
    assert import_reports(other, out, by="Operator B").known == 0
    assert import_reports(other, out, by="Operator C").known == 1
    # An export of the import is still the same incident, in both logs.
    export(other, again)
    for each in (log, other):
        assert import_reports(each, again, by="Operator B").added == ()
        assert len(each.incidents()) == 1


@pytest.mark.parametrize("ending", [".csv", ".json"])
def test_a_milder_severity_is_imported_once_it_is_reviewed(
    log, other, report, say, tmp_path, ending
):
    filed = say(log, report(severity="major"))
    about = {"incident_id": filed.record_id}
    milder = {"severity": "near_miss", "category": "collision", "reason": "looked worse"}
    say(log, Reclassification.model_validate(milder), **about)
    out = tmp_path / f"table{ending}"
    export(log, out)
    import_reports(other, out, by="Operator B")
    assert [one.severity for one in other.incidents()] == [Severity.MAJOR]
    for name in ("Reviewer B", "Reviewer C"):
        say(log, Review(verdict="confirmed", note="so it was"), by=name, **about)
    export(log, out, force=True)
    with open_log(tmp_path / "third.db", station="third", make=True) as third:
        import_reports(third, out, by="Operator B")
        assert [one.severity for one in third.incidents()] == [Severity.NEAR_MISS]


@pytest.mark.parametrize("ending", [".csv", ".json"])
def test_what_was_imported_is_the_same_incident_when_its_log_is_merged(
    log, other, path, report, say, tmp_path, ending
):
    filed = say(log, report(severity="minor"))
    out = tmp_path / f"table{ending}"
    export(log, out)
    import_reports(other, out, by="Operator B")
    merge(path, other)
    assert [one.incident_id for one in other.incidents()] == [filed.record_id]
    assert tally(other) == {(Side.REAL, Severity.MINOR, Status.REPORTED): 1}
    assert verify_log(other.database.path).ok


@pytest.mark.parametrize("ending", [".csv", ".json"])
def test_an_export_is_known_to_its_own_log_whatever_was_recorded_since(log, table, say, ending):
    import_reports(log, table(f"{HEADER}\n{GOOD}"), by="Operator A")
    (incident,) = log.incidents()
    worse = {"severity": "major", "category": "collision", "reason": "first aid was given"}
    body = Reclassification.model_validate(worse)
    say(log, body, incident_id=incident.incident_id)
    out = log.evidence_folder / f"table{ending}"
    export(log, out)
    before = log.heads()
    done = import_reports(log, out, by="Operator B")
    assert (done.added, done.known, log.heads()) == ((), 1, before)


def test_the_id_of_something_else_than_an_incident_is_refused(log, table, nil, say):
    quiet = say(log, nil(0))
    path = table(f"id,{HEADER}\n{quiet.record_id},{GOOD}")
    with pytest.raises(InputError, match=f"id {quiet.record_id} .*, which is no incident"):
        import_reports(log, path, by="Operator A")


def test_two_lines_with_one_id_are_refused(log, table):
    own = "11111111-2222-3333-4444-555555555555"
    path = table(f"id,{HEADER}\n{own},{GOOD}{own},{GOOD.replace('1', '2', 1)}")
    with pytest.raises(InputError, match=f"id '{own}' appears twice"):
        import_reports(log, path, by="Operator A")


def test_an_incident_with_many_long_actions_is_read_back(log, other, report, say, tmp_path):
    filed = say(log, report())
    for number in range(20):
        action = Action(what=f"{number} {'x' * 7_900}", owner="Operator B")
        say(log, action, incident_id=filed.record_id)
    out = tmp_path / "table.csv"
    export(log, out)
    limit = csv.field_size_limit()
    assert len(import_reports(other, out, by="Operator B").added) == 1
    assert csv.field_size_limit() == limit


def test_a_table_shows_how_incidents_stand(log, report, say):
    first = say(log, report(severity="major"))
    about = {"incident_id": first.record_id}
    say(log, Review(verdict="confirmed", note="seen"), by="Operator B", **about)
    say(log, Action(what="a fence", owner="Operator C", due="2026-04-01"), **about)
    say(log, Attachment(evidence=(Evidence(uri="photo.jpg"),)), **about)
    (row,) = rows(log)
    assert (row.id, row.station, row.number) == (first.record_id, "cell-1", 2)
    assert row.status is Status.ACTING
    assert row.counted_severity is Severity.MAJOR
    assert row.reviewed_by == ("Operator B",), "Operator A reported it"
    assert [piece.uri for piece in row.evidence] == ["photo.jpg"]
    text = io.StringIO()
    write_csv(log, text)
    (line,) = csv.DictReader(io.StringIO(text.getvalue()))
    assert line["open_actions"] == "a fence (Operator C, due 2026-04-01)"
    assert line["status"] == "acting"


def test_only_what_was_asked_for_is_exported(log, report, say):
    for number in range(3):
        say(log, report(happened_ns=number * 10**9, side="twin" if number else "real"))
    text = io.StringIO()
    assert write_json(log, text, Filter(side=Side.TWIN, since_ns=2 * 10**9)) == 1
    found = json.loads(text.getvalue())["incidents"]
    assert [one["time"] for one in found] == ["1970-01-01T00:00:02Z"]


def test_exports_are_newest_first_over_many_pages(log, report, say, monkeypatch):
    monkeypatch.setattr("robo_eval_incidents.tables._PAGE", 2)
    for number in (3, 1, 4, 0, 2):
        say(log, report(happened_ns=number))
    assert [row.time[-4:] for row in rows(log)] == ["004Z", "003Z", "002Z", "001Z", ":00Z"]


# Files -----------------------------------------------------------------------------------------


def test_an_export_appears_whole_or_not_at_all(log, report, say, tamper, tmp_path):
    out = tmp_path / "table.json"
    say(log, report())
    export(log, out)
    before = out.read_bytes()
    with pytest.raises(InputError, match=r"exists already; .*--force"):
        export(log, out)
    # The second page cannot be read.
    say(log, report(severity="minor"))
    list(rows(log))
    tamper("update records set content = 'x' where sequence = 2")
    with pytest.raises(InputError, match="is no record"):
        export(log, out, force=True)
    assert out.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lab", "table.json"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("table.xlsx", r"must end in \.csv, \.json, \.jsonl"),
        ("nowhere/table.csv", "nowhere/table.csv: cannot be written: there is no folder"),
    ],
)
def test_an_export_to_nowhere_says_so(log, tmp_path, name, message):
    with pytest.raises(InputError, match=message):
        export(log, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["lab"]


def test_records_are_exported_all_together(log, report, say, tmp_path):
    say(log, report())
    out = tmp_path / "records.jsonl"
    with pytest.raises(InputError, match="leave the filters out"):
        export(log, out, Filter(robot="ur5e"))
    assert export(log, out) == 2
    assert out.read_text().splitlines()[1:] == [
        "\t".join(filter(None, one[1:])) for one in log.stored()
    ]


# The published schema --------------------------------------------------------------------------


def test_the_published_schema_is_the_one_that_is_checked_against():
    assert json.loads(SCHEMA.read_text()) == schema(), (
        "write it anew: robo-eval incidents schema > docs/incidents.schema.json"
    )


def test_an_export_fits_the_published_schema(log, report, say):
    say(log, report(**AWKWARD))
    text = io.StringIO()
    write_json(log, text)
    data = json.loads(text.getvalue())
    validator = jsonschema_rs.validator_for(json.loads(SCHEMA.read_text()))
    assert list(validator.iter_errors(data)) == []
    IncidentTable.model_validate(data)
    data["incidents"][0]["severity"] = "bad"
    assert not validator.is_valid(data)


def test_an_empty_log_is_a_table_without_lines(log, other, tmp_path):
    for name in ("table.json", "table.csv"):
        assert export(log, tmp_path / name) == 0
        assert import_reports(other, tmp_path / name, by="Operator A").added == ()
    IncidentTable.model_validate_json((tmp_path / "table.json").read_text())


# Tables of other programs ----------------------------------------------------------------------


def test_few_columns_are_enough(log, table):
    path = table(
        "source_id,time,severity,description\n"
        "7,2026-03-01T10:30:00+01:00,minor,  a scratch \n\n8,2026-03-01T09:30:00Z,major,a dent\n"
    )
    done = import_reports(log, path, by="Operator A", robot="arm_1", source="sheet")
    assert done.added == ("cell-1/2", "cell-1/3")
    found = imported(log)
    assert set(found) == {"sheet:7", "sheet:8"}
    first = found["sheet:7"]
    assert (first.robot, first.side, first.description) == ("arm_1", Side.REAL, "a scratch")
    assert first.happened_ns == found["sheet:8"].happened_ns == ns_of("2026-03-01T09:30:00Z")


def test_the_evidence_of_a_trial_can_be_imported(log, table):
    path = table(
        "incident_id,severity,time,side,episode_id,policy,description\n"
        "i1,near_miss,2026-03-01T09:30:00Z,twin,e1,balancer,\n"
    )
    import_reports(log, path, by="Operator A", robot="gantry")
    found = imported(log)["i1"]
    assert (found.side, found.episode_id, found.policy) == (Side.TWIN, "e1", "balancer")
    assert found.description == "(no description)"


def test_a_spreadsheet_with_a_mark_at_its_begin_is_read(log, table):
    path = table(b"\xef\xbb\xbfsource_id,time,severity,description,robot\r\n"
                 b"1,2026-03-01T09:30:00Z,minor,\xc3\xb6l,a\r\n")  # fmt: skip
    assert len(import_reports(log, path, by="Operator A").added) == 1
    assert imported(log)["1"].description == "öl"


def test_blank_cells_that_a_spreadsheet_adds_harm_nothing(log, table):
    path = table(f"{HEADER},,\n{GOOD.strip()},,,\n,,\n")
    assert len(import_reports(log, path, by="Operator A").added) == 1


def test_lines_without_an_id_are_named_by_file_and_line_and_known_the_next_time(log, table):
    line = "2026-03-01T09:30:00Z,minor,a scratch,arm_1\n"
    path = table("time,severity,description,robot\n" + 2 * line)
    assert len(import_reports(log, path, by="Operator A").added) == 2, "two events"
    assert set(imported(log)) == {f"{path.name}:2", f"{path.name}:3"}
    assert import_reports(log, path, by="Operator A").known == 2
    path = table("time,severity,description,robot\n" + line.replace("minor", "major") + line)
    with pytest.raises(InputError, match=rf"{path.name}:2' is in the log already.*--source"):
        import_reports(log, path, by="Operator A")
    with pytest.raises(InputError, match="line 2, column source_id: is missing; --as-corr"):
        import_reports(log, path, by="Operator A", as_corrections=True)
    assert len(import_reports(log, path, by="Operator A", source="new").added) == 2


GOOD = "1,2026-03-01T09:30:00Z,minor,a scratch,arm_1\n"
HEADER = "source_id,time,severity,description,robot"
BAD_CSV = {
    "severity": ("2,2026-03-01T09:30:00Z,minr,x,a", "line 3, column severity: .*'minor'"),
    "zone": ("2,2026-03-01T09:30:00,minor,x,a", "line 3, column time: .*names no zone"),
    "time": ("2,yesterday,minor,x,a", "line 3, column time: 'yesterday'.* write it like"),
    "no robot": ("2,2026-03-01T09:30:00Z,minor,x,", "line 3, column robot: is missing.*--robot"),
    "relative": ("2,yesterday,minor,x,a", "like 2026-03-01T09:30:00Z, 2025-11-07, 2025-11"),
    "no text": ("2,2026-03-01T09:30:00Z,minor,,a", "line 3, column description: is missing"),
    "too long": (f"2,2026-03-01T09:30:00Z,minor,x,{'a' * 121}", "column robot: has 121 char.*120"),
    "steering": ("2,2026-03-01T09:30:00Z,minor,a\u202eb,a", r"column description: .*U\+202E"),
    "cells": ("2,2026-03-01T09:30:00Z,minor,x", "line 3: has 4 cells, the header has 5"),
    "record": ('2,2026-03-01T09:30:00Z,minr,"x\ny",a', "line 3, column severity"),
    "quote": ('2,2026-03-01T09:30:00Z,minor,"x,a', "line 3: is not CSV"),
    "same id": ("1,2026-03-01T09:30:00Z,minor,x,a", "source id '1' appears twice"),
    "huge": (
        f"2,2026-03-01T09:30:00Z,minor,{'x' * 200_000},a",
        "line 3, column description: has 200000 characters",
    ),
}


@pytest.mark.parametrize("name", BAD_CSV)
def test_one_bad_line_keeps_all_of_them_out(log, table, name):
    line, message = BAD_CSV[name]
    path = table(f"{HEADER}\n{GOOD}{line}\n")
    before = log.heads()
    with pytest.raises(InputError, match=message) as caught:
        import_reports(log, path, by="Operator A")
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value).splitlines()) == 1
    assert log.heads() == before


BAD_COLUMNS = {
    "unknown": (f"{HEADER},sevrity\n", "did you mean 'severity'"),
    "twice": (f"{HEADER},robot\n", "column 'robot' appears twice"),
    "missing": ("source_id,severity\n", "column 'time' is missing"),
    "semicolons": ("source_id;time;severity\n", "divided by ';'; save it with commas"),
    "nothing": ("", "is empty; it needs a header line"),
    "quantity": (f"{HEADER},quantities\n{GOOD.strip()},force\n", "column quantities: 'force'"),
    "answer": (f"{HEADER},answers\n{GOOD.strip()},hospital\n", "column answers: 'hospital'"),
    "question": (f"{HEADER},answers\n{GOOD.strip()},x=no\n", "column answers: no question 'x'"),
    "way out": (
        f"{HEADER},evidence\n{GOOD.strip()},../../etc/passwd\n",
        "column evidence.0.uri: is not a path below the folder",
    ),
    "window": (
        f"{HEADER},evidence\n{GOOD.strip()},a.mcap (from 2026-03-01T09:30:00Z to x)\n",
        "column evidence.0.end: 'x' is not a time",
    ),
    "not text": (b"source_id\xff", "line 1: is not UTF-8 text: byte 0xff"),
    "null": (f"{HEADER}\n2,2026-03-01T09:30:00Z,minor,a\0b,a\n", r"U\+0000|is not CSV"),
}


@pytest.mark.parametrize("name", BAD_COLUMNS)
def test_a_bad_table_says_what_would_do(log, table, name):
    text, message = BAD_COLUMNS[name]
    before = log.heads()
    with pytest.raises(InputError, match=message):
        import_reports(log, table(text), by="Operator A")
    assert log.heads() == before


ONE = {
    "source_id": "1",
    "time": "2026-03-01T09:30:00Z",
    "severity": "minor",
    "robot": "a",
    "description": "x",
}
BAD_JSON = {
    "no json": ("{", "is not JSON"),
    "deep": ("[" * 100_000, "is not JSON"),
    "a list": ("[]", "holds no incidents; `robo-eval incidents schema`"),
    "other format": ('{"format": "x", "incidents": []}', "format: "),
    "newer": ('{"version": 2, "incidents": []}', "is of version 2, .* install a newer"),
    "unknown key": (json.dumps({"incidents": [ONE, {**ONE, "sevrity": 1}]}), "incident 2, field"),
    "infinite": (
        json.dumps({"incidents": [{**ONE, "quantities": [{"name": "f", "value": 1e999}]}]}),
        "Infinity is not a number",
    ),
    "overflow": (
        json.dumps({"incidents": [{**ONE, "quantities": [{"name": "f", "value": 1}]}]}).replace(
            '"value": 1', '"value": 1e999'
        ),
        "incident 1, field quantities.0.value: must be a finite number",
    ),
    "no mapping": (json.dumps({"incidents": [7]}), "incident 1, field"),
    "too much": (
        json.dumps(
            {
                "incidents": [
                    {
                        **ONE,
                        "description": "😀" * 8_000,
                        "quantities": [{"name": "😀" * 120, "value": 1, "unit": "😀" * 200}] * 50,
                        "evidence": [{"uri": "😀" * 500}] * 50,
                    }
                ]
            }
        ),
        "field description: with the other fields it is too long",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_JSON)
def test_bad_json_says_what_would_do(log, table, name):
    text, message = BAD_JSON[name]
    before = log.heads()
    with pytest.raises(InputError, match=message) as caught:
        import_reports(log, table(text, "table.json"), by="Operator A")
    assert len(str(caught.value)) < 500
    assert log.heads() == before


def test_other_words_under_a_known_id_are_refused(log, table):
    import_reports(log, table(f"{HEADER}\n{GOOD}"), by="Operator A")
    before = log.heads()
    changed = table(f"{HEADER}\n{GOOD.replace('minor', 'major')}")
    with pytest.raises(InputError, match=r"source id '1' is in the log already, as cell-1/2"):
        import_reports(log, changed, by="Operator A")
    assert log.heads() == before
    assert len(import_reports(log, changed, by="Operator A", source="other").added) == 1


def test_a_file_of_another_kind_is_refused(tmp_path):
    for name, message in {
        "table.xlsx": "ends in .csv or .json",
        "records.jsonl": "`robo-eval incidents merge` takes records",
        "nowhere.csv": "no such file of incidents",
    }.items():
        with pytest.raises(InputError, match=message):
            read_table(tmp_path / name)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        read_table(tmp_path / "folder.csv")


def test_a_disk_that_fills_up_keeps_what_was_added_and_the_rest_comes_later(log, table):
    lines = [f"{number},2026-03-01T09:30:00Z,minor,{'x' * 7_000},arm_1\n" for number in range(40)]
    path = table(f"{HEADER}\n{''.join(lines)}")
    with log.database.reading() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        # SQLite's own limit fails in the way a full disk does.
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 20}")
    with pytest.raises(InputError, match=r"full.*; \d+ of 40 incidents were added") as caught:
        import_reports(log, path, by="Operator A")
    added = len(log.incidents())
    assert f"{added} of 40" in str(caught.value)
    with log.database.reading() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 10_000}")
    done = import_reports(log, path, by="Operator A")
    assert (len(done.added), done.known) == (40 - added, added)


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01T10:30:00+01:00:00.5", "2026-03-01T10:30:00.5+01:00:00.5",
        "2026-03-01T10:30:00+01:00:30", "2026-03-01T10:30:00",
    ],
)  # fmt: skip
def test_a_zone_is_hours_and_minutes(text):
    with pytest.raises(ValueError, match="zone"):
        ns_of(text)


# Cells -----------------------------------------------------------------------------------------

LETTERS = st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Cs"))
WORDS = st.text(LETTERS, min_size=1, max_size=20).map(lambda text: " ".join(text.split()))
NAMES = WORDS.filter(bool)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TIMES = st.integers(0, LATEST_NS)


# What a careless reader would take for more of the number, or for a limit.
TRICKY = st.text("N 1.,0limt()/:\\\\;=x-+eE±°%_'", max_size=9).map(
    lambda text: " ".join(text.split())
)


@example([{"name": "force", "value": 1.0, "unit": "N (limit 80)", "limit": 2.0}])
@given(st.lists(st.fixed_dictionaries(
    {"name": NAMES, "value": NUMBERS, "unit": WORDS | TRICKY}, optional={"limit": NUMBERS}
)))  # fmt: skip
def test_quantities_survive_a_cell(quantities):
    assert quantities_of(quantities_cell(quantities)) == quantities


@pytest.mark.parametrize(
    ("text", "value", "unit", "limit"),
    [
        ("force=150 N (limit 140 N)", 150.0, "N", 140.0),
        ("force=150N(Limit: 140N)", 150.0, "N", 140.0),
        ("force=150 N (limit 1.4e2)", 150.0, "N", 140.0),
        ("rate=5 1/s (limit 4 1/s)", 5.0, "1/s", 4.0),
        ("stiffness=-.5 kg m2 s-2", -0.5, "kg m2 s-2", None),
        ("slope=50 %", 50.0, "%", None),
        ("force=5 N (peak)", 5.0, "N (peak)", None),
        ("ratio=.5", 0.5, "", None),
    ],
)
def test_a_quantity_keeps_its_number_unit_and_limit(text, value, unit, limit):
    wanted = {"name": text.partition("=")[0], "value": value, "unit": unit}
    assert quantities_of(text) == [wanted if limit is None else {**wanted, "limit": limit}]


@pytest.mark.parametrize(
    "text",
    [
        "81,2 N", "1,234 N", "1.234,5 N", "1 234 N", "1'000 N", "1_000 N", "0x1F", "1 e3 N",
        "5 x10^3 N", "5 ± 1 N", "81.2-85 N", "81.2 - 85 N", "1/2", "3:45 min", "81.2.3 N",
        "81·2 N", "150 N [140 N]", "150 N limit 140", "150 N, limit 140 N", "150 N (limit 140",
        "150 N (max 140 N)", "150 N (> 140)", "150 N / 140 N", "150 N/140 N", "150 N (140)",
        "150 N (limit)", "150 N (limit 140,5 N)", "150 N (limit 0.14 kN)", "150 (limit 140 N)",
        "150 N (limit 140 N) (sustained)", "N", "",
    ],
)  # fmt: skip
def test_what_would_lose_a_part_of_a_quantity_is_refused(text):
    with pytest.raises(ValueError, match=r"write it like force=81\.2 N \(limit 80\)"):
        quantities_of(f"force={text}")


@given(st.lists(st.builds(
    lambda uri, window, sha256: {"uri": uri, **window, **sha256},
    NAMES,
    st.one_of(st.just({}), st.fixed_dictionaries(
        {"start": TIMES.map(iso_of), "end": TIMES.map(iso_of)}
    )),
    st.one_of(st.just({}), st.just({"sha256": "0f" * 32})),
)))  # fmt: skip
def test_evidence_survives_a_cell(pieces):
    assert evidence_of(evidence_cell(pieces)) == pieces


@given(st.dictionaries(st.sampled_from(["hospital", "fatality"]), st.sampled_from(["yes", "no"])))
def test_answers_survive_a_cell(answers):
    assert answers_of(answers_cell(answers)) == answers


@given(TIMES)
def test_a_time_survives_as_text(time_ns):
    assert ns_of(iso_of(time_ns)) == time_ns


@given(st.text(LETTERS))
def test_no_cell_is_taken_for_a_formula_and_each_is_read_back(text):
    cell = safe_cell(text)
    assert plain_cell(cell) == text
    assert not unicodedata.normalize("NFKC", cell).startswith(("=", "+", "-", "@", "\t", "\r"))


@pytest.mark.parametrize("start", "=+-@\t\r")
def test_an_exported_formula_is_text(log, report, say, start):
    # White space at the begin is taken away before.
    formula = f"{start}cmd|' /C calc'!A0".strip()
    say(log, report(description=formula, robot="=1+1", task="@SUM(A1)", policy="-2"))
    text = io.StringIO()
    write_csv(log, text)
    header, line = csv.reader(io.StringIO(text.getvalue().removeprefix("\ufeff")))
    assert header == list(COLUMNS)
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in line)


WINDOWS = st.tuples(TIMES, TIMES).map(sorted)
ROWS = st.builds(
    Row,
    source_id=NAMES,
    time=TIMES.map(iso_of),
    robot=NAMES,
    side=st.sampled_from(Side),
    severity=st.sampled_from(Severity),
    task=st.none() | NAMES,
    description=st.lists(NAMES, min_size=1, max_size=3).map("\n".join),
    quantities=st.lists(
        st.builds(Quantity, name=NAMES, value=NUMBERS, unit=WORDS, limit=st.none() | NUMBERS),
        max_size=3,
    ),
    evidence=st.lists(
        WINDOWS.map(lambda ends: Piece(uri="a b;(1).mcap", start=iso_of(ends[0]),
                                       end=iso_of(ends[1]))), max_size=2,
    ),
)  # fmt: skip


@given(st.lists(ROWS, max_size=4))
def test_any_row_is_read_back_from_csv_and_json(drawn):
    table = IncidentTable(incidents=drawn)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "table.csv")
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(_cells_of(row) for row in drawn)
        as_json = path.with_suffix(".json")
        as_json.write_text(table.model_dump_json(), encoding="utf-8")
        read = read_table(path)
        assert read == read_table(as_json)
    reports = [one.report for one in read]
    assert [one.source_id for one in reports] == [row.source_id for row in drawn]
    assert [one.description for one in reports] == [row.description for row in drawn]
    assert [one.quantities for one in reports] == [row.quantities for row in drawn]
    assert [iso_of(one.happened_ns) for one in reports] == [row.time for row in drawn]


# As spreadsheets and editors write them --------------------------------------------------------

UMLAUTS = "source_id,time,severity,robot,description\na,2025-05-01T10:00:00Z,minor,c1,T\u00fcre\n"


@pytest.mark.parametrize(
    "data",
    [
        UMLAUTS.encode(),
        UMLAUTS.encode("utf-8-sig"),
        UMLAUTS.encode("utf-16"),
        b"\xfe\xff" + UMLAUTS.encode("utf-16-be"),
        ("sep=,\r\n" + UMLAUTS).encode(),
        ("sep=;\n" + UMLAUTS.replace(",", ";")).encode(),
        ("sep=\t\n" + UMLAUTS.replace(",", "\t")).encode(),
    ],
)
def test_a_table_is_read_however_it_was_saved(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(data)
    (one,) = read_csv(path)
    assert (one.report.description, one.report.source_id) == ("T\u00fcre", "a")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (UMLAUTS.encode("cp1252"), "line 2: is not UTF-8 text: byte 0xfc; save it as UTF-8"),
        (UMLAUTS.encode("utf-16")[:-1], "is cut short or no UTF-16; save it as UTF-8"),
        (UMLAUTS.replace(",", "\t").encode(), "its columns are divided by tab; save it with"),
        (UMLAUTS.replace(",", ";").encode(), "its columns are divided by ';'; save it with commas"),
        (("sep=,\n" + UMLAUTS.replace("minor", "minr")).encode(), "line 3, column severity: "),
    ],
)  # fmt: skip
def test_a_table_in_another_form_says_how_to_save_it(
    tmp_path: Path, data: bytes, said: str
) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(data)
    with pytest.raises(InputError, match=re.escape(f"{path}: {said}")):
        read_csv(path)


def test_a_time_to_come_is_named_with_its_line_and_nothing_is_added(log, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(UMLAUTS + "b,2235-03-01T09:30:00Z,minor,c1,x\n", encoding="utf-8")
    before = log.heads()
    with pytest.raises(InputError, match=re.escape(f"{path}: line 3, column time: 2235-03-01")):
        import_reports(log, path, by="Operator A")
    assert log.heads() == before


def test_a_spreadsheet_sees_that_a_table_is_utf_8(log, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(UMLAUTS.encode())
    import_reports(log, path, by="Operator A")
    export(log, tmp_path / "out.csv")
    data = (tmp_path / "out.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbfid,")
    assert "T\u00fcre".encode() in data


def test_a_newer_version_of_a_table_corrects_what_is_in_the_log(log, tmp_path: Path) -> None:
    header = "source_id,time,severity,category,robot,task,description\n"
    first = (
        "a,2025-05-01T10:00:00Z,minor,collision,c1,pick,x\nb,2025-05-02T10:00:00Z,minor,,c1,,y\n"
    )
    newer = "a,2025-05-01T11:00:00Z,major,,c2,,x\nb,2025-05-02T10:00:00Z,minor,,c1,,y\n"
    path = tmp_path / "table.csv"
    path.write_text(header + first, encoding="utf-8")
    import_reports(log, path, by="Operator A")
    path.write_text(header + newer, encoding="utf-8")
    before = log.heads()
    with pytest.raises(InputError, match="--as-corrections corrects that one"):
        import_reports(log, path, by="Operator A")
    assert log.heads() == before
    done = import_reports(log, path, by="Operator B", as_corrections=True)
    a, b = sorted(log.incidents(), key=lambda one: str(one.report.source_id))
    assert (done.added, done.known, done.corrected) == ((), 2, (a.name,))
    # An empty cell says nothing: task and category stay.
    shown = (iso_of(a.report.happened_ns), a.report.robot, a.report.task, a.severity, a.category)
    assert shown == ("2025-05-01T11:00:00Z", "c2", "pick", "major", "collision")
    assert [one.kind for one in a.records] == ["report", "correction", "reclassification"]
    assert [one.kind for one in b.records] == ["report"]
    before = log.heads()
    assert import_reports(log, path, by="Operator B", as_corrections=True).corrected == ()
    assert log.heads() == before


def test_what_a_log_exported_corrects_nothing_in_it(log, report, say, tmp_path: Path) -> None:
    first = say(log, report(severity="major", category="force_limit"))
    fields = {"fields": {"robot": "another"}, "reason": "typed wrong"}
    about = first.record_id
    log.record("correction", fields, by="Operator A", via=Via.CLI, about=about)
    minor = {"severity": "minor", "category": "collision", "reason": "seen again"}
    log.record("reclassification", minor, by="Operator A", via=Via.CLI, about=about)
    assert log.incident(about).counts_elsewhere
    path = tmp_path / "out.csv"
    export(log, path)
    before = log.heads()
    done = import_reports(log, path, by="Operator B", as_corrections=True)
    assert (done.known, done.corrected) == (1, ())
    assert log.heads() == before
