"""How deviations from the plan are printed for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from robo_eval.cli.output import say

if TYPE_CHECKING:
    from robo_eval.metrics.deviation import Deviation
    from robo_eval.metrics.summary import TrialSummary

_MOST: Final = 3
"""Reasons and episodes that are printed; the JSON has more."""


def print_deviations(summary: TrialSummary) -> None:
    """Each deviation in a line; nothing if nothing was planned."""
    if summary.deviations is None:
        return
    if not summary.deviations:
        say("deviations from the plan: none")
        return
    say("deviations from the plan:")
    for found in summary.deviations:
        say(f"  {_line(found)}")


def _line(found: Deviation) -> str:
    side = f" ({found.side})" if found.side else ""
    parts = [f"{found.what}{side}: {found.count}"]
    reasons = [f"{n} {reason}" for reason, n in list(found.reasons.items())[:_MOST]]
    if len(found.reasons) > _MOST:
        reasons.append("...")
    parts += [part for part in ("; ".join(reasons), found.text) if part]
    names = ", ".join(found.episodes[:_MOST])
    if names:
        parts.append(f"{names}, ..." if found.count > _MOST else names)
    return "; ".join(parts)
