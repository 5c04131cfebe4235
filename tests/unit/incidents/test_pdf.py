"""The incident log of a period as PDF."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pypdf import PdfReader

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
from robo_eval_incidents.pdf import write_pdf
from robo_eval_incidents.record import Record

HOUR_NS = 3_600 * 10**9
MADE_NS = 1_773_000_000 * 10**9


def written(log: IncidentLog, since_ns: int | None = None, until_ns: int | None = None) -> bytes:
    out = io.BytesIO()
    write_pdf(log, out, since_ns, until_ns, made_ns=MADE_NS)
    return out.getvalue()


def pages_of(data: bytes) -> list[str]:
    return [page.extract_text() for page in PdfReader(io.BytesIO(data)).pages]


def text_of(data: bytes) -> str:
    return " ".join("\n".join(pages_of(data)).split())


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
        "Written 2026-03-08 20:00:00. All times are UTC.",
        filled.meta["log_id"],
        filled.heads()["cell-1"].sha256,
        "none: nothing outside this log vouches for its records",
        "100.00 h",
        "force 182.5 N (limit 140 N)",
        "The gripper pressed on the fixture.",
        "incidents/a.mcap",
        "Reclassified",
        "major → minor",
        "seen on the trace",
        "confirmed by",
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
    text = text_of(written(filled)).replace(" ", "")
    assert checkpoint.sha256 in text
    assert checkpoint.signer.replace(" ", "") in text
    assert "1recordssince" in text


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
    monkeypatch.setattr("robo_eval_incidents.pdf.MOST_INCIDENTS", 1)
    assert written(filled)
    say(filled, report())
    with pytest.raises(InputError, match="choose a shorter one, or export it as CSV"):
        written(filled)


def test_rates_and_exposure_come_first_and_digests_last(filled: IncidentLog) -> None:
    pages = pages_of(written(filled))
    assert "interval" in pages[0]
    assert "Exposure\n" in pages[0]
    text = " ".join("\n".join(pages).split())
    parts = ("safety score", "Shifts without incidents", "seen on the trace", "The log Log")
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert filled.heads()["cell-1"].sha256 not in pages[0]


def test_the_list_says_what_happened_in_its_first_words(filled: IncidentLog) -> None:
    text = text_of(written(filled))
    listed = text[text.index("Number Happened") : text.index("Shifts without incidents")]
    assert "force limit: The gripper pressed on the fixture. Nobody was near." in listed
    assert "ur5e (real), in control: unknown" in text


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
    assert "bent it, and stopped …" in listed
    assert "nobody was near" not in listed
    assert "Counts as arm_3 (real), 2026-02-25 06:13:20 until reviewed" in text
    say(log, Review(verdict="confirmed", note="seen"), by="R. Example", incident_id=one.record_id)
    assert "until reviewed" not in text_of(written(log))


def test_pages_are_numbered_and_the_same_content_is_the_same_bytes(
    log: IncidentLog, report: Callable[..., Report], say: Callable[..., Record]
) -> None:
    for number in range(12):
        say(log, report(description=f"incident {number}: " + "word " * 200))
    data = written(log)
    assert written(log) == data
    pages = pages_of(data)
    assert len(pages) > 3
    for number, page in enumerate(pages, start=1):
        assert f"page {number} of {len(pages)}" in page
    assert len(PdfReader(io.BytesIO(data)).outline) > 4


def test_many_scripts_are_written_and_others_do_no_harm(
    log: IncidentLog, report: Callable[..., Report], say: Callable[..., Record]
) -> None:
    said = "Größe, Łódź, Ελλάδα, Київ, 停止 🤖 \N{COMBINING ACUTE ACCENT}"
    say(log, report(description=said, robot="ρομπότ"), by="Ω. Приклад")
    say(log, report(description="x" * 8_000))
    text = text_of(written(log))
    for part in ("Größe", "Łódź", "Ελλάδα", "Київ", "ρομπότ", "Ω. Приклад"):
        assert part in text
    assert "U+505C, U+6B62, U+1F916" in text


def test_markup_is_text(
    log: IncidentLog, report: Callable[..., Report], say: Callable[..., Record]
) -> None:
    said = "**bold** <script>alert(1)</script> {pages} {nb} \ufffd\ufffd ) Tj ET /JS (app.alert(1))"
    say(log, report(description=said))
    data = written(log)
    text = text_of(data)
    assert "**bold** <script>alert(1)</script>" in text
    assert "{pages} {nb}" in text
    assert b"/JavaScript" not in data


def test_an_empty_log_has_a_document_too(path: Path, log: IncidentLog) -> None:
    with open_log(path, read_only=True) as opened:
        text = text_of(written(opened))
    assert "No incident was recorded for this period." in text
    assert "None was reported." in text


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path, log: IncidentLog) -> None:
    write_pdf(log, tmp_path / "log.pdf", made_ns=MADE_NS)
    assert (tmp_path / "log.pdf").read_bytes() == written(log)
    with pytest.raises(TrialDirectoryError, match="no-such"):
        write_pdf(log, tmp_path / "no-such" / "log.pdf")
