"""How success and quality fall as a novelty grows: curves over its magnitude."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import numpy as np

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.core.task import unit_of
from robo_eval.core.wording import in_short
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.effects import differences
from robo_eval.metrics.performance import quality_estimates, success_estimate
from robo_eval.metrics.tables import Rows, groups, not_begun, numbered, places_of
from robo_eval.metrics.tasks import VARIANT, task_label, task_variants, with_novelty
from robo_eval.stats.bounded import bounded_mean_interval
from robo_eval.stats.estimate import without_interval
from robo_eval.stats.paired import (
    PairedTable,
    paired_table,
    success_ratio_interval,
)
from robo_eval.stats.proportions import clopper_pearson_interval
from robo_eval.stats.unconditional import pairs_interval

if TYPE_CHECKING:
    from robo_eval.core.plan import TaskPlan, TrialPlan

_KEYS: Final = ("side", "task", "family", VARIANT, "policy")
HALF: Final = 0.5
"""Share of the success without novelty whose loss is looked for."""
_NO_PAIR: Final = "no pair with both episodes scored"
_Held: TypeAlias = tuple[str, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dose:
    """One magnitude of an axis against the matched episodes without novelty.

    Attributes:
        magnitude: In the unit of the axis.
        n_pairs: Pairs with both episodes scored.
        n_expected: Pairs there should be.
        success: Share of the pairs that succeeded with novelty.
        kept: Successes with novelty by those without.
        quality: Mean quality with novelty.
        success_difference: Share that succeeded with novelty, less that without.
        quality_difference: Mean of the differences in quality.
        turned_down: Draws of the novelty that would have made an episode impossible, or changed
            nothing in it, of all its episodes; None where none says.
        n_not_begun: Pairs whose novelty never began, because the episode ended before its onset.
    """

    magnitude: float
    n_pairs: int
    n_expected: int
    success: Estimate
    kept: Estimate
    quality: Estimate
    success_difference: Estimate
    quality_difference: Estimate
    turned_down: int | None = None
    n_not_begun: int = 0

    @property
    def pairs_text(self) -> str:
        """The pairs, of how many, and in how many nothing was new: `4 of 5, 3 not begun`."""
        of = f" of {self.n_expected}" if self.n_pairs < self.n_expected else ""
        late = f", {self.n_not_begun} not begun" if self.n_not_begun else ""
        return f"{self.n_pairs}{of}{late}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfLoss:
    """The magnitude at which half of the success without novelty is lost.

    Attributes:
        value: Where a falling line through the shares kept meets one half; None if they do not
            meet between two magnitudes that were played.
        low: Greatest magnitude, seen from none, up to which more than half is surely kept; None
            if that cannot be said of the weakest.
        high: Least magnitude from which on less than half is surely kept; None if that cannot be
            said of the strongest.
        level: Coverage of the interval from `low` to `high`, if no stronger novelty is easier.
        reason: Why there is no value; None if there is one.
    """

    value: float | None
    low: float | None
    high: float | None
    level: float
    reason: str | None = None

    SAID: ClassVar = ("text", "ends")

    @property
    def text(self) -> str:
        """The magnitude in three digits, or why there is none."""
        return f"{self.value:.3g}" if self.value is not None else str(self.reason)

    @property
    def ends(self) -> str:
        """The interval in words."""
        low, high = (None if end is None else in_short(end) for end in (self.low, self.high))
        if low is None:
            return "not known" if high is None else f"{high} or weaker"
        return f"{low} or stronger" if high is None else f"{low} to {high}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoseCurve:
    """What one policy keeps of its success on one task as one novelty grows.

    Attributes:
        side: Where it was played.
        policy: Name.
        task: What the task is called.
        axis: Axis that grows.
        unit: Unit of its magnitudes; empty if it has none, or it is not known here.
        held: Axis and magnitude of a second novelty that stays; None for none.
        nominal_success: Share of the episodes without novelty that succeeded.
        nominal_quality: Their mean quality.
        doses: By magnitude, weakest first.
        half_loss: Where half is lost.
        level: Coverage of all intervals of one kind along the curve together; each by itself has
            `1 - (1 - level) / points`, where `points` counts the magnitudes and none.
    """

    side: str
    policy: str
    task: str
    axis: str
    unit: str
    held: tuple[str, float] | None
    nominal_success: Estimate
    nominal_quality: Estimate
    doses: tuple[Dose, ...]
    half_loss: HalfLoss
    level: float

    SAID: ClassVar = ("label",)

    @property
    def scale(self) -> str:
        """The axis with its unit: `payload (kg)`."""
        return f"{self.axis} ({self.unit})" if self.unit else self.axis

    @property
    def label(self) -> str:
        """What is varied, and what stays: `payload (kg) at friction 0.1`."""
        if self.held is None:
            return self.scale
        return f"{self.scale} at {self.held[0]} {in_short(self.held[1])}"


def dose_curves(main: Rows, plan: TrialPlan | None, config: MetricConfig) -> tuple[DoseCurve, ...]:
    """The curves a plan with `axes` asks for.

    Every episode with novelty is compared with its matched control: same seed and policy, no
    novelty. Of a pair of axes there is a curve over the first at each magnitude of the second.

    Args:
        main: Rows of the main arm, as `metrics.tables.main_rows` returns them.
        plan: The plan; without axes, or without a plan, there is no curve. Nor is there one with
            trials, where what an agent remembers makes no episode the control of another.
        config: Settings of the intervals.
    """
    if plan is None or plan.imported is not None or plan.trials is not None:
        return ()
    if not any(task.axes for task in plan.tasks):
        return ()
    rows = main.take(main.scored)
    rows = rows.take(numbered(rows, ("base_id",))[1])
    by_place = groups(rows, _KEYS)
    variants = task_variants(plan)

    def curve(
        side: str, task: TaskPlan, variant: str, policy: str, axis: str, held: _Held
    ) -> DoseCurve:
        def played(**novelty: float) -> Rows:
            told = with_novelty(variant, novelty)
            key = (side, task.env, task.family or task.env, told, policy)
            return by_place.get(key, rows.take([]))

        along = [
            (size, played(**{axis: size}, **dict([held] if held else [])))
            for size in task.axes[axis]
        ]
        # Of each point, so that all of them and the one without novelty hold together.
        point = replace(config, level=1.0 - (1.0 - config.level) / (len(along) + 1))
        nominal = played()
        doses = [
            _dose(size, own, nominal, plan.episodes_on(Side.SIM), point) for size, own in along
        ]
        return DoseCurve(
            side=side,
            policy=policy,
            task=task_label(task.family or task.env, variant),
            axis=axis,
            unit=unit_of(task.env, axis),
            held=held,
            nominal_success=_success(nominal, point),
            nominal_quality=_quality(nominal, point),
            doses=tuple(dose for dose, _ in doses),
            half_loss=_half_loss(doses, config),
            level=config.level,
        )

    return tuple(
        curve(side.value, task, variants[index], policy.name, axis, held)
        for side in plan.sides
        for index, task in enumerate(plan.tasks)
        for axis, held in _lines(task)
        for policy in plan.policies
    )


def by_novelty(curves: Sequence[DoseCurve]) -> dict[tuple[str, str], list[DoseCurve]]:
    """Curves that differ in the policy alone, by what their task and their novelty are called."""
    found: dict[tuple[str, str], list[DoseCurve]] = {}
    for curve in curves:
        found.setdefault((curve.task, curve.label), []).append(curve)
    return found


def _lines(task: TaskPlan) -> Iterator[tuple[str, _Held]]:
    """Axis of every curve of a task, and what stays along it."""
    for axis in task.axes:
        yield axis, None
    for first, second in task.pairs:
        for magnitude in task.axes[second]:
            yield first, (second, magnitude)


def _dose(
    magnitude: float, rows: Rows, nominal: Rows, planned: int, point: MetricConfig
) -> tuple[Dose, PairedTable]:
    """A magnitude against its controls, with the settings of one point of a curve."""
    places = places_of(nominal, rows["control_id"])
    own, match = rows.take(places >= 0), nominal.take(places[places >= 0])
    pairs = paired_table(own.succeeded.astype(int), match.succeeded.astype(int))
    drawn = [cell for cell in rows["novelty"].tolist() if isinstance(cell, Mapping)]
    counts = [count for cell in drawn if type(count := cell.get("turned_down")) is int]
    found = Dose(
        magnitude=magnitude,
        n_pairs=pairs.n,
        n_expected=max(planned, pairs.n),
        success=_success(own, point),
        kept=_kept(pairs, point.level),
        quality=_quality(own, point),
        success_difference=_difference(pairs, point.level),
        quality_difference=_mean_difference(own, match, point),
        turned_down=sum(counts) if counts else None,
        n_not_begun=int(not_begun(own).sum()),
    )
    return found, pairs


def _success(rows: Rows, point: MetricConfig) -> Estimate:
    return success_estimate(int(rows.succeeded.sum()), len(rows), exact=True, level=point.level)


def _quality(rows: Rows, point: MetricConfig) -> Estimate:
    return quality_estimates([rows["quality"]], point)[0]


def _mean_difference(own: Rows, match: Rows, point: MetricConfig) -> Estimate:
    if not len(own):
        return Estimate.missing(reason=_NO_PAIR, unit="ratio")
    values = differences(own["quality"], match["quality"])
    return bounded_mean_interval(values, within=(-1.0, 1.0), level=point.level)


def _kept(pairs: PairedTable, level: float) -> Estimate:
    if not pairs.n:
        return Estimate.missing(reason=_NO_PAIR, unit="ratio")
    found = _ratio_interval(pairs, level)
    if found is None:
        return Estimate.missing(reason="no success without novelty", unit="ratio", n=pairs.n)
    low, high = found
    value = (pairs.both + pairs.only_first) / (pairs.both + pairs.only_second)
    if high == float("inf"):
        why = "nothing bounds it from above"
        return without_interval(value, n=pairs.n, reason=why, level=level)
    return Estimate(
        value=value, low=low, high=high, level=level, n=pairs.n, method="score_ratio", unit="ratio"
    )


def _ratio_interval(pairs: PairedTable, level: float) -> tuple[float, float] | None:
    """Interval of the ratio of the two shares, no narrower than that of what is kept.

    The score interval alone misses a ratio near 0 too often where pairs are few.
    """
    found = success_ratio_interval(pairs, level=level)
    if found is None:
        return None
    nominal = pairs.both + pairs.only_second
    kept = clopper_pearson_interval(pairs.both, nominal, level=level)
    return min(found[0], kept[0]), max(found[1], kept[1])


def _difference(pairs: PairedTable, level: float) -> Estimate:
    if not pairs.n:
        return Estimate.missing(reason=_NO_PAIR, unit="ratio")
    gained, lost = pairs.only_first, pairs.only_second
    low, high = pairs_interval(gained, lost, pairs.n, level=level)
    return Estimate(
        value=(gained - lost) / pairs.n,
        low=low,
        high=high,
        level=level,
        n=pairs.n,
        method="pairs_exact",
        unit="ratio",
    )


def _half_loss(doses: Sequence[tuple[Dose, PairedTable]], config: MetricConfig) -> HalfLoss:
    """Where half is lost, if stronger novelty is never easier.

    The ends come from tests in a fixed order, each at half of what the level leaves: whoever
    begins with what is surely true and stops at the first doubt needs no correction.
    """

    def nothing(reason: str) -> HalfLoss:
        return HalfLoss(value=None, low=None, high=None, level=config.level, reason=reason)

    for dose, _ in doses:
        if dose.n_pairs < round(config.min_coverage * dose.n_expected, 9):
            counts = f"{dose.n_pairs} of {dose.n_expected} pairs"
            return nothing(f"{counts} scored at {in_short(dose.magnitude)}")
        if dose.kept.value is None:
            return nothing(str(dose.kept.reason))
    ends = [_ratio_interval(pairs, config.level) for _, pairs in doses]
    sizes = [dose.magnitude for dose, _ in doses]
    surely_more = [end is not None and end[0] > HALF for end in ends]
    surely_less = [end is not None and end[1] < HALF for end in ends]
    n_more = len(list(takewhile(bool, surely_more)))
    n_less = len(list(takewhile(bool, reversed(surely_less))))
    value, reason = _crossing(doses)
    return HalfLoss(
        value=value,
        low=sizes[n_more - 1] if n_more else None,
        high=sizes[-n_less] if n_less else None,
        level=config.level,
        reason=reason,
    )


def _crossing(doses: Sequence[tuple[Dose, PairedTable]]) -> tuple[float | None, str | None]:
    """Where the nearest falling line through the shares kept meets one half, or why nowhere."""
    from scipy.optimize import isotonic_regression

    shares = [dose.kept.value or 0.0 for dose, _ in doses]
    fit = isotonic_regression(
        shares, weights=[dose.n_pairs for dose, _ in doses], increasing=False
    ).x
    sizes = [dose.magnitude for dose, _ in doses]
    if fit[0] < HALF:
        return None, f"less than half is kept at the weakest, {in_short(sizes[0])}"
    below = np.flatnonzero(fit <= HALF)
    if not len(below):
        return None, f"more than half is kept at the strongest, {in_short(sizes[-1])}"
    after = int(below[0])
    if after == 0:
        return sizes[0], None
    step = (fit[after - 1] - HALF) / (fit[after - 1] - fit[after])
    return float(sizes[after - 1] + step * (sizes[after] - sizes[after - 1])), None
