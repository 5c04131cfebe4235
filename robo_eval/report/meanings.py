"""What each number of a report means, in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from robo_eval.core.number import Number
from robo_eval.core.task import TaskSpec
from robo_eval.metrics import registry

_OTHERS: Final[Mapping[str, str]] = {
    "Interval": (
        "If the whole trial were repeated many times, intervals made in this way would hold the "
        "true value in about the stated share of the repetitions. With five episodes in a cell it "
        "is wide, and it should be."
    ),
    "Capability": (
        "Area under the agent's curve of performance against difficulty, counted from the easiest "
        "difficulty: roughly, up to which difficulty the agent copes."
    ),
    "Spread": (
        "How gradually performance is lost as difficulty rises. 0 is a sharp edge: everything "
        "below is solved, nothing above."
    ),
    "Generality": (
        "Spread compared with that of curves of equal capability: +1 is a falling step, 0 a curve "
        "that difficulty does not bend, −1 a rising step. Undefined for an agent that solves "
        "everything or nothing."
    ),
}
"""Numbers of no metric; what a section shows is told in `docs/report.md`."""

_EPISODE: Final = "One attempt from reset to end."
_SUCCESS: Final = "Strict success: the quality of the episode reached the plan's threshold."
_PERFORMANCE: Final = (
    "The quality of an episode, between 0 and 1. The table gives the mean over the scored episodes"
    " of a cell."
)


def meanings_of(numbers: Iterable[Number], specs: Iterable[TaskSpec]) -> list[tuple[str, str]]:
    """What the numbers shown are, in the words of their tasks and metrics."""
    shown = {it.name: it for it in numbers if not it.detail}
    told = [(f"{spec.title}: ", spec) for spec in specs]
    found = [
        _of_tasks("Episode", _EPISODE, [title + spec.end for title, spec in told]),
        _of_tasks("Success", _SUCCESS, [title + spec.success for title, spec in told]),
        _of_tasks(
            "Performance",
            _PERFORMANCE,
            [title + spec.quality for title, spec in told if spec.quality is not None],
        ),
    ]
    for one in registry.registered().values():
        names = [
            shown[own].title
            for name in (one.name, *one.also)
            for own in dict.fromkeys(one.name_on(side, name) for side in registry.SIDES)
            if own in shown
        ]
        if names:
            own = one.explanation + (f" It is from {one.source}." if one.source else "")
            found.append((", ".join(names), own))
    return [*found, *_OTHERS.items()]


def _of_tasks(name: str, text: str, of_tasks: Iterable[str]) -> tuple[str, str]:
    return name, " ".join((text, *of_tasks))
