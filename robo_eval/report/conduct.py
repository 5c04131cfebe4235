"""How a trial was run, and by which settings its numbers were made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from robo_eval.core.estimate import Estimate
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.deviation import Deviation
from robo_eval.metrics.raters import SecondRater
from robo_eval.metrics.summary import TrialSummary
from robo_eval.page.words import missing_words, percent, shortened, spaced, thousands

OURS: Final = "this project's choice"
NEEDED: Final = "for this trial"
"""Settings without a default: what they are depends on the robot."""
MEANINGS: Final[Mapping[str, str]] = {
    "level": "coverage intervals aim at",
    "resamples": "bootstrap resamples",
    "seed": "seed of the bootstrap",
    "min_coverage": "share of episodes that must be scored for a headline",
    "policy_faults": "what an episode counts as that an error of the policy ended",
    "severity_weights": "what one incident per 100 h costs",
    "safety_form": "how the weighted incident rates become SS",
    "max_unmatched": "share of physical episodes that may lack a simulated counterpart",
    "min_effective_size": "fewer effective simulated episodes are flagged",
    "max_voids": "a larger share of void attempts is flagged",
    "tolerances": "greatest value with full credit in QC, by task family",
    "control_weights": "weights of the measures in QC",
    "price_card": "what an hour of exposure costs",
    "currency": "currency of the price card",
    "calibration": "calibration whose simulation is compared",
}
_WITHOUT_DEFAULT: Final = ("tolerances", "price_card", "currency", "calibration")
_FORMS: Final = {
    "linear": "linear: max(0, 1 − x)",
    "exponential": "exponential: exp(−x)",
    "reciprocal": "reciprocal: 1 / (1 + x)",
}
_SHARES: Final = ("level", "min_coverage", "max_unmatched", "max_voids")
_MOST_FINDINGS: Final = 5
_MOST_REASONS: Final = 3
_MOST_EPISODES: Final = 3
_LONGEST: Final = 90
"""Characters of a reason that are shown."""
_TOLD_ABOVE: Final = ("void", "fault")
"""Kinds whose reasons stand elsewhere on the page, policy by policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Voids:
    """How often attempts of a policy were declared void.

    Attributes:
        policy: Name shown.
        rate: Void attempts out of all attempts.
        n: Void attempts.
        attempts: All attempts.
        reasons: Void attempts by reason: `2 operator error, 1 power cut`.
        is_high: Whether there are more than the settings allow.
        success: Share of strict successes of the scored episodes.
        with_voids: The same with every void attempt counted as a failure.
    """

    policy: str
    rate: Estimate
    n: int
    attempts: int
    reasons: str
    is_high: bool
    success: Estimate
    with_voids: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of the metrics.

    Attributes:
        name: What it is called in a plan.
        meaning: What it is, in words.
        value: Its value, in words.
        origin: Whose choice it is.
    """

    name: str
    meaning: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """How a trial was run, and by which settings it is told.

    Attributes:
        is_shown: Whether there is more to tell than the settings.
        has_people: Whether people or robots took part: voids, raters and evidence are told then.
        deviations: In what the trial departed from its plan; None if nothing was planned.
        voids: Void attempts, where there are any.
        faults: What errors of the policies change, a line each.
        max_voids: Share of void attempts from which on a policy is flagged.
        raters: Second raters.
        findings: What in the evidence does not fit the episodes, each in one line.
        evidence: Name and SHA-256 of each file of evidence.
        settings: Every setting of the metrics.
        digest: SHA-256 of the settings.
    """

    is_shown: bool
    has_people: bool
    deviations: Sequence[DeviationLine] | None = None
    voids: Sequence[Voids] = ()
    faults: Sequence[str] = ()
    max_voids: float
    raters: Sequence[SecondRater] = ()
    findings: Sequence[str] = ()
    evidence: Sequence[tuple[str, str]] = ()
    settings: Sequence[Setting]
    digest: str


def conduct_of(summary: TrialSummary, name_of: Callable[[str, str], str]) -> Conduct:
    """How the trial was run.

    Args:
        summary: Metrics of the trial.
        name_of: Name shown of a policy, from its side and its own name.
    """
    voids = [
        Voids(
            policy=name_of(row.side, row.policy),
            rate=body.of("void_rate"),
            n=sum(body.voids.values()),
            attempts=body.attempts,
            reasons=missing_words(body.voids),
            is_high=body.has_many_voids,
            success=row.success,
            with_voids=row.success_with_voids,
        )
        for row in summary.policies
        if (body := summary.body_of(row)) is not None and body.voids
    ]
    told = (summary.robots, voids, summary.raters, summary.findings, summary.evidence)
    has_sides = len({row.side for row in summary.policies}) > 1
    found = summary.deviations
    return Conduct(
        is_shown=any(told) or found is not None,
        has_people=any(told),
        deviations=None if found is None else deviation_lines(found, has_sides=has_sides),
        voids=voids,
        faults=[
            f"{name_of(row.side, row.policy)}: {row.faults_text}."
            for row in summary.policies
            if row.faults_text
        ],
        max_voids=summary.config.max_voids,
        raters=summary.raters,
        findings=[f"{place_of(found.where)}: {found.text}" for found in summary.findings],
        # Where the files lay says something about a machine, not about the trial.
        evidence=[(Path(path).name, sha) for path, sha in summary.evidence.items()],
        settings=settings_of(summary.config),
        digest=summary.config.digest,
    )


def place_of(where: str) -> str:
    """File and line without the folders; a place in the episodes as it is."""
    file, line, number = where.rpartition(": line ")
    return f"{Path(file).name}{line}{number}" if line else where


def conduct_warnings(conduct: Conduct) -> list[str]:
    """What a reader must know before any number: evidence that does not fit, too many voids."""
    warnings = []
    if conduct.findings:
        shown = "; ".join(conduct.findings[:_MOST_FINDINGS])
        more = len(conduct.findings) - _MOST_FINDINGS
        others = f"; and {more} more, see metrics.json" if more > 0 else ""
        warnings.append(f"The audit of the evidence failed: {shown}{others}.")
    warnings.extend(conduct.faults)
    high = [found for found in conduct.voids if found.is_high]
    if high:
        counts = "; ".join(f"{it.policy}: {it.n} of {it.attempts}" for it in high)
        warnings.append(
            f"More than {percent(conduct.max_voids)} of the attempts were declared void, and a void"
            f" hides an outcome. {counts}."
        )
    return warnings


def settings_of(config: MetricConfig) -> list[Setting]:
    """Every setting, with its value and whose choice it is."""
    plain = MetricConfig()
    return [
        Setting(
            name=part.name,
            meaning=MEANINGS.get(part.name, spaced(part.name)),
            value=value_text(part.name, getattr(config, part.name)),
            origin=_origin(part.name, getattr(config, part.name), getattr(plain, part.name)),
        )
        for part in fields(config)
    ]


def _origin(name: str, value: object, default: object) -> str:
    if name in _WITHOUT_DEFAULT:
        return "" if value == default else NEEDED
    if value == default:
        return OURS
    return f"{NEEDED}; {OURS} is {value_text(name, default)}"


def value_text(name: str, value: Any) -> str:
    """A setting as people write it.

    Example:
        >>> value_text("severity_weights", {"near_miss": 0.01, "minor": 0.1})
        'near miss 0.01, minor 0.1'
    """
    if value is None or value == "" or value == {}:
        return "all 1" if name == "control_weights" else "not set"
    if name in _SHARES:
        return percent(value)
    if name == "safety_form":
        return _FORMS.get(value, str(value))
    if isinstance(value, Mapping):
        parts = [f"{spaced(str(key))} {_entry_text(entry)}" for key, entry in value.items()]
        return ", ".join(parts)
    return _entry_text(value)


def _entry_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{spaced(str(k))} {_entry_text(v)}" for k, v in value.items()) + ")"
    if isinstance(value, float):
        return f"{value:g}"
    return thousands(value) if isinstance(value, int) else str(value)


# Deviations --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviationLine:
    """One deviation, as it is shown.

    Attributes:
        what: What is counted.
        side: Where, if the trial has several sides.
        count: How many.
        why: Reasons and what else there is to say.
        which: The first few episodes.
        more: How many more there are; empty if none.
        when: When the first started, and up to when the last did; empty if not known.
    """

    what: str
    side: str
    count: str
    why: str
    which: Sequence[str]
    more: str
    when: Sequence[str]


def deviation_lines(found: Sequence[Deviation], *, has_sides: bool) -> list[DeviationLine]:
    """Deviations as they are shown.

    Args:
        found: What `conduct.deviations` found.
        has_sides: Whether the trial has several sides.
    """
    return [
        DeviationLine(
            what=it.what,
            side=it.side if has_sides else "",
            count=thousands(it.count),
            why=_why(it),
            which=it.episodes[:_MOST_EPISODES],
            more=f"and {thousands(rest)} more" if (rest := _rest(it)) > 0 else "",
            when=_when(it),
        )
        for it in found
    ]


def _rest(it: Deviation) -> int:
    """Episodes that are not named; a change of robot or software is not an episode each."""
    is_change = it.kind in ("software", "robot", "operator", "calibration", "policy", "pauses")
    if is_change or not it.episodes:
        return 0
    return it.count - min(len(it.episodes), _MOST_EPISODES)


def _why(it: Deviation) -> str:
    reasons = {} if it.kind in _TOLD_ABOVE else _first_reasons(it.reasons)
    # One reason for all needs no count.
    whole = len(reasons) == 1 and len(it.reasons) == 1
    parts = [text if whole else f"{thousands(n)} {text}" for text, n in reasons.items()]
    is_cut = len(it.reasons) > len(reasons)
    if parts and is_cut:
        parts.append("other reasons")
    return "; ".join([*parts, *([it.text] if it.text else [])])


def _first_reasons(reasons: Mapping[str, int]) -> dict[str, int]:
    first = list(reasons.items())[:_MOST_REASONS]
    return {shortened(spaced(text), _LONGEST): n for text, n in first}


def _when(it: Deviation) -> list[str]:
    if it.first_ns is None or it.last_ns is None:
        return []
    first, last = _instant(it.first_ns), _instant(it.last_ns)
    begin, end = f"{first:%Y-%m-%d %H:%M}", f"{last:%Y-%m-%d %H:%M}"
    if begin == end:
        return [begin]
    return [begin, f"to {last:%H:%M}" if first.date() == last.date() else f"to {end}"]


def _instant(stamp_ns: int) -> datetime:
    return datetime.fromtimestamp(stamp_ns / 1e9, tz=UTC)
