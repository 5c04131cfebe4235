"""Which autonomy level each policy has shown, and what is missing, in the words of a report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.gates import Assessment, GateResult, Lacking
from robo_eval.gates.profile import LEVELS
from robo_eval.report.words import bounds, count, no_interval, number, thousands

_BODIES: Final = {
    Side.REAL.value: "on the robot",
    Side.TWIN.value: "on the twin",
    Side.SIM.value: "in simulation",
}
_TAGS: Final = {"sim_only": "simulation only"}
"""Tags that are no words yet."""
_ASKED: Final = {"at_least": "≥ ", "at_most": "≤ ", "families": "≥ "}
_NOUNS: Final = {
    "autonomy": "episode",
    "planning": "episode",
    "tools": "episode",
    "ar": "episode",
    "world_model": "episode",
    "ra": "fault",
    "ss": "incident",
    "minor_per_100_h": "incident",
    "mtbsi": "incident",
    "kappa": "checkpoint",
}
"""What a quantity's sample is counted in, where it is the same for every trial."""
_COUNTED: Final = "counted"
_GAP: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_FEW: Final = 2
"""Policies up to which every table of gates is unfolded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Light:
    """What one level asks of a gate, and whether that was shown.

    Attributes:
        level: The level.
        asked: The threshold, with its direction.
        status: `pass`, `fail` or `missing`: the word beside the sign.
        found: What was found at this level, where each level looks for something else.
        reason: Why, in words.
    """

    level: int
    asked: str
    status: str
    found: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow:
    """One gate with all levels that have it.

    Attributes:
        title: What people call it.
        value: The evidence found; empty where there is none.
        interval: Its interval, or why there is none.
        rests_on: How much it rests on.
        lights: One for each level; None where a level does not ask.
        reason: Why the lowest level that is not passed is not, or why it passes.
    """

    title: str
    value: str
    interval: str
    rests_on: str
    lights: Sequence[Light | None]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One audit.

    Attributes:
        title: What is checked.
        level: From which level on it has to pass.
        status: `pass`, `fail` or `missing`.
        reason: What was found.
    """

    title: str
    level: int
    status: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingList:
    """What is missing for a level.

    Attributes:
        level: The level.
        items: Each thing in a line.
    """

    level: int
    items: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLevel:
    """What is said of one policy.

    Attributes:
        policy: Its name.
        badge: The level, or that there is none.
        is_valid: Whether the window counts.
        tag: What the level is evidence of.
        found_where: Where the evidence was found.
        reason: Why the level is what it is, as a sentence.
        notes: What else is to be said of the level, each as a sentence.
        missing: What is missing for the next level; None if there is no next one.
        above: What is missing for the levels above that.
        gates: The gates, in the order of the profile.
        audits: The audits.
        passed: How many of the audits pass, in words.
    """

    policy: str
    badge: str
    is_valid: bool
    tag: str
    found_where: str
    reason: str
    notes: Sequence[str]
    missing: MissingList | None
    above: Sequence[MissingList]
    gates: Sequence[GateRow]
    audits: Sequence[AuditRow]
    passed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Autonomy:
    """What the section on autonomy levels shows.

    Attributes:
        policies: One for each policy.
        levels: The levels that have gates.
        text: How to read it.
        profile_name: Which profile was asked.
        profile_digest: SHA-256 of it.
        is_open: Whether the tables of gates are unfolded.
    """

    policies: Sequence[PolicyLevel]
    levels: Sequence[int]
    text: Sequence[str]
    profile_name: str
    profile_digest: str
    is_open: bool


def autonomy_of(
    assessments: Sequence[Assessment], *, places: Mapping[str, str] | None = None
) -> Autonomy | None:
    """What is shown of the autonomy levels; None if no policy was played on a robot or its twin.

    In simulation alone nearly every gate would be missing, which says nothing about the policy.

    Args:
        assessments: One for each policy, by one profile.
        places: Names of files and folders, and what to call them: where a trial lay says something
            about a machine, not about the trial.
    """
    if all(one.side == Side.SIM.value for one in assessments):
        return None
    first = assessments[0]
    return Autonomy(
        policies=[_policy(one, places or {}) for one in assessments],
        levels=LEVELS,
        text=_how_to_read(assessments),
        profile_name=f"Profile {first.profile}",
        profile_digest=first.profile_digest,
        is_open=len(assessments) <= _FEW,
    )


def _how_to_read(assessments: Sequence[Assessment]) -> list[str]:
    text = [
        (
            "Level of the AAI scale, AAI-0 to AAI-4, that the evidence supports. A gate reads the"
            " end of the interval that speaks against it, and what was not measured does not pass."
            " A level needs its own gates, those of the levels from AAI-2 on below it, and the"
            " audits."
        )
    ]
    if any(one.side == Side.TWIN.value for one in assessments):
        text.append(
            "AR_twin and S2S stand where gates ask for AR and S2R: what a twin showed is evidence"
            " of the twin, and the higher levels ask for episodes on a physical robot."
        )
    return text


def _policy(one: Assessment, places: Mapping[str, str]) -> PolicyLevel:
    lists = [
        MissingList(level=level, items=[_written(item.text, places) for item in _told(found)])
        for level, found in sorted(one.missing.items())
    ]
    passed = sum(audit.status == "pass" for _, audit in one.audits)
    return PolicyLevel(
        policy=one.policy,
        badge="no level" if one.level is None else _name(one.level),
        is_valid=one.level is not None,
        tag=_TAGS.get(one.evidence_tag, one.evidence_tag),
        found_where=_BODIES[one.side],
        reason=_sentence(_written(one.reason, places)),
        notes=_notes(one),
        missing=next((it for it in lists if it.level == one.next_level), None),
        above=[it for it in lists if it.level != one.next_level],
        gates=_gates(one.gates, places),
        audits=[
            AuditRow(
                title=audit.title,
                level=level,
                status=audit.status,
                reason=_written(audit.reason, places),
            )
            for level, audit in one.audits
        ],
        passed=f"{passed} of {len(one.audits)} pass",
    )


def _name(level: int) -> str:
    return f"AAI-{level}"


def _told(found: Iterable[Lacking]) -> list[Lacking]:
    """Each text once: several gates may ask for one thing."""
    return list({item.text: item for item in found}.values())


def _notes(one: Assessment) -> list[str]:
    notes = []
    if one.would_be is not None:
        notes.append(f"Would be {_name(one.would_be)} on a robot.")
    points = one.level_by_points
    if points is not None and points != one.level:
        notes.append(
            f"By point estimates it is {_name(points)}, which the intervals do not support yet."
        )
    return notes


# Gates -------------------------------------------------------------------------------------------


def _gates(gates: Iterable[GateResult], places: Mapping[str, str]) -> list[GateRow]:
    """The gates by id: a row each, in the order in which the levels bring them."""
    rows: dict[str, dict[int, GateResult]] = {}
    for gate in gates:
        rows.setdefault(gate.id, {})[gate.level] = gate
    return [_gate(by_level, places) for by_level in rows.values()]


def _gate(by_level: Mapping[int, GateResult], places: Mapping[str, str]) -> GateRow:
    first = next(iter(by_level.values()))
    lights = [_light(by_level[level], places) if level in by_level else None for level in LEVELS]
    is_families = first.test == "families"
    return GateRow(
        title=first.title,
        value=_families(first.found) if is_families else _value(first.found),
        interval="" if is_families else _interval(first.found),
        rests_on="" if is_families else _rests_on(first),
        lights=lights,
        reason=_reason([light for light in lights if light is not None]),
    )


def _light(gate: GateResult, places: Mapping[str, str]) -> Light:
    return Light(
        level=gate.level,
        asked=_asked(gate),
        status=gate.status,
        found=_share(gate.found) if gate.test == "families" else "",
        reason=_written(gate.reason, places),
    )


def _asked(gate: GateResult) -> str:
    if gate.test == "zero":
        return "none"
    if gate.test == "closure":
        return "shown"
    return f"{_ASKED[gate.test]}{_amount(gate.threshold)}"


def _reason(lights: Sequence[Light]) -> str:
    """The reason of the lowest level that is not passed, else of the highest that is."""
    if len({light.reason for light in lights}) == 1:
        return lights[0].reason
    told = next((light for light in lights if light.status != "pass"), lights[-1])
    return f"{_name(told.level)}: {told.reason}"


# Evidence ----------------------------------------------------------------------------------------


def _families(found: Estimate) -> str:
    return "" if found.value is None else count(found.n, "family", "families")


def _share(found: Estimate) -> str:
    """Families that pass by their intervals, of all."""
    return "" if found.low is None else f"{found.low:g} of {found.n}"


def _value(found: Estimate) -> str:
    if found.value is not None:
        return _amount(found.value, found.unit)
    # Where nothing happened in the hours, they show one end and no point.
    if found.low is not None:
        return f"at least {_amount(found.low, found.unit)}"
    return "" if found.high is None else f"at most {_amount(found.high, found.unit)}"


def _interval(found: Estimate) -> str:
    if found.value is None or found.method == _COUNTED:
        return ""
    if found.low is None or found.high is None:
        return no_interval(found)
    if found.unit == "ratio":
        return bounds(found, digits=3)
    return f"{_amount(found.low, found.unit)} to {_amount(found.high, found.unit)}"


def _rests_on(gate: GateResult) -> str:
    found = gate.found
    if not _value(found) or found.method == _COUNTED:
        return ""
    noun = _NOUNS.get(gate.reads)
    return count(found.n, noun) if noun else f"n = {thousands(found.n)}"


def _amount(value: float, unit: str = "") -> str:
    """A number of a gate: measured shares with three decimals, all else with three digits.

    Example:
        >>> _amount(0.5833, "ratio"), _amount(0.5), _amount(0.0074365, "h")
        ('0.583', '0.5', '0.00744')
    """
    if unit == "ratio":
        return number(value, digits=3)
    if abs(value) >= 1000:
        return thousands(round(value))
    return f"{value:.3g}".replace("-", "−")


# Words -------------------------------------------------------------------------------------------


def _written(text: str, places: Mapping[str, str]) -> str:
    """A text of the assessment as the page writes it: its signs and gaps, and without folders."""
    for place, name in places.items():
        text = text.replace(place, name)
    text = text.replace(">=", "≥").replace("<=", "≤")
    return _GAP.sub("\N{NO-BREAK SPACE}", text)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
