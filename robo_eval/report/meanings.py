"""What each number of a report means, in plain words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from robo_eval.core.number import Number
from robo_eval.core.task import TaskSpec
from robo_eval.metrics import registry

MEANINGS: Final[tuple[tuple[str, str], ...]] = (
    (
        "Scored, missing",
        (
            "An episode is scored when the task itself ended it. An episode that ended by a "
            "fault, was lost with its process, was declared void by a person or was not "
            "played yet has no score. It counts as missing, never as a failure or a success. "
            "Where fewer than 95 % of the planned episodes are scored, no rate is a headline "
            "and no policy is called better."
        ),
    ),
    (
        "Verified",
        (
            "Every row of the log carries a digest of its content and of the row before it. They "
            "were computed again when this page was made. A page whose log does not verify "
            "says so at its top and names no policy better."
        ),
    ),
    (
        "Interval",
        (
            "If the whole trial were repeated many times, intervals made in this way would "
            "hold the true value in about the stated share of the repetitions. With five "
            "episodes in a cell it is wide, and it should be."
        ),
    ),
    (
        "Length of an episode",
        (
            "Time from reset to end. The interval of its median holds the lengths that sign "
            "tests do not exclude; where seeds repeat, each counts as one "
            "observation. What the log does not hold is shown as not recorded, never as 0."
        ),
    ),
    (
        "Difficulty of an item",
        (
            "One minus the mean performance of a fixed panel of reference agents on that "
            "level and difficulty. No agent is measured by its own performance: one that is "
            "itself a member of the panel has no curve."
        ),
    ),
    (
        "Capability",
        (
            "Area under the agent's curve of performance against difficulty, counted from the "
            "easiest difficulty: roughly, up to which difficulty the agent copes."
        ),
    ),
    (
        "Spread",
        (
            "How gradually performance is lost as difficulty rises. 0 is a sharp edge: "
            "everything below is solved, nothing above."
        ),
    ),
    (
        "Generality",
        (
            "Spread compared with that of curves of equal capability: +1 is a falling step, 0 "
            "a curve that difficulty does not bend, −1 a rising step. Undefined for an agent "
            "that solves everything or nothing."
        ),
    ),
    (
        "Unreliable",
        (
            "Fewer than 20 episodes at each difficulty, or fewer than 6 difficulties: "
            "intervals of generality are then too narrow, and are marked so."
        ),
    ),
)

ROBOT_MEANINGS: Final[tuple[tuple[str, str], ...]] = (
    (
        "Autonomy level, gate, audit",
        (
            "AAI-0 to AAI-5: what the evidence supports, not what the policy may be able to do. A "
            "gate compares one number with a threshold, by the end of its interval that speaks "
            "against it; an audit asks whether the evidence is whole and was fairly got. Which "
            "quantities a level asks for follows arXiv:2511.13411; every threshold was chosen by "
            "this project."
        ),
    ),
    (
        "Axis, anchors, index",
        (
            "Ten axes, each a measured value on the line between two anchors, of which one counts "
            "0 and the other 1. The index is their weighted geometric mean: an axis of 0 makes it "
            "0, and without an axis that is needed there is none. The adjusted index is lower the "
            "less even the axes are; uniformity is 1 where all are alike. Which axes there are "
            "follows arXiv:2511.13411; weights and anchors that no file gives were chosen by this "
            "project."
        ),
    ),
    (
        "Checkpoint, coefficient of self-improvement",
        (
            "A checkpoint is what a policy can do in a task family on a day, and the resources it "
            "has spent until then. Kappa of checkpoints is the Theil-Sen slope: capability gained "
            "per unit of resource. What came before people last changed something does not count. "
            "Slope, curvature, steps and score are taken on a scale on which a step near the top "
            "is as long as one at the bottom; none of them changes a level."
        ),
    ),
    (
        "Delegability frontier",
        (
            "At a degree of autonomy a policy may be helped so often per episode, at 1 not at all. "
            "The frontier is the best mean quality of the policies that stay within that, made "
            "non-increasing; the area under it is its mean over autonomy, and a task may be "
            "delegated where it reaches the quality asked for. The best of several policies looks "
            "better than it is."
        ),
    ),
    (
        "Kappa",
        (
            "Cohen's kappa is the agreement of a second rater with the log beyond what chance "
            "brings: 1 is full agreement, 0 none beyond chance."
        ),
    ),
)
"""What is only shown of trials with a robot or its twin, beside the words of each metric."""


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
    return found


def _of_tasks(name: str, text: str, of_tasks: Iterable[str]) -> tuple[str, str]:
    return name, " ".join((text, *of_tasks))
