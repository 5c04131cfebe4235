"""How the causes of one physical event become the draft of a report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from robo_eval_incidents.happened import Occurrence, Scene
from robo_eval_incidents.kinds import MOST_QUANTITIES, Evidence, Quantity, Report, plain
from robo_eval_incidents.rule import Rule

AROUND_NS: Final = 10 * 10**9
"""How much of a trace matters before and after an event."""
_CAUSE_LINE: Final = re.compile(
    r"- (?:[0-9.]+ s later, )?(?P<name>.+?)(?:: .*?)?(?: \([0-9]+ times\))?"
)
_MOST_DESCRIPTION: Final = 7_000
"""A description takes more; the rest is for what is added to it."""
_MOST_TEXT: Final = 300
_LINE: Final = 200
_NAME: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """An occurrence that a rule takes for an incident, or for a part of one."""

    occurrence: Occurrence
    rule: Rule


def drafted(
    scene: Scene,
    causes: Sequence[Cause],
    *,
    injected: Iterable[tuple[int, str]] = (),
    evidence_folder: Path,
) -> Report:
    """The draft of one physical event: one incident, at the highest severity of its causes.

    Args:
        scene: Where it happened.
        causes: Its causes, oldest first.
        injected: Faults that the plan had injected into the episode, with the time.
        evidence_folder: What evidence is relative to.
    """
    worst = max(causes, key=lambda cause: cause.rule.severity.rank)
    first_ns = causes[0].occurrence.time_ns
    provoked = [name for time_ns, name in injected if 0 <= first_ns - time_ns <= AROUND_NS]
    lines = [worst.rule.words]
    if provoked:
        lines.append(f"The plan had injected: {cleaned(', '.join(provoked), _LINE)}.")
    if scene.trace is None:
        lines.append("There is no trace of it.")
    return Report(
        happened_ns=first_ns,
        robot=cleaned(scene.robot, _NAME),
        side=scene.side,
        severity=worst.rule.severity,
        category=worst.rule.category,
        description="\n".join(_fitting([*lines, *_lines(causes)], _MOST_DESCRIPTION)),
        engagement=scene.engagement,
        episode_id=cleaned(scene.episode_id, _LINE) or None,
        policy=cleaned(scene.policy, _LINE) if scene.policy else None,
        task=cleaned(scene.task, _LINE) if scene.task else None,
        quantities=tuple(_quantities(causes))[:MOST_QUANTITIES],
        evidence=tuple(_trace(scene, causes, evidence_folder)),
        rule=worst.rule.name,
    )


def window_of(causes: Sequence[Cause]) -> tuple[int, int]:
    """First and last instant that matter of an event."""
    first_ns, last_ns = causes[0].occurrence.time_ns, causes[-1].occurrence.time_ns
    return max(0, first_ns - AROUND_NS), last_ns + AROUND_NS


def additions(new: Report, old: Report) -> dict[str, Any] | None:
    """What a later draft of an event adds to the fields of an earlier one; None if nothing.

    Args:
        new: The later draft, of all causes or of the late ones only.
        old: The report as it stands.
    """
    lines = added_lines(new, old)
    if not lines:
        return None
    room = _MOST_DESCRIPTION - len(old.description)
    fields: dict[str, Any] = {"description": "\n".join([old.description, *_fitting(lines, room)])}
    names = {each.name for each in old.quantities}
    more = [each for each in new.quantities if each.name not in names]
    if more:
        both = (*old.quantities, *more)[:MOST_QUANTITIES]
        fields["quantities"] = [plain(each) for each in both]
    return fields


def added_lines(new: Report, old: Report) -> list[str]:
    """Lines of a later draft of an event that tell of causes an earlier one does not name."""
    known = _causes(old)
    return [line for name, line in _causes(new).items() if name not in known]


def _causes(report: Report) -> dict[str, str]:
    """Lines of a draft that tell of a cause, by its name."""
    found = map(_CAUSE_LINE.fullmatch, report.description.splitlines())
    return {line["name"]: line[0] for line in found if line is not None}


def cleaned(text: str, most: int) -> str:
    r"""A text of a robot as one line that a record takes.

    Example:
        >>> cleaned("stop\x00 of  arm_1", 20)
        'stop? of arm_1'
    """
    line = " ".join("".join(c if c.isprintable() or c.isspace() else "?" for c in text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _lines(causes: Sequence[Cause]) -> Iterator[str]:
    """A line for each name of a cause, with the first that was said."""
    first_ns = causes[0].occurrence.time_ns
    times = Counter(cause.occurrence.name for cause in causes)
    for name, count in times.items():
        said = next(each.occurrence for each in causes if each.occurrence.name == name)
        late_s = (said.time_ns - first_ns) * 1e-9
        when = f"{late_s:.2f} s later, " if said.time_ns > first_ns else ""
        text = cleaned(said.text, _MOST_TEXT)
        often = f" ({count} times)" if count > 1 else ""
        yield f"- {when}{cleaned(name, _NAME)}" + (f": {text}" if text else "") + often


def _fitting(lines: Iterable[str], room: int) -> Iterator[str]:
    """As many lines, from the first on, as there is room for."""
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return
        yield line


def _quantities(causes: Sequence[Cause]) -> Iterator[Quantity]:
    seen = set()
    for cause in causes:
        fields = cause.occurrence.fields
        for name, where in cause.rule.quantities.items():
            value, limit = fields.get(where.field), fields.get(where.limit)
            full = cleaned(f"{name} {fields.get('joint', '')}", _NAME)
            if isinstance(value, str) or value is None or full in seen:
                continue
            seen.add(full)
            yield Quantity(
                name=full,
                value=value,
                unit=cleaned(where.unit or str(fields.get("unit", "")), _LINE),
                limit=None if isinstance(limit, str) else limit,
            )


def _trace(scene: Scene, causes: Sequence[Cause], folder: Path) -> Iterator[Evidence]:
    """The whole trace, if it lies where evidence is looked for."""
    if scene.trace is None:
        return
    files = sorted(scene.trace.glob("*.mcap")) if scene.trace.is_dir() else [scene.trace]
    start_ns, end_ns = window_of(causes)
    for file in files:
        if not file.is_relative_to(folder):
            return
        uri = file.relative_to(folder).as_posix()
        if scene.shift_ns:
            yield Evidence(uri=uri)  # its times are of a simulator
        else:
            yield Evidence(uri=uri, start_ns=start_ns, end_ns=end_ns)
