"""The incidents of a trial in its report: what, when, how far, and the trace around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from robo_eval.report.incidents import incident_list
from robo_eval_incidents import open_log
from robo_eval_incidents.kinds import Attachment, Evidence, Nil, Report, Review
from robo_eval_incidents.words import Category, Severity, Via

HAPPENED_NS = 1_772_000_000 * 10**9


def report(number: int = 0, **changed: object) -> Report:
    fields = {
        "happened_ns": HAPPENED_NS + number * 10**9,
        "robot": "arm",
        "side": "twin",
        "severity": Severity.NEAR_MISS,
        "category": Category.EMERGENCY_STOP,
        "description": "The emergency stop was pressed.\n- estop: It is pressed <b>now</b>.",
        "episode_id": "e1",
    }
    return Report.model_validate(fields | changed)


def test_a_trial_without_a_log_has_no_list(tmp_path: Path) -> None:
    assert incident_list(tmp_path) is None
    with open_log(tmp_path / "incidents.db", make=True):
        pass
    assert incident_list(tmp_path) is None


def test_an_incident_is_a_line_with_a_link_to_its_trace(tmp_path: Path) -> None:
    with open_log(tmp_path / "incidents.db", station="cell", make=True) as log:
        first = log.file(report(), by="robo-eval", via=Via.RULE).record_id
        log.file(report(1, side="real", episode_id=None), by="R. Example", via=Via.CLI)
        uri, photo = f"incidents/{first}-0123456789ab.mcap", "incidents/0123456789abcdef-gate.jpg"
        body = Attachment(evidence=(Evidence(uri=photo), Evidence(uri=uri)))
        log.file(body, by="robo-eval", via=Via.RULE, incident_id=first)
    (tmp_path / "incidents").mkdir()
    (tmp_path / photo).write_bytes(b"")
    assert incident_list(tmp_path).lines[0].link == ""  # there is no such file
    (tmp_path / uri).write_bytes(b"")
    found = incident_list(tmp_path)
    assert found.text == "2 incidents in the log. Drafted by a rule and not reviewed: 1."
    one, other = found.lines
    assert (one.name, one.severity, one.category) == ("cell/2", "near miss", "emergency stop")
    assert one.what == "The emergency stop was pressed. estop: It is pressed <b>now</b>."
    assert (one.when, one.where, one.status) == (("2026-02-25", "06:13:20"), "arm (twin)", "draft")
    assert one.link == f"../{uri}"
    assert (other.where, other.status, other.link) == ("arm", "reported", "")


def test_the_worst_are_listed_where_there_are_too_many(tmp_path: Path) -> None:
    with open_log(tmp_path / "incidents.db", make=True) as log:
        for number in range(101):
            severity = Severity.MAJOR if number == 100 else Severity.NEAR_MISS
            log.file(report(number, severity=severity), by="robo-eval", via=Via.RULE)
    found = incident_list(tmp_path)
    assert len(found.lines) == 100
    assert found.lines[-1].severity == "major"
    assert found.more == "The 100 worst are listed, 1 more is not."


def test_that_nothing_happened_is_said(tmp_path: Path) -> None:
    with open_log(tmp_path / "incidents.db", make=True) as log:
        log.file(Nil(start_ns=1, end_ns=2), by="robo-eval", via=Via.RULE)
    found = incident_list(tmp_path)
    assert (found.lines, found.more) == ([], "")
    assert found.text == "No incident is in the log; it was said that nothing happened."


def test_what_was_dismissed_is_shown_as_that(tmp_path: Path) -> None:
    with open_log(tmp_path / "incidents.db", make=True) as log:
        first = log.file(report(), by="robo-eval", via=Via.RULE).record_id
        review = Review(verdict="dismissed", note="A drill.")
        log.file(review, by="R. Example", via=Via.CLI, incident_id=first)
    found = incident_list(tmp_path)
    assert found.lines[0].status == "dismissed"
    assert found.text == "1 incident in the log."


@pytest.mark.parametrize("name", ["<script>", "../../etc"])
def test_no_name_of_a_robot_gets_out_of_its_place(tmp_path: Path, name: str) -> None:
    from robo_eval.page.render import environment

    with open_log(tmp_path / "incidents.db", make=True) as log:
        log.file(report(robot=name), by="robo-eval", via=Via.RULE)
    parts = environment().get_template("parts.html.j2").module
    page = str(parts.incidents_table(incident_list(tmp_path).lines))
    assert "<script>" not in page
    assert "<b>now" not in page
    assert "href" not in page
