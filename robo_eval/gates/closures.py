"""Whether a policy made a new tool its own: the expansion closure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from robo_eval.core.estimate import Estimate
from robo_eval.gates.axes.draws import estimate_of_first, left_problem, share_and_draws, tallied

if TYPE_CHECKING:
    from robo_eval.gates.audits import Status
    from robo_eval.log.evidence import ToolTrial

_DRAWS: Final = 20_000
_NEEDED: Final = (
    ("before", "needs"), ("after", "needs"), ("before", "control"), ("after", "control"),
    ("ablated", "needs"),
)  # fmt: skip
"""Stages and groups of tasks a closure is shown in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """What one new tool brought.

    Attributes:
        tool: The end-effector, tool or perception pipeline.
        status: Whether it closes; `missing` if a stage was not played.
        gain: Success that tasks needing it gained, beyond what other tasks gained meanwhile.
        left: What of it is left once the change is taken out again.
        reason: In words.
    """

    tool: str
    status: Status
    gain: Estimate
    left: Estimate
    reason: str


def expansions_of(
    trials: Iterable[ToolTrial], *, share_left: float, level: float = 0.95, seed: int = 0
) -> tuple[Expansion, ...]:
    """The expansion closure of each new tool.

    A tool closes if the policy brought it in by itself, if the tasks that need it gained more than
    tasks that do not (difference in differences, lower end above 0), and if taking exactly that
    change out again takes the gain away: what is left has an interval that includes 0, and is at
    most a share of the gain.

    Args:
        trials: Episodes before, after and without the tool.
        share_left: Of the gain, that may be left after the change is taken out.
        level: Coverage of the intervals.
        seed: Seed of the draws.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.4. The intervals are quantiles of draws from
        the Jeffreys posteriors of the rates: Brown, Cai and DasGupta (2001), Statistical Science
        16:101-133.
    """
    by_tool: dict[str, list[ToolTrial]] = defaultdict(list)
    for trial in trials:
        by_tool[trial.tool].append(trial)
    return tuple(
        _expansion(tool, found, share_left, level, seed) for tool, found in sorted(by_tool.items())
    )


def _expansion(
    tool: str, trials: list[ToolTrial], share_left: float, level: float, seed: int
) -> Expansion:
    counts = tallied(trials, lambda trial: (trial.stage, trial.group))
    absent = [cell for cell in _NEEDED if cell not in counts]
    if absent:
        text = ", ".join(f"{stage}/{group}" for stage, group in absent)
        nothing = Estimate.missing(reason=f"no episodes of {text}", unit="ratio")
        return Expansion(
            tool=tool, status="missing", gain=nothing, left=nothing,
            reason=f"{tool}: not played: {text}",
        )  # fmt: skip
    rng = np.random.default_rng(seed)
    shares = {cell: share_and_draws(*counts[cell], _DRAWS, rng) for cell in _NEEDED}
    n = sum(counts[cell][1] for cell in _NEEDED)
    own = shares["after", "needs"] - shares["before", "needs"]
    others = shares["after", "control"] - shares["before", "control"]
    without = shares["ablated", "needs"] - shares["before", "needs"]
    gain = estimate_of_first(own - others, n=n, level=level)
    left = estimate_of_first(without, n=n, level=level)
    helped = sorted({trial.installed_by for trial in trials if trial.installed_by != "policy"})
    problem = _problem(gain, left, share_left, helped)
    return Expansion(
        tool=tool, status="fail" if problem else "pass", gain=gain, left=left,
        reason=f"{tool}: {problem or f'gain {gain}, {left} left without it'}",
    )  # fmt: skip


def _problem(gain: Estimate, left: Estimate, share_left: float, helped: list[str]) -> str:
    """Why a closure fails; empty if it does not."""
    assert gain.value is not None
    assert gain.low is not None
    if helped:
        return f"brought in by {', '.join(helped)}, not by the policy itself"
    if gain.low <= 0.0:
        return f"gain {gain}: its lower end is not above 0"
    return left_problem(left, share_left * gain.value, share_left)
