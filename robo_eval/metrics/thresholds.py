"""How detection in trials with an onset depends on the threshold of the declarations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from robo_eval.core.estimate import Estimate
from robo_eval.core.wording import in_short
from robo_eval.formulas import sailon
from robo_eval.metrics.body import Body
from robo_eval.metrics.performance import success_estimate
from robo_eval.metrics.trials import detection_of, over_trials


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredThreshold:
    """What detection is with a threshold.

    Attributes:
        threshold: From which probability on novelty counts as declared; None for the policy's own.
        detected: Share of the trials with novelty that are detected, M2.
        false: Share of all trials in which novelty is declared although there is none yet, M2.1.
        delay: Novel episodes before the declaring one in detected trials, M1.
    """

    threshold: float | None
    detected: Estimate
    false: Estimate
    delay: Estimate

    @property
    def gain(self) -> float:
        """Detections less false alarms, as shares; 0 is what declaring at random would have."""
        return round((self.detected.value or 0.0) - (self.false.value or 0.0), 9)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdCurve:
    """What the probabilities of one policy would detect with other thresholds.

    Attributes:
        side: Where it was played.
        policy: Name.
        stated: Least and largest of the thresholds that the policy stated itself.
        own: With those.
        points: With each of the thresholds of the curve.
    """

    side: str
    policy: str
    stated: tuple[float, float]
    own: MeasuredThreshold
    points: tuple[MeasuredThreshold, ...]

    @property
    def text(self) -> str:
        """What the threshold does, in two sentences."""
        ends = dict.fromkeys(map(in_short, self.stated))
        delay = self.own.delay.value
        late = "" if delay is None else f" with a delay of {delay:.2f} episodes"
        own = (
            f"At its own threshold of {' to '.join(ends)}, {self.policy} detects"
            f" {self.own.detected.value:.2f} of the trials with novelty{late}, and raises a false"
            f" alarm in {self.own.false.value:.2f} of all trials."
        )
        gains = [point.gain for point in self.points]
        best = [point for point in self.points if point.gain == max(gains)]
        first, last = (in_short(at.threshold or 0.0) for at in (self.points[0], self.points[-1]))
        if len(best) == len(self.points):
            return f"{own} No threshold from {first} to {last} tells novelty better than another."
        where = ", ".join(in_short(point.threshold or 0.0) for point in best)
        return (
            f"{own} From {first} to {last}, detections exceed false alarms most at {where}:"
            f" by {max(gains):.2f}."
        )


def threshold_curves(bodies: Iterable[Body]) -> tuple[ThresholdCurve, ...]:
    """The curve of each policy that had to find the onset, and declared something."""
    return tuple(
        ThresholdCurve(
            side=body.side,
            policy=body.policy,
            stated=(min(stated), max(stated)),
            own=_point(body, None),
            points=tuple(_point(body, threshold) for threshold in sailon.THRESHOLDS),
        )
        for body in bodies
        if body.trials.novel and body.trials.condition == "system"
        if (stated := [said for one in body.trials.played.values() for said in one.stated])
    )


def _point(body: Body, threshold: float | None) -> MeasuredThreshold:
    found = {}
    for key, one in body.trials.played.items():
        declared = one.trial["declared"]
        if threshold is not None:
            declared = sailon.declared_index(one.trial["probability"], threshold)
        found[key] = detection_of({**one.trial, "declared": declared})
    judged = [one["false_positive"] for one in found.values() if one["false_positive"] is not None]
    novel = {key: found[key] for key in body.trials.novel}

    def share(hits: Iterable[bool], n: int) -> Estimate:
        return success_estimate(sum(hits), n, exact=False, level=body.level)

    return MeasuredThreshold(
        threshold=threshold,
        detected=share((one["detected"] for one in novel.values()), len(novel)),
        false=share(judged, len(judged)),
        delay=over_trials(
            {key: one["delay"] for key, one in novel.items()},
            body.config,
            unit="episodes",
            reason="no trial is detected",
        ),
    )
