"""Who sets an episode up: the twin itself, or a person at the robot."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from robo_eval.core.errors import CheckFailedError, InputError
from robo_eval_robot.link import RobotLink, RobotLostError

_ASK_AGAIN_S: Final = 2.0
_DRAIN_S: Final = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """How an episode is to begin.

    Attributes:
        task: Gymnasium id.
        keywords: Of the task, such as level and difficulty.
        seed: Of the episode.
        episode_id: Its id.
        state: Physical state to start from; None leaves it to the seed.
        within_s: How soon it has to be set up, seconds.
    """

    task: str
    keywords: Mapping[str, Any]
    seed: int
    episode_id: str
    state: Mapping[str, Any] | None
    within_s: float


class Stagehand(Protocol):
    """Sets the scene, and disturbs it where the plan says so."""

    def arrange(self, scene: Scene) -> int:
        """Set an episode up; returns when it is.

        Returns:
            From which stamp on the robot's states show it, nanoseconds of the driver's clock.

        Raises:
            RobotLostError: If nobody answers in time.
            CheckFailedError: If it cannot be set up.
            SkippedError: If the attempt is declared void instead.
        """

    def again(self, problem: str) -> bool:
        """Whether a scene that cannot be started from should be set up once more."""

    def let_go(self) -> None:
        """Hold the scene until the first command of the policy, and no longer."""

    def may_reset(self, cause: str) -> None:
        """Whether the guard may be reset after a stop; returns when it may.

        Raises:
            CheckFailedError: If it may not.
        """

    def disturb(self, fault: str, **fields: Any) -> None:
        """Provoke a fault.

        Raises:
            InputError: If that is not possible here.
        """


class TwinStagehand:
    """The twin sets itself up when it is told to, by events.

    Args:
        link: Connection to the twin.
    """

    def __init__(self, link: RobotLink) -> None:
        self._link = link

    def arrange(self, scene: Scene) -> int:
        """Tell the twin, and wait until it says that it is done."""
        # The twin keeps its last answers for those who come late: ours must name our request.
        request = uuid.uuid4().hex
        for _ in range(max(1, round(scene.within_s / _ASK_AGAIN_S))):
            self._link.event(
                event="prepare",
                request=request,
                episode_id=scene.episode_id,
                task=scene.task,
                keywords=dict(scene.keywords),
                seed=scene.seed,
                state=None if scene.state is None else dict(scene.state),
            )
            answer = self._link.wait_event(_ASK_AGAIN_S, event="arranged", request=request)
            if answer is None:
                continue
            if answer.get("problem"):
                raise CheckFailedError(f"the twin cannot be set up: {answer['problem']}")
            return int(answer["stamp_ns"])
        raise RobotLostError(f"the twin does not answer within {scene.within_s:g} s")

    def again(self, problem: str) -> bool:
        """The same seed would give the same scene."""
        del problem
        return False

    def let_go(self) -> None:
        """Tell the twin: what the guard sent before, to stop it, must not let the pole fall."""
        self._link.event(event="go")

    def may_reset(self, cause: str) -> None:
        """A twin hurts nobody."""

    def disturb(self, fault: str, **fields: Any) -> None:
        """Tell the twin to have a fault."""
        self._link.event(event="inject", fault=fault, **fields)


@dataclass(slots=True)
class OperatorStagehand:
    """A person sets the robot up and says so.

    Attributes:
        link: Connection to the robot, kept alive while the person works.
        ask: Shows a text and returns whether the person confirms it; False means to give up.
        ready: The same for a scene that is to be set up; by default `ask`.
        itself: Sets the scene up once the person is ready, where a robot can do that itself.
        shown: How the id of an episode is shown.
    """

    link: RobotLink
    ask: Callable[[str], bool]
    ready: Callable[[str], bool] | None = None
    itself: Stagehand | None = None
    shown: Callable[[str], str] = str
    _problem: str = field(default="", init=False)
    _gave_up: bool = field(default=False, init=False)

    def arrange(self, scene: Scene) -> int:
        """Ask, and go on when it was confirmed."""
        told = ", ".join(f"{name} {value}" for name, value in sorted(scene.keywords.items()))
        name = self.shown(scene.episode_id)
        problem, self._problem = self._problem, ""
        question = f"{problem}Set up {scene.task} ({told}), seed {scene.seed}, episode {name}."
        self._gave_up = not (self.ready or self.ask)(f"{question} Ready?")
        if self._gave_up:
            raise CheckFailedError(f"{scene.episode_id}: was not set up")
        if self.itself is not None:
            return self.itself.arrange(scene)
        # What arrived while the person was asked lies in a queue.
        self.link.wait(lambda: False, _DRAIN_S)
        return self.link.latest.stamp_ns if self.link.latest else 0

    def again(self, problem: str) -> bool:
        """A person is told what is wrong, and asked once more."""
        self._problem = f"{problem[:1].upper()}{problem[1:]}. "
        return self.itself is None and not self._gave_up

    def let_go(self) -> None:
        """A person who holds the pole feels the robot move."""
        if self.itself is not None:
            self.itself.let_go()

    def may_reset(self, cause: str) -> None:
        """A person looks at the robot first."""
        if not self.ask(f"The guard stopped the robot ({cause}). Is the cause gone? Reset?"):
            self._gave_up = True
            raise CheckFailedError(f"the guard stays stopped: {cause}")

    def disturb(self, fault: str, **fields: Any) -> None:
        """A person is not asked to break anything."""
        if self.itself is not None:
            self.itself.disturb(fault, **fields)
            return
        raise InputError(f"injections: {fault!r} can be provoked on a twin only; remove it")
