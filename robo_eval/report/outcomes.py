"""How episodes ended, and what the log tells of those that ended badly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pandas as pd

from robo_eval.core.kinds import Arm, EndReason, Side
from robo_eval.core.schedule import injections_of, schedule
from robo_eval.page.words import spaced
from robo_eval.report.model import EndCounts, Result, Trouble

if TYPE_CHECKING:
    from robo_eval.core.plan import TrialPlan

_QUIET: Final = (EndReason.SUCCESS, EndReason.FAILURE, EndReason.TIMEOUT)
"""Ends that need no explanation."""
_MOST_TROUBLES: Final = 12
_MOST_CHARACTERS: Final = 300


def outcomes(results: Sequence[Result], frame: pd.DataFrame) -> list[EndCounts]:
    """How the main episodes of each policy ended, one count for each planned episode.

    Args:
        results: The policies, with the counts of metrics.
        frame: Episodes, one row per attempt.
    """
    main = frame[frame["arm"] == Arm.MAIN.value]
    found = []
    for result in results:
        own = _own(main, result)
        ends = Counter(
            str(end)
            for end, success in zip(own["end_reason"], own["success"], strict=True)
            if not pd.isna(success) and not success
        )
        found.append(
            EndCounts(
                policy=result.policy,
                succeeded=result.numbers.n_success,
                failed={spaced(end): n for end, n in sorted(ends.items())},
                missing=_spaced(result.numbers.coverage.missing),
                interventions=int(own["interventions"].fillna(0).sum()),
            )
        )
    return found


def troubles(results: Sequence[Result], frame: pd.DataFrame, plan: TrialPlan) -> list[Trouble]:
    """What the log says of faults, stops and void attempts, the most frequent first."""
    found: Counter[tuple[str, str, str]] = Counter()
    planned = _stopped_by_plan(plan)
    for result in results:
        own = _own(frame, result)
        told = zip(own["base_id"], own["end_reason"].astype(str), own["end_detail"], strict=True)
        for name, end, detail in told:
            if end not in _QUIET:
                text = " ".join(detail.split()) if isinstance(detail, str) else ""
                is_planned = end == EndReason.SAFETY_STOP.value and name in planned
                by_plan = " that the plan had provoked" if is_planned else ""
                found[result.policy, spaced(end) + by_plan, text[:_MOST_CHARACTERS]] += 1
    return [
        Trouble(policy=policy, end=end, detail=detail, n=n)
        for (policy, end, detail), n in found.most_common(_MOST_TROUBLES)
    ]


def _stopped_by_plan(plan: TrialPlan) -> frozenset[str]:
    """Episodes in which the plan has the emergency stop pressed."""
    episodes = schedule(plan, Side.TWIN) if plan.injections else ()
    return frozenset(
        one.base_id
        for one in episodes
        if any(injection.fault == "estop" for injection in injections_of(plan, one))
    )


def _own(frame: pd.DataFrame, result: Result) -> pd.DataFrame:
    numbers = result.numbers
    return frame[(frame["side"] == numbers.side) & (frame["policy"] == numbers.policy)]


def _spaced(counts: Mapping[str, int]) -> dict[str, int]:
    return {spaced(name): n for name, n in counts.items()}
