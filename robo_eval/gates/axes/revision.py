"""The self-revision axis: what the changes of a policy to itself were worth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval import formulas
from robo_eval.core.defaults import LEVEL
from robo_eval.core.estimate import Estimate
from robo_eval.formulas.composite import AXES
from robo_eval.gates.axes.draws import (
    JEFFREYS,
    Resampled,
    estimate_of_draws,
    estimate_of_first,
    jeffreys_draws,
    left_problem,
)

if TYPE_CHECKING:
    from robo_eval.gates.axes.settings import AxisSettings
    from robo_eval.log.evidence import Revision

Array = NDArray[np.float64]

_NOT_TRIED: Final = "not ablated"
SHARE_LEFT: Final = 0.20
"""Of a gain, that may be left once the change is taken back. This project's choice."""
_RATIO: Final = "ratio"
_POLICY: Final = "policy"
_ARMS: Final = ("before", "after", "control_before", "control_after")
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionResult:
    """One change of a policy to itself.

    Attributes:
        revision: Its name.
        gain: What it gained beyond a frozen copy.
        left: What is left of it once the change is taken back; None where that was not tried.
        autonomy: How much of it was the policy's own doing, in [0, 1].
        counts: Whether it counts.
        reason: Why, or why not.
    """

    revision: str
    gain: Estimate
    left: Estimate | None
    autonomy: float
    counts: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionAxis:
    """The axis, and the changes it is made of.

    Attributes:
        measured: The axis.
        revisions: Every change, in order of time, whether it counts or not.
    """

    measured: Resampled
    revisions: tuple[RevisionResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """One change with the draws of its gain, shape (resamples,)."""

    result: RevisionResult
    gain: float
    gains: Array
    episodes: int


def revisions_measured(
    revisions: Sequence[Revision] | None,
    settings: AxisSettings,
    *,
    share_left: float = SHARE_LEFT,
    level: float = LEVEL,
    resamples: int = 2000,
    seed: int = 0,
) -> RevisionAxis:
    """Self-revision: gains over a frozen copy, each weighted by how much was the policy's own.

    A change is admissible if all arms had equal resources, its diff and its held-out episodes are
    named, and a check decided on it. An admissible gain counts only if taking the change back takes
    it away: the interval of what is left holds 0, and what is left is at most a share of the gain.
    An admissible loss subtracts, whether or not it was taken back. Of several lines about one
    change that with the smallest gain counts, so that no gain counts twice; this is the project's
    choice. The arms are taken as independent, though they share their episodes, which makes the
    intervals too wide rather than too narrow.

    Args:
        revisions: The changes; empty if none happened, None if no record was kept.
        settings: Scale and weights.
        share_left: Of a gain, that may be left once the change is taken back.
        level: Coverage of the intervals.
        resamples: Draws from the Jeffreys posteriors of the arms.
        seed: Seed of the draws.

    Returns:
        The axis, 0 if no change counts, as this is a measurement too; and every change.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.1 and 3.4.
    """
    if revisions is None:
        reason = "no revisions.csv; a file with its line of column names alone says there were none"
        return RevisionAxis(
            measured=Resampled(raw=Estimate.missing(reason=reason, unit=_RATIO, method=JEFFREYS))
        )
    rng = np.random.default_rng([seed, AXES.index("R")])
    repeats = _repeats(revisions)
    ordered = sorted(revisions, key=lambda one: (one.time_ns, one.line))
    events = [
        _event(one, settings, share_left, level, repeats.get(id(one), ""), resamples, rng)
        for one in ordered
    ]
    counted = [event for event in events if event.result.counts]
    return RevisionAxis(
        measured=_measured(events, counted, settings, level, resamples),
        revisions=tuple(event.result for event in events),
    )


def _measured(
    events: Sequence[_Event],
    counted: Sequence[_Event],
    settings: AxisSettings,
    level: float,
    resamples: int,
) -> Resampled:
    parts = {
        name: Estimate(
            value=float(len(some)), low=float(len(some)), high=float(len(some)), n=len(some),
            method="counted", unit="revisions",
        )
        for name, some in (("revisions", events), ("counted", counted))
    }  # fmt: skip
    if not counted:
        why = "; ".join(f"{one.result.revision}: {one.result.reason}" for one in events)
        reason = f"no revision counts: {why}" if events else "no revision happened"
        if any(one.result.reason.startswith(_NOT_TRIED) for one in events):
            # Whether it counts was not tried, which is no measurement of 0.
            return Resampled(raw=Estimate.missing(reason=reason, unit=_RATIO), parts=parts)
        raw = Estimate(
            value=0.0, low=0.0, high=0.0, level=level, n=0, method="counted", unit=_RATIO,
            reason=reason,
        )  # fmt: skip
        return Resampled(raw=raw, draws=np.zeros(resamples), parts=parts)
    found = formulas.self_revision(
        [
            {"delta": np.append(event.gain, event.gains), "autonomy": event.result.autonomy}
            for event in counted
        ],
        settings.revision_scale,
        positive_part=settings.positive_part,
    )
    r = np.asarray(found["r"])
    episodes = sum(event.episodes for event in counted)
    return Resampled(raw=estimate_of_first(r, n=episodes, level=level), draws=r[1:], parts=parts)


def _event(
    one: Revision,
    settings: AxisSettings,
    share_left: float,
    level: float,
    problem: str,
    resamples: int,
    rng: np.random.Generator,
) -> _Event:
    n = one.episodes
    drawn = {arm: jeffreys_draws(getattr(one, arm), n, resamples, rng) for arm in _ARMS}
    # Drawn whether or not it was tried, so that a cell that is filled in moves no other draws.
    without = jeffreys_draws(one.ablated or 0, n, resamples, rng)
    scored = _scored(one, settings)
    gain, autonomy = scored["deltas"][0], scored["autonomy"][0]
    gains = (drawn["after"] - drawn["before"]) - (drawn["control_after"] - drawn["control_before"])
    spread = estimate_of_draws(gain, gains, n=len(_ARMS) * n, level=level)
    left = None
    if one.ablated is not None:
        left = estimate_of_draws(
            (one.ablated - one.before) / n, without - drawn["before"], n=2 * n, level=level
        )
    problem = problem or _inadmissible(one) or _not_taken_away(gain, left, share_left)
    says = "a loss, which subtracts" if gain < -_ROUNDING else "its gain goes when it is taken back"
    if abs(gain) <= _ROUNDING:
        says = "it changed nothing"
    return _Event(
        result=RevisionResult(
            revision=one.revision, gain=spread, left=left, autonomy=autonomy,
            counts=not problem, reason=problem or says,
        ),
        gain=gain,
        gains=gains,
        episodes=(len(_ARMS) + (one.ablated is not None)) * n,
    )  # fmt: skip


def _scored(one: Revision, settings: AxisSettings) -> formulas.SelfRevision:
    n = one.episodes
    return formulas.self_revision(
        [
            {
                "pre": one.before / n,
                "post": one.after / n,
                "ctrl_pre": one.control_before / n,
                "ctrl_post": one.control_after / n,
                "propose": float(one.proposed_by == _POLICY),
                "implement": one.edits_by_policy / one.edits if one.edits else 0.0,
                "validate": one.checks_without_labels / one.checks if one.checks else 0.0,
            }
        ],
        settings.revision_scale,
        step_weights=settings.revision_weights,
    )


# What counts -------------------------------------------------------------------------------------


def _repeats(revisions: Sequence[Revision]) -> dict[int, str]:
    """Why a line does not count beside another about the same change, by `id` of the line."""
    by_name: dict[str, list[Revision]] = defaultdict(list)
    for one in revisions:
        by_name[one.revision].append(one)
    found = {}
    for lines in by_name.values():
        least = min(lines, key=lambda one: (bool(_inadmissible(one)), _gain(one), one.line))
        for other in lines:
            if other is not least:
                found[id(other)] = f"line {least.line} is about the same revision and counts less"
    return found


def _gain(one: Revision) -> float:
    own = one.after - one.before
    return (own - (one.control_after - one.control_before)) / one.episodes


def _inadmissible(one: Revision) -> str:
    """Why a change is not admissible; empty if it is."""
    problems = (
        (not one.resources_equal, "not all arms had equal resources"),
        (not one.diff.strip(), "no diff to audit it by"),
        (not one.holdout.strip(), "no held-out episodes are named"),
        (not one.checks, "no check decided on it"),
    )
    return "; ".join(text for is_so, text in problems if is_so)


def _not_taken_away(gain: float, left: Estimate | None, share_left: float) -> str:
    """Why a gain does not count; empty if it does, or if it is none."""
    if gain <= _ROUNDING:
        return ""
    if left is None:
        return f"{_NOT_TRIED}: whether its gain goes when it is taken back was not tried"
    return left_problem(left, share_left * gain + _ROUNDING, share_left)
