"""By when somebody outside has to be told of an incident, and what stops that clock."""

from __future__ import annotations

import time
from datetime import date

import pytest

from robo_eval.core.errors import InputError
from robo_eval_incidents.clocks import due, read_clocks
from robo_eval_incidents.kinds import Notice, Reclassification, Review
from robo_eval_incidents.notify import NotSentError, Settings, events, notify
from robo_eval_incidents.text import span_of
from robo_eval_incidents.verify import verify_log

HOUR = 3_600 * 10**9
CLOCKS = """
[[major]]
hours = 24
to = "the inspectorate"
counted_from = "happened"
note = "our agreement of May"

[[major]]
hours = 48
to = "the insurer"

[person_contact]
hours = 2
to = "The  inspectorate"
counted_from = "reviewed"
"""


@pytest.fixture
def clocks(path, log):
    """Writes the file of clocks beside the log."""

    def write(text: str = CLOCKS):
        found = path.with_name("clocks.toml")
        found.write_text(text)
        return found

    return write


def test_without_a_file_there_are_no_clocks(log, say, report):
    say(log, report(severity="major"))
    assert due(log) == []


def test_clocks_run_from_the_event_its_report_and_its_review(log, say, report, clocks):
    clocks()
    began = 1_772_000_000 * 10**9
    one = say(log, report(severity="major", category="person_contact", happened_ns=began))
    say(log, report(severity="minor", happened_ns=began))
    say(log, report(severity="major", happened_ns=began, side="twin"))
    assert [(d.incident.name, d.kind, d.clock.to, d.due_ns) for d in due(log)] == [
        (one.name, "major", "the inspectorate", began + 24 * HOUR),
        (one.name, "major", "the insurer", one.at.time_ns + 48 * HOUR),
    ]
    review = say(
        log, Review(verdict="confirmed", note="seen"), by="B", incident_id=one.incident_id or
        one.record_id,
    )  # fmt: skip
    (contact,) = [d for d in due(log) if d.kind == "person_contact"]
    assert contact.due_ns == review.at.time_ns + 2 * HOUR
    assert due(log, robot="ur5e") == due(log)


def test_of_a_day_the_begin_counts_and_of_an_unknown_time_the_report(log, say, report, clocks):
    clocks()
    begin, end = span_of("2026-02-27")
    day = say(log, report(severity="major", happened_ns=begin, until_ns=end))
    never = say(log, report(severity="major", happened_ns=0, until_ns=span_of("unknown")[1]))
    ends = {d.incident.name: d.due_ns for d in due(log) if d.clock.hours == 24}
    assert ends == {day.name: begin + 24 * HOUR, never.name: never.at.time_ns + 24 * HOUR}


def test_a_record_that_they_were_told_stops_the_clock(log, path, say, report, clocks):
    clocks()
    one = say(log, report(severity="major"))
    first = due(log)[0]
    assert first.is_late(first.due_ns + HOUR)
    assert not first.is_late(first.due_ns)
    assert "overdue by 1 h" in first.text(first.due_ns + HOUR)
    assert first.text(first.due_ns + 5710 * HOUR).endswith("overdue by 237 days")
    notice = Notice(what="reported", to="The Inspectorate", text="their 4711")
    say(log, notice, by="Operator B", incident_id=one.record_id)
    insurer, done = due(log)
    assert (insurer.clock.to, insurer.told) == ("the insurer", None)
    assert done.told is not None
    assert not done.is_late(done.due_ns + HOUR)
    assert "was told, says Operator B" in done.text(0)
    assert done.as_dict(0)["told_by"] == "Operator B"
    assert verify_log(path).ok


def test_what_counts_no_more_or_happened_before_has_no_clock(log, say, report, clocks):
    clocks()
    one = say(log, report(severity="major", happened_ns=span_of("2026-02-27")[0]))
    clocks("since = 2026-02-28\n" + CLOCKS)
    assert due(log) == []
    clocks("since = 2026-02-27\n" + CLOCKS)
    assert len(due(log)) == 2
    milder = Reclassification(severity="near_miss", category="other", reason="nobody was near")
    say(log, milder, by="B", incident_id=one.record_id)
    assert len(due(log)) == 2, "a milder severity counts once it is reviewed"
    for person in ("C", "D"):
        say(log, Review(verdict="dismissed", note="a test"), by=person, incident_id=one.record_id)
    assert due(log) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("\n[serious]\nhours = 1\nto = 'x'\n", "line 2: unknown kind 'serious'.*major"),
        (CLOCKS.replace("note", "notes"), "line 6: .*unknown key 'notes'; did you mean 'note'"),
        (CLOCKS.replace("hours = 2\n", "hour = 2\n"), "line 13: .*hour"),
        (CLOCKS.replace("hours = 48", "hours = 0"), "line 9: .*hours"),
        (CLOCKS.replace('"reviewed"', '"closed"'), "line 15: .*counted_from"),
        (CLOCKS.replace('to = "the insurer"\n', ""), "line 8: .*to"),
        ("since = 3\n" + CLOCKS, "line 1: since is a day like 2026-03-01"),
        ("[major\n", "is not TOML"),
        ("major = 3\n", "line 1: "),
    ],
)
def test_what_is_no_file_of_clocks_is_refused_by_line(clocks, text, problem):
    path = clocks(text)
    with pytest.raises(InputError, match=rf"clocks\.toml: {problem}"):
        read_clocks(path)


def test_notify_tells_of_a_clock_once_and_again_when_it_is_over(log, say, report, clocks):
    clocks(CLOCKS.replace("hours = 24", "hours = 1"))
    now_ns = time.time_ns()
    say(log, report(severity="major", happened_ns=now_ns - HOUR // 2))
    found = list(events(log, clocks=due(log)))
    assert [one.what for one in found] == ["clock", "clock"]
    assert "tell the inspectorate by" in found[0].text
    say(log, report(severity="major", happened_ns=now_ns - 2 * HOUR))
    late = next(events(log, clocks=due(log)))
    assert (late.what, late.as_dict(None)["what"]) == ("late", "late")
    assert late.record_id("x") != found[0].record_id("x")


def test_broken_clocks_keep_nobody_from_what_is_critical(log, say, report, clocks):
    clocks("[serious]\n")
    say(log, report(severity="critical"))
    settings = Settings.model_validate({"webhook": [{"url": "http://127.0.0.1:9/x"}]})
    with pytest.raises(NotSentError, match=r"unknown kind 'serious'.*cannot be told"):
        notify(log, settings, today=date(2026, 3, 1))


def test_the_page_shows_clocks(web, browse):
    folder = web.log.evidence_folder
    assert folder is not None
    (folder / "clocks.toml").write_text(CLOCKS)
    browse("operator").report(severity="major")
    page = browse("auditor").get("/todo")
    assert page.status_code == 200
    assert "Tell the inspectorate by" in page.text
    assert "our agreement of May" in page.text
    assert "inspectorate" not in browse("auditor").get("/todo?owner=x").text
    (folder / "clocks.toml").write_text("[serious]\n")
    page = browse("auditor").get("/todo")
    assert page.status_code == 422
    assert "unknown kind" in page.text


@pytest.mark.parametrize("hours", ["true", '"2"', "[2]", "nan", "inf"])
def test_hours_of_a_clock_are_a_number(clocks, hours):
    path = clocks(f'[major]\nto = "a"\nhours = {hours}\n')
    with pytest.raises(InputError, match=r"clocks\.toml: line 3: hours: "):
        read_clocks(path)
