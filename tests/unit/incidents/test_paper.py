"""The incident log of a period as a page to print."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval_incidents import IncidentLog, open_log
from robo_eval_incidents.checkpoint import make_checkpoint
from robo_eval_incidents.kinds import (
    Action,
    Correction,
    Effectiveness,
    Exposure,
    Nil,
    Reclassification,
    Report,
    Review,
)
from robo_eval_incidents.paper import printed, write_paper
from robo_eval_incidents.record import Record

HOUR_NS = 3_600 * 10**9
MADE_NS = 1_773_000_000 * 10**9


def written(log: IncidentLog, since_ns: int | None = None, until_ns: int | None = None) -> str:
    return printed(log, since_ns, until_ns, made_ns=MADE_NS)


def text_of(page: str) -> str:
    """What a page says, without its marks and style."""
    body = re.sub(r"(?s)<style>.*?</style>", "", page)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


@pytest.fixture
def filled(
    log: IncidentLog, report: Callable[..., Report], say: Callable[..., Record]
) -> IncidentLog:
    """A log with hours, a shift and a major incident that was reviewed and acted upon."""
    first = report(
        severity="major",
        category="force_limit",
        quantities=[{"name": "force", "value": 182.5, "unit": "N", "limit": 140.0}],
        evidence=[{"uri": "incidents/a.mcap"}],
        answers={"medical_treatment": "no"},
        description="The gripper pressed on the fixture.\nNobody was near.",
    )
    start_ns = first.happened_ns - 100 * HOUR_NS
    hours = Exposure(
        robot="ur5e", side="real", mode="autonomous", task="push", start_ns=start_ns,
        seconds=360_000.0,
    )  # fmt: skip
    say(log, hours)
    say(log, Nil(start_ns=start_ns, end_ns=start_ns + 8 * HOUR_NS, note="quiet"))
    one = say(log, first)
    about = {"incident_id": one.record_id}
    say(log, Reclassification(severity="minor", category="force_limit", reason="no harm"), **about)
    say(log, Review(verdict="confirmed", note="seen on the trace"), by="R. Example", **about)
    action = say(log, Action(what="lower the force limit", owner="Operator A"), **about)
    check = Effectiveness(action_id=action.record_id, is_effective=True, how="50 trials")
    say(log, check, by="R. Example", **about)
    return log


def test_it_says_what_the_log_says(filled: IncidentLog) -> None:
    text = text_of(written(filled))
    for part in (
        "Period: everything that was recorded",
        "Written 2026-03-08 20:00:00 UTC. All times are UTC.",
        filled.meta["log_id"],
        filled.heads()["cell-1"].sha256,
        "none: nothing outside this log vouches for its records",
        "100.00 h",
        "force 182.5 N, limit 140 N",
        "The gripper pressed on the fixture.",
        "incidents/a.mcap",
        "Reclassified",
        "major → minor",
        "seen on the trace",
        "Verdict confirmed by R. Example; Operator A reported it or changed it last",
        "lower the force limit (Operator A): effective",
        "quiet",
    ):
        assert part in text, part


def test_rates_have_their_exact_interval(filled: IncidentLog) -> None:
    # One incident in 100 h: Garwood's 95 % interval is 0.0253 to 5.572 events.
    text = text_of(written(filled))
    assert "10, 95% interval 0.2532 to 55.72" in text


def test_without_hours_there_is_no_rate(
    log: IncidentLog, report: Callable[..., Report], say: Callable[..., Record]
) -> None:
    say(log, report())
    text = text_of(written(log))
    assert "none logged" in text
    assert "No hours were logged; there are no rates." in text
    assert "interval" not in text.split("Exposure No hours")[0].replace("exact interval", "")


def test_the_newest_checkpoint_is_named(filled: IncidentLog) -> None:
    checkpoint = make_checkpoint(filled, Ed25519PrivateKey.generate(), by="R. Example")
    filled.file(Nil(start_ns=1, end_ns=2), by="Operator A", via=next(iter(filled.records())).via)
    text = text_of(written(filled))
    assert checkpoint.sha256 in text
    assert checkpoint.signer in text
    assert ", 1 record since" in text


def test_only_the_period_is_in_it(
    log: IncidentLog, report: Callable[..., Report], say: Callable[..., Record]
) -> None:
    for day in range(3):
        at_ns = report().happened_ns + day * 24 * HOUR_NS
        say(log, report(happened_ns=at_ns, description=f"of day {day}"))
        say(log, Nil(start_ns=at_ns, end_ns=at_ns + HOUR_NS, note=f"shift {day}"))
    since_ns = report().happened_ns + 23 * HOUR_NS
    text = text_of(written(log, since_ns, since_ns + 24 * HOUR_NS))
    assert set(re.findall(r"of day \d", text)) == {"of day 1"}
    assert re.findall(r"shift \d", text) == ["shift 1"]
    with pytest.raises(InputError, match="not after its begin"):
        written(log, since_ns, since_ns)


def test_a_period_with_too_many_incidents_is_refused(
    filled: IncidentLog,
    report: Callable[..., Report],
    say: Callable[..., Record],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("robo_eval_incidents.paper.MOST_INCIDENTS", 1)
    assert written(filled)
    say(filled, report())
    with pytest.raises(InputError, match="choose a shorter one, or export it as CSV"):
        written(filled)


def test_rates_and_exposure_come_first_and_digests_last(filled: IncidentLog) -> None:
    text = text_of(written(filled))
    parts = ("safety score", "Exposure", "Shifts without incidents", "seen on the trace",
             "The log Log", filled.heads()["cell-1"].sha256)  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_the_list_says_what_happened_in_its_first_words(filled: IncidentLog) -> None:
    text = text_of(written(filled))
    listed = text[text.index("Number Happened") : text.index("Shifts without incidents")]
    assert "force limit: The gripper pressed on the fixture. Nobody was near." in listed
    assert "Who was in control unknown" in text


def test_what_was_corrected_is_listed_as_it_counts(
    log: IncidentLog, report: Callable[..., Report], say: Callable[..., Record]
) -> None:
    said = "The forearm hit the door of the cell, bent it, and stopped there; nobody was near."
    one = say(log, report(severity="major", robot="arm_3", description=said))
    later_ns = report().happened_ns + HOUR_NS
    fields = {"robot": "arm_1", "happened_ns": later_ns}
    say(log, Correction(fields=fields, reason="wrong arm"), incident_id=one.record_id)
    text = text_of(written(log))
    listed = text[text.index("Number Happened") : text.index("Shifts without incidents")]
    assert "arm_3 (real)" in listed
    assert "arm_1" not in listed
    assert "bent it, and stopped there" in listed
    assert "Counts as arm_3 (real), 2026-02-25 06:13:20 UTC, until it is reviewed" in text
    say(log, Review(verdict="confirmed", note="seen"), by="R. Example", incident_id=one.record_id)
    assert "until it is reviewed" not in text_of(written(log))


def test_the_same_content_is_the_same_page(
    log: IncidentLog, report: Callable[..., Report], say: Callable[..., Record]
) -> None:
    say(log, report())
    assert written(log) == written(log)


def test_every_script_is_written_as_it_is(
    log: IncidentLog, report: Callable[..., Report], say: Callable[..., Record]
) -> None:
    said = "Größe, Łódź, Ελλάδα, Київ, 停止 🤖, إيقاف, a\N{COMBINING ACUTE ACCENT}"
    say(log, report(description=said, robot="ρομπότ"), by="Ω. Приклад")
    text = text_of(written(log))
    for part in (said, "ρομπότ", "Ω. Приклад"):
        assert part in text


def test_markup_is_text(
    log: IncidentLog, report: Callable[..., Report], say: Callable[..., Record]
) -> None:
    said = "**bold** <script>alert(1)</script> {pages} {nb} \ufffd\ufffd ) Tj ET /JS (app.alert(1))"
    say(log, report(description=said))
    page = written(log)
    assert "<script" not in page
    assert "**bold** <script>alert(1)</script> {pages}" in text_of(page)


def test_an_empty_log_has_a_document_too(path: Path, log: IncidentLog) -> None:
    with open_log(path, read_only=True) as opened:
        text = text_of(written(opened))
    assert "No incident was recorded for this period." in text
    assert "None was reported." in text


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path, log: IncidentLog) -> None:
    write_paper(log, tmp_path / "log.html")
    assert (tmp_path / "log.html").read_text().startswith("<!doctype html>")
    with pytest.raises(TrialDirectoryError, match="no-such"):
        write_paper(log, tmp_path / "no-such" / "log.html")
