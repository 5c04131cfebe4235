"""Evidence of another time than the episodes' is found, and the file is named."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest

from robo_eval.gates.audits import window_audit
from robo_eval.gates.profile import Window
from robo_eval.log.evidence import Checkpoint, Evidence, EvidenceDeclaration, Incident, Pause

SETTINGS = Window(grace_days=1, declared_days=31)
FIRST = datetime(2026, 3, 10, tzinfo=UTC)


def ns(month: int, day: int, hour: int = 0) -> int:
    return int(datetime(2026, month, day, hour, tzinfo=UTC).timestamp()) * 10**9


def episodes(**changed: Any) -> pd.DataFrame:
    """Ten days from 10 March on, the last episode one hour long."""
    columns: dict[str, Any] = {
        "start_ns": [ns(3, day) for day in range(10, 20)],
        "duration_s": [60.0] * 9 + [3600.0],
        **changed,
    }
    return pd.DataFrame(columns)


def checkpoint(time_ns: int, line: int = 2, policy: str | None = None) -> Checkpoint:
    return Checkpoint(
        line=line, time_ns=time_ns, family="pick", capability=0.5, resources=1.0, policy=policy
    )


def declaration(time_ns: int) -> EvidenceDeclaration:
    return EvidenceDeclaration(
        line=2, what="delivery", value=1.0, low=None, high=None, n=3, by="lab", time_ns=time_ns,
        document="report.pdf",
    )  # fmt: skip


def audit(evidence: Evidence, **changed: Any) -> tuple[str, str]:
    found = window_audit(episodes(**changed), evidence, SETTINGS, "arm")
    assert found.id == "window"
    return found.status, found.reason


def test_notes_of_the_same_days_pass() -> None:
    inside = Evidence(checkpoints=(checkpoint(ns(3, 9)), checkpoint(ns(3, 20), line=3)))
    assert audit(inside) == ("pass", "2 dated notes, 2026-03-10 to 2026-03-19")
    assert audit(Evidence())[0] == "pass"


@pytest.mark.parametrize(
    ("when", "said"),
    [
        (ns(2, 8), "line 2 is of 2026-02-08, 30.0 days before the episodes, 2026-03-10"),
        (ns(3, 21, 2), "line 2 is of 2026-03-21, 2.0 days after the episodes, 2026-03-10"),
    ],
)
def test_a_checkpoint_of_another_window_is_named_with_its_file(when: int, said: str) -> None:
    files = {"checkpoints": "/trial/checkpoints.csv"}
    found = Evidence(checkpoints=(checkpoint(when),), files=files)
    status, reason = audit(found)
    assert status == "fail"
    assert reason.startswith(f"checkpoints.csv: {said}")


def test_declarations_may_come_later_than_measurements() -> None:
    assert audit(Evidence(declarations=(declaration(ns(4, 15)),)))[0] == "pass"
    status, reason = audit(Evidence(declarations=(declaration(ns(5, 15)),)))
    assert status == "fail"
    assert reason.startswith("declarations.csv: line 2 is of 2026-05-15")
    incident = Incident(line=2, incident_id="i1", severity="minor", time_ns=ns(4, 15))
    assert audit(Evidence(incidents=(incident,)))[0] == "fail"


def test_a_pause_of_another_year_is_named() -> None:
    own = [Pause(line=line, time_ns=when, duration_s=600.0) for line, when in
           enumerate((ns(3, 12), ns(3, 12) + 4 * 365 * 86_400 * 10**9), start=2)]  # fmt: skip
    assert audit(Evidence(pauses=(own[0],)))[0] == "pass"
    status, reason = audit(Evidence(pauses=tuple(own)))
    assert (status, "pauses.csv: line 3 is of 2030-03-11" in reason) == ("fail", True)


def test_notes_on_other_policies_and_without_a_date_do_not_count() -> None:
    others = Evidence(
        checkpoints=(checkpoint(ns(1, 1), policy="other"),),
        incidents=(Incident(line=2, incident_id="i1", severity="minor"),),
    )
    assert audit(others) == ("pass", "no note has a date")


def test_episodes_without_a_time_show_nothing() -> None:
    found = Evidence(checkpoints=(checkpoint(ns(3, 10)),))
    assert audit(found, start_ns=[None] * 10)[0] == "missing"
