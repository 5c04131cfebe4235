"""Who is at a robot during a run, and what they are for: setting up, answering, judging."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from robo_eval.core.blinding import Blinding, blinding_of
from robo_eval.log.directory import TrialDirectory
from robo_eval_robot.config import RobotConfig
from robo_eval_robot.judging import Judge
from robo_eval_robot.link import RobotLink
from robo_eval_robot.noting import Notebook
from robo_eval_robot.operator import Person
from robo_eval_robot.stagehand import OperatorStagehand, Stagehand, TwinStagehand
from robo_eval_robot.terminal import Terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class Staff:
    """The people of a run, or what stands in for them.

    Attributes:
        person: Who is asked; None if nobody is there.
        stagehand: Who sets episodes up: a twin itself, once the person is ready if there is one.
        judge: Who says how they went, where the plan leaves that to a person.
        blinding: How policies are called meanwhile.
    """

    person: Person | None
    stagehand: Stagehand
    judge: Judge
    blinding: Blinding


def staff_for(
    trial: TrialDirectory,
    config: RobotConfig,
    link: RobotLink,
    notebook: Notebook,
    *,
    terminal: Terminal | None,
    operator: str | None,
    poll: Callable[[], None],
) -> Staff:
    """The staff of a run.

    Args:
        trial: The trial.
        config: The robot.
        link: Connection to it.
        notebook: Where pauses are written down.
        terminal: Where the person sits; None if nobody is there.
        operator: Name of that person.
        poll: See `Person`.
    """
    blinding = blinding_of(trial.plan, trial.plan_digest)
    person = None
    scene = TwinStagehand(link) if config.body == "twin" else None
    stagehand: Stagehand = TwinStagehand(link)
    if terminal is not None:
        person = Person(
            terminal,
            poll,
            void_reasons=trial.plan.void_reasons,
            blinding=blinding,
            on_pause=lambda start_ns, seconds: notebook.pause(
                start_ns, seconds, operator=operator, asked_by="prompt"
            ),
        )
        stagehand = OperatorStagehand(
            link, person.confirm, ready=person.ready, itself=scene, shown=blinding.episode
        )
    judge = Judge(
        trial.path, trial.plan, config.side, person, operator=operator, shown=blinding.episode
    )
    return Staff(person=person, stagehand=stagehand, judge=judge, blinding=blinding)
