"""Which level the evidence supports: each gate, each audit, and the verdict they add up to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from robo_eval.core.defaults import MIN_RATE_HOURS
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import evidence_tag
from robo_eval.core.plain import UNSAID, plain
from robo_eval.core.wording import shown
from robo_eval.gates.audits import Audit, Status
from robo_eval.gates.lacking import Lacking, lacking_of, more_hours
from robo_eval.gates.profile import LEVELS, Gate, Profile, load_profile
from robo_eval.gates.quantity import about
from robo_eval.gates.readings import Readings
from robo_eval.gates.result import HARM, GateResult
from robo_eval.metrics.safety import too_short

_REAL: Final = "real"
_FLOAT: Final = 1e-12
_USUAL: Final = 4
"""The highest level of most profiles."""
_LOW: Final = ("at_least", "above", "closure")
"""Tests that the lower end of an interval speaks against."""
_NO_LEVEL: Final = "no level"


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelStep:
    """One level on the way to the verdict, from the highest down.

    Attributes:
        level: The level.
        thresholds: How its gates of that kind did; `missing` where one has no evidence.
        closures: The same of closures.
        durations: The same of what is shown over days or hours.
        audits: Whether the audits up to it pass.
        below: Whether the gates of levels from 2 on below it pass.
        passed: Whether all of that holds.
    """

    level: int
    thresholds: Status
    closures: Status
    durations: Status
    audits: Status
    below: Status
    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """What is said of one policy.

    Attributes:
        policy: Its name.
        side: Where the evidence comes from: `real`, `twin` or `sim`.
        profile: Name of the profile.
        profile_digest: SHA-256 of it.
        non_standard: What keeps the level from being one of the AAI scale: a profile or settings of
            the laboratory's own; empty if nothing does.
        level: Highest level that point estimates, counts and audits support; None if the window
            does not count or the tasks are not fit for a level.
        level_conservative: The same by the ends of intervals that speak against it: what is shown.
        would_be: The conservative level without the cap on evidence without a robot, or with tasks
            that are fit for one; None if neither stands in the way.
        gates: Every gate of every level.
        audits: Every audit, with the level from which on it has to pass.
        steps: How the verdict was reached, from the highest level down.
        readings: The evidence.
        next_level: The level to be shown next; None at the highest, or if the window does not
            count.
        missing: What is missing for each level above the conservative one, the shortest lists. A
            level from 2 on does not ask for level 1.
        reason: Why the conservative level is what it is.
    """

    SAID: ClassVar = ("headline", "evidence_tag")

    policy: str
    side: str
    profile: str
    profile_digest: str
    non_standard: tuple[str, ...] = ()
    level: int | None
    level_conservative: int | None
    would_be: int | None = field(metadata={"json": "would_be_level"})
    gates: tuple[GateResult, ...]
    audits: tuple[tuple[int, Audit], ...] = field(metadata=UNSAID)
    steps: tuple[LevelStep, ...] = field(metadata={"json": "procedure"})
    readings: Readings = field(metadata=UNSAID)
    next_level: int | None
    missing: Mapping[int, tuple[Lacking, ...]]
    reason: str

    @property
    def lacking(self) -> tuple[Lacking, ...]:
        """What is missing for the next level."""
        return () if self.next_level is None else self.missing[self.next_level]

    @property
    def evidence_tag(self) -> str:
        """What the level is evidence of; see `core.kinds.evidence_tag`."""
        return evidence_tag(self.side, self.readings.origin)

    @property
    def evidence(self) -> str:
        """What the level is evidence of, and on what that rests."""
        return ", ".join((self.evidence_tag, *self.readings.grounds))

    @property
    def prefix(self) -> str:
        """What a number becomes a level by: AAI-n only by a built-in profile and its settings."""
        return "level " if self.non_standard else "AAI-"

    @property
    def badge(self) -> str:
        """The level that is shown, in a word or two."""
        if self.level_conservative is None:
            return _NO_LEVEL
        return self.name_of(self.level_conservative) + ", non-standard" * bool(self.non_standard)

    @property
    def headline(self) -> str:
        """Both verdicts, and what keeps them from being levels of the AAI scale."""
        said = _NO_LEVEL
        if self.level_conservative is not None:
            nothing = "" if self.level_conservative else ", nothing higher is"
            confidence = f"{100 * self.readings.confidence:g} %"
            said = f"{self.name_of(self.level_conservative)}{nothing} shown at {confidence}"
        if self.level is not None and self.level != self.level_conservative:
            said += f"; {self.name_of(self.level)} by point values"
        return "; ".join((said, *self.non_standard))

    def name_of(self, level: int) -> str:
        """What a level is called."""
        return f"{self.prefix}{level}"

    def at(self, level: int) -> tuple[GateResult, ...]:
        """The gates of a level that decide."""
        return tuple(gate for gate in self.gates if gate.level == level and gate.counts)

    def reported(self, level: int) -> tuple[GateResult, ...]:
        """The gates of a level that are looked at and do not decide."""
        return tuple(gate for gate in self.gates if gate.level == level and not gate.counts)

    def as_dict(self) -> dict[str, Any]:
        """The assessment as JSON would have it, with what was measured beside the gates."""
        told = self.readings
        return {
            **plain(self),
            "audits": [{"from_level": level, **plain(audit)} for level, audit in self.audits],
            "left_out": told.left_out,
            "rests_on": list(told.grounds),
            "left_out_allowed": told.left_out_allowed,
            "battery": plain(told.battery),
            "axes": plain(told.axes),
            "index": plain(told.index),
            "progress": plain(told.progress),
            "capability_by_day": plain(told.days),
            "revisions": plain(told.revisions),
            "experts": plain(told.margins),
            "probes": plain(told.probes),
        }


def assess(evidence: Readings, profile: str | Path | Profile = "robotics") -> Assessment:
    """Which level the evidence on a policy supports.

    A gate passes if the end of the interval that speaks against it passes: the lower end of what
    has to be high, the upper end of what has to be low. What was not measured does not pass. A
    level needs its own gates, those of all levels between 2 and it, and the audits up to it.

    Args:
        evidence: What gates read.
        profile: Name of a profile, path of one, or a profile.

    Raises:
        InputError: If there is no such profile, or it cannot be used.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.5, 4.5 and 7.
    """
    asked = profile if isinstance(profile, Profile) else load_profile(profile)
    gates = tuple(
        _result(level, name, gate, asked, evidence)
        for level in LEVELS
        for name, gate in asked.at(level).items()
        if gate.when == "always" or (gate.when == "body") == evidence.has_body
    )
    audits = _audits(asked, evidence.audits)
    # Of this policy: a gate for those with a body asks nothing of one without.
    levels = sorted({gate.level for gate in gates if gate.counts})
    steps = _steps(levels, gates, audits, by_points=False)
    points = _reached(_steps(levels, gates, audits, by_points=True))
    free, cap = _reached(steps), _cap(asked, evidence)
    unfit = tuple(audit for audit in evidence.battery if audit.status != "pass")
    invalid = evidence.invalid is not None
    shown_level = None if invalid or unfit else min(free, cap)
    stands_in_the_way = not invalid and (free > cap or bool(unfit))
    above = () if invalid else _above(shown_level, min(free, cap), levels)
    return Assessment(
        policy=evidence.policy,
        side=evidence.side,
        profile=asked.name,
        profile_digest=asked.digest,
        non_standard=_non_standard(asked, evidence),
        level=None if invalid or unfit else min(points, cap),
        level_conservative=shown_level,
        would_be=free if stands_in_the_way else None,
        gates=gates,
        audits=audits,
        steps=steps,
        readings=evidence,
        next_level=above[0] if above else None,
        missing={one: lacking_of(one, gates, audits, evidence, cap) for one in above},
        reason=_reason(evidence, shown_level, cap, unfit, is_capped=free > cap),
    )


def _non_standard(profile: Profile, evidence: Readings) -> tuple[str, ...]:
    """Why what is said is no level of the AAI scale."""
    found = []
    if not profile.is_built_in:
        found.append(f"NON-STANDARD PROFILE ({profile.name}, {profile.digest[:12]})")
    if evidence.unusual:
        found.append(f"NON-STANDARD SETTINGS ({'; '.join(evidence.unusual)})")
    return tuple(found)


def _cap(profile: Profile, evidence: Readings) -> int:
    """The highest level this kind of evidence supports."""
    if evidence.side == _REAL:
        return LEVELS[-1]
    # A twin has a body, but not one that anything depends on.
    return min(profile.highest_without_robot, 1 if evidence.has_body else LEVELS[-1])


def _above(level: int | None, reached: int, levels: Sequence[int]) -> tuple[int, ...]:
    """Levels still to be shown; without a fit battery the level that was reached is one of them."""
    first = max(1, reached) if level is None else level + 1
    # Few profiles have a fifth level, and where there is none nothing is missing for it.
    last = max((_USUAL, *levels))
    return tuple(one for one in LEVELS if first <= one <= last)


def _reason(
    evidence: Readings, level: int | None, cap: int, unfit: Sequence[Audit], *, is_capped: bool
) -> str:
    if evidence.invalid is not None:
        return evidence.invalid
    if unfit:
        return "; ".join(audit.reason for audit in unfit)
    if is_capped:
        return f"without a physical robot no level above {cap} is issued"
    if level == 0:
        return "no level's gates and audits pass"
    return f"gates and audits of level {level} pass"


def _audits(profile: Profile, found: Sequence[Audit]) -> tuple[tuple[int, Audit], ...]:
    known = {audit.id: audit for audit in found}
    absent = {
        name: Audit(id=name, title=name.replace("_", " "), status="missing", reason="not looked at")
        for name in profile.audits
    }
    return tuple((level, known.get(name, absent[name])) for name, level in profile.audits.items())


def _steps(
    levels: Sequence[int],
    gates: Sequence[GateResult],
    audits: Sequence[tuple[int, Audit]],
    *,
    by_points: bool,
) -> tuple[LevelStep, ...]:
    """What each level came to, from the highest down; levels nothing is asked of cannot be had."""
    return tuple(_step(level, gates, audits, by_points=by_points) for level in reversed(levels))


def _step(
    level: int,
    gates: Sequence[GateResult],
    audits: Sequence[tuple[int, Audit]],
    *,
    by_points: bool,
) -> LevelStep:
    def worst(found: Iterable[GateResult]) -> Status:
        return _worst(gate.status_by_points if by_points else gate.status for gate in found)

    deciding = [gate for gate in gates if gate.counts]
    own = [gate for gate in deciding if gate.level == level]
    found = {
        "thresholds": worst(gate for gate in own if gate.kind == "threshold"),
        "closures": worst(gate for gate in own if gate.kind == "closure"),
        "durations": worst(gate for gate in own if gate.kind == "duration"),
        "audits": _worst(audit.status for start, audit in audits if start <= level),
        "below": worst(gate for gate in deciding if 2 <= gate.level < level),
    }
    if level == LEVELS[-1] and not any(gate.level == level - 1 for gate in deciding):
        found["below"] = "missing"  # the fifth comes after the fourth only
    passed = all(status == "pass" for status in found.values())
    return LevelStep(level=level, passed=passed, **found)


def _worst(found: Iterable[Status]) -> Status:
    statuses = set(found)
    if "fail" in statuses:
        return "fail"
    for one in ("missing", "undecided"):
        if one in statuses:
            return one
    return "pass"


def _reached(steps: Sequence[LevelStep]) -> int:
    return next((step.level for step in steps if step.passed), 0)


# One gate ----------------------------------------------------------------------------------------


def _result(level: int, name: str, gate: Gate, profile: Profile, evidence: Readings) -> GateResult:
    if gate.test == "families":
        return _families(level, name, gate, profile, evidence)
    threshold = float(gate.thresholds[level])
    found = evidence.of(gate.reads)
    status, points = _compared(found, gate.test, threshold)
    if status == "fail" and gate.reads in HARM and _may_pass(found, gate.test, threshold):
        status = "undecided"
    result = GateResult(
        level=level, id=name, title=gate.title, reads=gate.reads, test=gate.test,
        threshold=threshold, found=found, counts=profile.counts(gate), kind=_kind(gate),
        status=status, status_by_points=points,
        reason=_words(found, gate, threshold, status, evidence),
    )  # fmt: skip
    hours = evidence.of("logged_hours").value if gate.test == "zero" else None
    if status == "pass" and hours is not None and hours < MIN_RATE_HOURS:
        return replace(result, status="undecided", reason=f"none {too_short(hours)}")
    return replace(result, reason=_yet(result, evidence)) if status == "undecided" else result


def _may_pass(found: Estimate, test: str, threshold: float) -> bool:
    """Whether the end of an interval that speaks for it passes, so that more hours may decide."""
    end = found.high if test in _LOW else found.low
    return end is None or _passes(end, test, threshold) == "pass"


def _yet(gate: GateResult, evidence: Readings) -> str:
    """What would decide a gate that has too few hours."""
    hours = more_hours(gate, evidence)
    if hours is None:
        return f"not decidable yet: {gate.reason}"
    where = "" if evidence.side == _REAL else " on a robot"
    what = "minor" if gate.reads == "minor_per_100_h" else "safety"
    return f"not decidable yet: about {hours:,} h more{where} without a {what} incident"


def _kind(gate: Gate) -> str:
    if gate.test == "closure":
        return "closure"
    return "duration" if gate.days else about(gate.reads).kind


def _compared(found: Estimate, test: str, threshold: float) -> tuple[Status, Status]:
    """How an estimate does by its interval, and by its point."""
    # Where nothing happened in the hours there is no point, but an end they show.
    value = found.value
    if value is None and test != "zero":
        value = found.low if test in _LOW else found.high
    if value is None:
        return "missing", "missing"
    end = found.low if test in _LOW else found.high
    # What was counted is known exactly.
    if test == "zero" or found.method == "counted":
        end = value
    by_point = _passes(value, test, threshold)
    # No interval means that it cannot be said how sure it is.
    by_end: Status = "missing" if end is None else _passes(end, test, threshold)
    return by_end, by_point


def _passes(value: float, test: str, threshold: float) -> Status:
    if test == "above":
        return "pass" if value > threshold + _FLOAT else "fail"
    if test in _LOW:
        return "pass" if value >= threshold - _FLOAT else "fail"
    return "pass" if value <= threshold + _FLOAT else "fail"


def _lacking(found: Estimate, gate: Gate, evidence: Readings) -> str:
    """Why a gate has nothing to compare, and what would supply it."""
    remedy = evidence.remedy_of(gate.reads)
    reason = found.reason or "no interval"
    # Axes without a value say themselves what would give them one.
    is_told = found.value is None and bool(about(gate.reads).axis)
    return reason if is_told or remedy in reason else f"{reason}; {remedy}"


def _words(
    found: Estimate, gate: Gate, threshold: float, status: Status, evidence: Readings
) -> str:
    test = gate.test
    if status == "missing":
        return _lacking(found, gate, evidence)
    if test == "zero":
        return "none happened" if status == "pass" else f"{found.value:g} happened"
    is_low = test in _LOW
    if found.method == "counted" and found.value is not None:
        text = f"{shown(found.value)} of {shown(threshold)}"
        return f"{text}; {found.reason}" if found.reason and status == "fail" else text
    end = found.low if is_low else found.high
    assert end is not None, "a status that is not missing has an end"
    name = "lower" if is_low else "upper"
    name = f"one-sided {name}" if gate.reads in HARM else name
    if found.method == "declared" and found.value is not None:
        return f"{shown(found.value)}, {found.reason}"
    passing, failing = (">=", "<") if is_low else ("<=", ">")
    if test == "above":
        passing, failing = ">", "<="
    sign = passing if status == "pass" else failing
    return f"{name} end {shown(end)} {sign} {shown(threshold)}"


def _families(
    level: int, name: str, gate: Gate, profile: Profile, evidence: Readings
) -> GateResult:
    if gate.of == name:  # over time
        days = gate.days.get(level, 1)
        passed = {family: streak.days >= days for family, streak in evidence.streaks.items()}
        by_point = passed
        what = f"{days} days in a row"
        reached = {family: f" ({streak.text})" for family, streak in evidence.streaks.items()}
    else:
        test, limit = _asked_of_each(gate, level, profile)
        shown = evidence.families_of(gate.reads)
        both = {family: _compared(found, test, limit) for family, found in shown.items()}
        passed = {family: status[0] == "pass" for family, status in both.items()}
        by_point = {family: status[1] == "pass" for family, status in both.items()}
        what = f"{test.replace('_', ' ')} {limit:g}"
        reached = {}
    # A family that was played, but of which this was not measured, is one of those asked for.
    known = [len(found) for found in evidence.families.values()]
    every = {*evidence.played, *passed}
    needed = _count(gate.thresholds[level], max(len(every), *known, 0))
    count = sum(passed.values())
    short = sorted(family for family in every if not passed.get(family, False))
    reason = f"{count} of {max(len(every), *known, 0)} families reach {what}, {needed} needed"
    if not passed:
        whole = evidence.of(gate.reads)
        is_there = whole.value is not None
        reason = evidence.remedy_of(gate.reads) if is_there else _lacking(whole, gate, evidence)
    elif short and count < needed:
        reason += f"; not {', '.join(family + reached.get(family, '') for family in short)}"
    return GateResult(
        level=level, id=name, title=gate.title, reads=gate.reads, test=gate.test,
        threshold=float(needed), counts=profile.counts(gate), kind=_kind(gate),
        found=Estimate(
            value=float(sum(by_point.values())), low=float(count), n=len(passed),
            method="counted", unit="families",
        ) if passed else Estimate.missing(reason=reason, unit="families"),
        status=_enough(count, needed, passed),
        status_by_points=_enough(sum(by_point.values()), needed, passed),
        reason=reason,
    )  # fmt: skip


def _asked_of_each(gate: Gate, level: int, profile: Profile) -> tuple[str, float]:
    """The test and the threshold that each family has to pass."""
    if gate.of is None:
        return gate.each_test, gate.each[level]
    other = profile.gates[gate.of]
    return other.test, float(other.thresholds[level])


def _enough(count: int, needed: int, families: Mapping[str, bool]) -> Status:
    if not families:
        return "missing"
    return "pass" if count >= needed else "fail"


def _count(threshold: float | str, families: int) -> int:
    """Families a gate asks for: `half` of them is two at least."""
    if threshold == "all":
        return max(1, families)
    if threshold == "half":
        return max(2, math.ceil(families / 2))
    return int(threshold)
