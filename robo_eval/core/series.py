"""How far a series with a stopping rule is, and which episodes it still needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from robo_eval.core.kinds import Arm, EndReason, Side
from robo_eval.core.plan import StoppingPlan, TrialPlan
from robo_eval.core.schedule import PlannedEpisode, count_failed, remaining, schedule

if TYPE_CHECKING:
    from robo_eval.stats.stopping import StopDecision

_BLOCK: Final = 16
"""Least episodes played between two looks, so that workers have something to do."""
_SHARE: Final = 4
"""Between two looks a series grows by one part in so many."""
Attempts = Mapping[str, Sequence[EndReason]]
"""End reasons of the logged attempts by base id, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What the stopping rule of a plan says about the episodes so far.

    Attributes:
        compare: The policies looked at.
        rate: The rate one policy is compared with; None for two policies.
        side: Where the series is played.
        stop: Whether the series ends here.
        verdict: `greater`, `less` or `undecided` if it does, as the first policy stands to the
            second, or to the rate; None while it goes on, or if too many seeds lack a verdict.
        reason: Why, for a person.
        n: Seeds looked at that have every verdict.
        n_missing: Seeds passed over because a verdict is missing.
        e: Evidence after the last of them.
        p: p value that holds at any time.
        rate_interval: Interval of the rate of one policy that holds at any time, too; None for
            two policies.
        episodes: Episodes of each condition the series needs, out of those planned.
    """

    compare: tuple[str, ...]
    rate: float | None
    side: str
    stop: bool
    verdict: str | None
    reason: str
    n: int
    n_missing: int
    e: float | None
    p: float | None
    episodes: int
    rate_interval: tuple[float, float] | None = None

    @property
    def text(self) -> str:
        """What the rule says, in one line."""
        second = self.compare[1] if self.rate is None else f"a rate of {self.rate:g}"
        words = {"greater": f"{self.compare[0]} is better", "less": f"{self.compare[0]} is worse"}
        words |= {"undecided": "no difference shown", "": "ended without a verdict"}
        answer = words[self.verdict or ""] if self.stop else "go on"
        text = f"stopping rule, {self.compare[0]} against {second}: {answer}; {self.reason}"
        if self.rate_interval is None:
            return text
        low, high = self.rate_interval
        return f"{text}; at any time the rate is in [{low:.2f}, {high:.2f}]"


def series_side(plan: TrialPlan) -> Side:
    """The side whose episodes decide: the most physical one of the plan."""
    return next(side for side in (Side.REAL, Side.TWIN, Side.SIM) if side in plan.sides)


def series_of(plan: TrialPlan, attempts: Attempts) -> Series | None:
    """Apply the stopping rule of a plan; None without one.

    The episodes of a seed, in all conditions together, are one look: each policy's share of
    successes. Looks are taken in the order of the seeds, and only as far as every episode
    of a seed has ended, so the answer does not depend on which worker was faster.

    Args:
        plan: The plan.
        attempts: What is logged.
    """
    rule = plan.stopping
    if rule is None or plan.imported is not None:
        return None
    looks = _looks(plan, rule, attempts)
    known = [(index, look) for index, look in enumerate(looks) if look is not None]
    if not known:
        return _nothing_yet(plan, rule, len(looks))
    found = _decision(plan, rule, [look for _, look in known])
    last = known[found.n - 1][0] + 1 if found.stop else len(looks)
    all_ended = len(looks) == plan.episodes
    n_missing = sum(look is None for look in looks[:last])
    verdict, reason = found.verdict, found.reason
    if all_ended and not found.stop:
        verdict = "undecided"
        reason = f"undecided: {found.reason}, and every planned episode has ended"
    if n_missing > (1.0 - plan.metrics.min_coverage) * last + 1e-9:
        verdict = None
        reason = f"{n_missing} of {last} seeds lack a verdict, so nobody is named; {reason}"
    return Series(
        compare=rule.compare,
        rate=rule.rate,
        side=series_side(plan).value,
        stop=found.stop or all_ended,
        verdict=verdict,
        reason=reason,
        n=found.n,
        n_missing=n_missing,
        e=found.e,
        p=found.p,
        episodes=last if found.stop else plan.episodes,
        rate_interval=_rate_interval(rule, [look for _, look in known[: found.n]]),
    )


def _rate_interval(rule: StoppingPlan, looks: Sequence[Look]) -> tuple[float, float] | None:
    """Ends of the confidence sequence of one policy's rate after the last look."""
    if rule.rate is None:
        return None
    from robo_eval.stats.sequential import confidence_sequence

    # A decision one way spends all of alpha at one end.
    level = 1.0 - (rule.alpha if rule.side == "two" else min(2.0 * rule.alpha, 0.999))
    low, high = confidence_sequence([look[0] for look in looks], level=level)
    return float(low[-1]), float(high[-1])


def _nothing_yet(plan: TrialPlan, rule: StoppingPlan, ended: int) -> Series:
    return Series(
        compare=rule.compare,
        rate=rule.rate,
        side=series_side(plan).value,
        stop=ended == plan.episodes,
        verdict="undecided" if ended == plan.episodes else None,
        reason="no seed has every verdict yet",
        n=0,
        n_missing=ended,
        e=None,
        p=None,
        episodes=plan.episodes,
    )


Look = tuple[float, ...]
"""The share of successes of each policy under one seed."""


def _looks(plan: TrialPlan, rule: StoppingPlan, attempts: Attempts) -> list[Look | None]:
    """The outcome of each seed up to the first that has not ended; None without every verdict."""
    names = [policy.name for policy in plan.policies]
    policies = [names.index(name) for name in rule.compare]
    by_seed: dict[int, list[PlannedEpisode]] = {}
    for planned in schedule(plan, series_side(plan)):
        if planned.arm is Arm.MAIN and planned.policy in policies:
            by_seed.setdefault(planned.index, []).append(planned)
    looks: list[Look | None] = []
    for index in range(plan.episodes):
        wins = [0] * len(policies)
        is_known = True
        for planned in by_seed[index]:
            verdict = _verdict(attempts.get(planned.base_id, ()), planned.side, plan.retries)
            if verdict == _OPEN:
                return looks
            is_known &= verdict is not None
            wins[policies.index(planned.policy)] += verdict is True
        conditions = len(by_seed[index]) // len(policies)
        looks.append(tuple(won / conditions for won in wins) if is_known else None)
    return looks


_OPEN: Final = "open"


def _verdict(past: Sequence[EndReason], side: Side, retries: int) -> bool | str | None:
    """Success of an episode; None if it never got a verdict, `open` if it still may."""
    for reason in past:
        if reason.is_scored:
            return reason is EndReason.SUCCESS
        if reason.is_final:
            return None
    return None if count_failed(past, side) > retries else _OPEN


def _decision(plan: TrialPlan, rule: StoppingPlan, looks: Sequence[Look]) -> StopDecision:
    from robo_eval.stats.stopping import StoppingRule, stop_decision

    is_paired = len(rule.compare) == 2
    return stop_decision(
        StoppingRule(
            what="pairs" if is_paired else "rate",
            max_n=plan.episodes,
            side=rule.side,
            alpha=rule.alpha,
            rate=0.5 if rule.rate is None else rule.rate,
            hopeless=rule.hopeless,
        ),
        looks if is_paired else [look[0] for look in looks],
    )


def next_block(
    plan: TrialPlan, todo: Sequence[PlannedEpisode], attempts: Attempts
) -> Sequence[PlannedEpisode]:
    """What to play before the stopping rule is asked again; nothing once it ends the series.

    Without a rule that is everything.

    Args:
        plan: The plan.
        todo: What `schedule.remaining` returned.
        attempts: What is logged.
    """
    series = series_of(plan, attempts)
    if series is None:
        return todo
    if series.stop:
        todo = [planned for planned in todo if planned.index < series.episodes]
    in_order = sorted(todo, key=lambda planned: planned.index)
    size = max(_BLOCK, len(attempts) // _SHARE)
    if len(in_order) <= size:
        return in_order
    last = in_order[size - 1].index
    return [planned for planned in in_order if planned.index <= last]


def due(plan: TrialPlan, side: Side, attempts: Attempts) -> Sequence[PlannedEpisode]:
    """What a side still has to play, up to the next question of the stopping rule."""
    todo = remaining(schedule(plan, side), attempts, retries=plan.retries)
    return next_block(plan, todo, attempts)


def shortened(plan: TrialPlan, series: Series | None) -> TrialPlan:
    """The plan with the episodes its series turned out to need."""
    if series is None or not series.stop or series.episodes == plan.episodes:
        return plan
    return plan.model_copy(update={"episodes": series.episodes})
