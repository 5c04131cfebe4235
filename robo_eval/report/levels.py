"""Which autonomy level each policy has shown, and what is missing, in the words of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.page.words import bounds, count, no_interval, thousands
from robo_eval.report.level_evidence import (
    axes_part,
    form_part,
    frontier_part,
    joined,
    progress_rows,
)
from robo_eval.report.level_words import COUNTED, amount, sentence, written
from robo_eval.report.levels_model import (
    LEAST_AXES,
    LEAST_DAYS,
    AuditRow,
    AuditTable,
    Autonomy,
    GateRow,
    GateTable,
    Light,
    MissingList,
    PolicyLevel,
    StepRow,
    Stretch,
)

if TYPE_CHECKING:
    from robo_eval.gates import Assessment, Audit, GateResult, Lacking
    from robo_eval.gates.assessment import Step
    from robo_eval.gates.readings import Readings
    from robo_eval.gates.trial import Findings

_BODIES: Final = {
    Side.REAL.value: "on the robot",
    Side.TWIN.value: "on the twin",
    Side.SIM.value: "in simulation",
}
_TAGS: Final = {"sim_only": "simulation only"}
"""Tags that are no words yet."""
_ASKED: Final = {"at_least": "≥ ", "at_most": "≤ ", "above": "> ", "families": "≥ "}
_NOUNS: Final = {
    "autonomy": "episode",
    "planning": "episode",
    "tools": "episode",
    "AR": "episode",
    "AR_new_task": "task",
    "S2R_new_task": "task",
    "world_model": "episode",
    "RA": "fault",
    "SS": "incident",
    "minor_per_100_h": "incident",
    "MTBSI": "incident",
    "kappa": "checkpoint",
}
"""What a quantity's sample is counted in, where it is the same for every trial."""
_FEW: Final = 2
"""Policies up to which the main tables are unfolded."""


def autonomy_of(
    findings: Findings | None, *, places: Mapping[str, str] | None = None
) -> Autonomy | None:
    """What is shown of the autonomy levels; None if no policy was played on a robot or its twin.

    In simulation alone nearly every gate would be missing, which says nothing about the policy.

    Args:
        findings: What is said of the trial.
        places: Names of files and folders, and what to call them: where a trial lay says something
            about a machine, not about the trial.
    """
    if findings is None or all(one.side == Side.SIM.value for one in findings.policies):
        return None
    first, named = findings.policies[0], places or {}
    weights = findings.profile.index.weights
    policies = [_policy(one, weights, named) for one in findings.policies]
    return Autonomy(
        policies=policies,
        text=_how_to_read(findings.policies),
        axes_note=_left_out(
            [one.policy for one in policies if not one.has_axes],
            len(policies),
            f"the axes: fewer than {LEAST_AXES} of them have a value",
        ),
        days_note=_left_out(
            [one.policy for one in policies if not one.has_days],
            len(policies),
            f"capability over time: checkpoints.csv has fewer than {LEAST_DAYS} days with all task"
            " families",
        ),
        frontier=frontier_part(findings.frontier, len(policies)),
        form=form_part(findings.checklist, named),
        thresholds="every threshold was chosen by this project."
        if findings.profile.is_built_in
        else "every threshold is the profile's own.",
        profile_name=f"Profile {first.profile}",
        profile_digest=first.profile_digest,
        is_open=len(policies) <= _FEW,
    )


def _how_to_read(assessments: Sequence[Assessment]) -> list[str]:
    names = assessments[0].name_of
    highest = max((step.level for one in assessments for step in one.steps), default=0)
    text = [
        (
            f"Level that the evidence supports, {names(0)} to {names(highest)}. A gate reads the"
            " end of the interval that speaks against it, and what was not measured does not pass."
            f" A level needs its own gates, those of the levels from {names(2)} on below it, and"
            " the audits; and no level is issued of tasks that are not fit to show one."
        )
    ]
    if any(one.side == Side.TWIN.value for one in assessments):
        text.append(
            "AR_twin and S2S stand where gates ask for AR and S2R: what a twin showed is evidence"
            " of the twin, and the higher levels ask for episodes on a physical robot."
        )
    return text


def _left_out(names: Sequence[str], policies: int, what: str) -> str:
    """Why policies are not in a picture; empty if all are."""
    if not names:
        return ""
    who = "" if len(names) == policies else f" for {joined(names)}"
    return f"There is no picture{who} of {what}."


def _policy(
    one: Assessment, weights: str | Mapping[str, float], places: Mapping[str, str]
) -> PolicyLevel:
    lists = [
        MissingList(
            level=level,
            items=[
                sentence(written(f"{item.effort}: {item.text}", places)) for item in _told(found)
            ],
        )
        for level, found in sorted(one.missing.items())
    ]
    readings = one.readings
    # Of levels the profile asks nothing of there is nothing to list but at the end of the scale.
    asked = {step.level for step in one.steps}
    return PolicyLevel(
        policy=one.policy,
        side=one.side,
        badge=one.badge,
        is_valid=one.level_conservative is not None and not one.non_standard,
        tag=_TAGS.get(one.evidence_tag, one.evidence_tag),
        found_where=_BODIES[one.side],
        headline=" ".join(map(sentence, (one.headline, *_grounds(readings)))),
        reason=sentence(written(one.reason, places)),
        notes=_notes(one),
        missing=next((it for it in lists if it.level == one.next_level), None),
        above=[it for it in lists if it.level != one.next_level and it.level in asked],
        prefix=one.prefix,
        gates=_gates(one, places, decides=True),
        reported=_gates(one, places, decides=False),
        steps=[_step(step) for step in one.steps],
        audits=_audits(one.audits, places),
        battery=_audits([(0, audit) for audit in readings.battery], places),
        axes=axes_part(readings, weights, places),
        progress=progress_rows(readings.progress, places),
        axes_found=readings.axes,
        days_found=readings.days,
        progress_found=readings.progress,
        kept=_kept(one),
    )


def _grounds(readings: Readings) -> Iterator[str]:
    """What the evidence rests on, in the line of the level."""
    if readings.grounds:
        yield f"the evidence: {', '.join(readings.grounds)}"


def _kept(one: Assessment) -> Stretch | None:
    """The days on which the maintenance closure holds at some level."""
    upkeep = one.readings.upkeep
    holds = any(gate.reads == "maintenance_days" and gate.status == "pass" for gate in one.gates)
    if upkeep is None or upkeep.first_day is None or upkeep.last_day is None or not holds:
        return None
    return Stretch(first=upkeep.first_day, last=upkeep.last_day)


def _told(found: Iterable[Lacking]) -> list[Lacking]:
    """Each text once: several gates may ask for one thing."""
    return list({item.text: item for item in found}.values())


def _notes(one: Assessment) -> list[str]:
    notes = []
    if one.would_be is not None:
        needs = ["on a robot"] if one.side != Side.REAL.value else []
        if any(audit.status != "pass" for audit in one.readings.battery):
            needs.append("with tasks that are fit to show a level")
        notes.append(f"Would be {one.name_of(one.would_be)} {joined(needs)}.")
    left_out = one.readings.left_out or one.readings.left_out_allowed
    if left_out:
        notes.append(sentence(left_out))
    return notes


def _step(step: Step) -> StepRow:
    names = ("thresholds", "closures", "durations", "audits", "below")
    checks = {name: str(getattr(step, name)) for name in names}
    return StepRow(level=step.level, checks=checks, passed=step.passed)


def _audits(found: Sequence[tuple[int, Audit]], places: Mapping[str, str]) -> AuditTable:
    passed = sum(audit.status == "pass" for _, audit in found)
    return AuditTable(
        rows=[
            AuditRow(
                title=audit.title,
                level=level,
                status=audit.status,
                reason=written(audit.reason, places),
            )
            for level, audit in found
        ],
        passed=f"{passed} of {len(found)} pass",
    )


# Gates -------------------------------------------------------------------------------------------


def _gates(one: Assessment, places: Mapping[str, str], *, decides: bool) -> GateTable:
    """The gates by id: a row each, in the order in which the levels bring them."""
    gates = [gate for gate in one.gates if gate.counts == decides]
    levels = sorted({gate.level for gate in gates})
    rows: dict[str, dict[int, GateResult]] = {}
    for gate in gates:
        rows.setdefault(gate.id, {})[gate.level] = gate
    return GateTable(
        levels=levels,
        rows=[_gate(by_level, levels, places, one.name_of) for by_level in rows.values()],
    )


def _gate(
    by_level: Mapping[int, GateResult],
    levels: Sequence[int],
    places: Mapping[str, str],
    name_of: Callable[[int], str],
) -> GateRow:
    first = next(iter(by_level.values()))
    lights = [_light(by_level[level], places) if level in by_level else None for level in levels]
    is_families = first.test == "families"
    return GateRow(
        title=first.title,
        value=_families(first.found) if is_families else _value(first.found),
        interval="" if is_families else _interval(first),
        rests_on="" if is_families else _rests_on(first),
        lights=lights,
        reason=_reason([light for light in lights if light is not None], name_of),
    )


def _light(gate: GateResult, places: Mapping[str, str]) -> Light:
    return Light(
        level=gate.level,
        asked=_asked(gate),
        status=gate.status,
        found=_share(gate.found) if gate.test == "families" else "",
        reason=written(gate.reason, places),
    )


def _asked(gate: GateResult) -> str:
    if gate.test == "zero":
        return "none"
    if gate.test == "closure":
        return "shown"
    return f"{_ASKED[gate.test]}{amount(gate.threshold)}"


def _reason(lights: Sequence[Light], name_of: Callable[[int], str]) -> str:
    """The reason of the lowest level that is not passed, else of the highest that is."""
    if len({light.reason for light in lights}) == 1:
        return lights[0].reason
    told = next((light for light in lights if light.status != "pass"), lights[-1])
    return f"{name_of(told.level)}: {told.reason}"


# Evidence ----------------------------------------------------------------------------------------


def _families(found: Estimate) -> str:
    return "" if found.value is None else count(found.n, "family", "families")


def _share(found: Estimate) -> str:
    """Families that pass by their intervals, of all."""
    return "" if found.low is None else f"{found.low:g} of {found.n}"


def _value(found: Estimate) -> str:
    if found.value is not None:
        return amount(found.value, found.unit)
    # Where nothing happened in the hours, they show one end and no point.
    if found.low is not None:
        return f"at least {amount(found.low, found.unit)}"
    return "" if found.high is None else f"at most {amount(found.high, found.unit)}"


def _interval(gate: GateResult) -> str:
    found = gate.found
    if found.value is None or found.method in COUNTED:
        return ""
    if found.low is None or found.high is None:
        return no_interval(found)
    if found.unit == "ratio":
        ends = bounds(found, digits=3)
    else:
        ends = f"{amount(found.low, found.unit)} to {amount(found.high, found.unit)}"
    return ends + ", each one-sided" * gate.is_one_sided


def _rests_on(gate: GateResult) -> str:
    found = gate.found
    if not _value(found) or found.method in COUNTED:
        return ""
    noun = _NOUNS.get(gate.reads)
    return count(found.n, noun) if noun else f"n = {thousands(found.n)}"
