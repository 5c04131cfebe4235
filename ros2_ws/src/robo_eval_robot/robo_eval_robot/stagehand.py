"""Who sets an episode up: the twin itself, or a person at the robot."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from robo_eval.core.errors import CheckFailedError, InputError
from robo_eval_robot.link import RobotLink, RobotLostError

_ASK_AGAIN_S: Final = 2.0
_DRAIN_S: Final = 0.3


class Stagehand(Protocol):
    """Sets the scene, and disturbs it where the plan says so."""

    def arrange(
        self,
        *,
        task: str,
        keywords: Mapping[str, Any],
        seed: int,
        episode_id: str,
        state: Mapping[str, Any] | None,
        within_s: float,
    ) -> int:
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

    def disturb(self, fault: str, **fields: Any) -> None:  # noqa: ANN401 - JSON
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

    def arrange(
        self,
        *,
        task: str,
        keywords: Mapping[str, Any],
        seed: int,
        episode_id: str,
        state: Mapping[str, Any] | None,
        within_s: float,
    ) -> int:
        """Tell the twin, and wait until it says that it is done."""
        # The twin keeps its last answers for those who come late: ours must name our request.
        request = uuid.uuid4().hex
        for _ in range(max(1, round(within_s / _ASK_AGAIN_S))):
            self._link.event(
                event="prepare",
                request=request,
                episode_id=episode_id,
                task=task,
                keywords=dict(keywords),
                seed=seed,
                state=None if state is None else dict(state),
            )
            answer = self._link.wait_event(_ASK_AGAIN_S, event="arranged", request=request)
            if answer is None:
                continue
            if answer.get("problem"):
                raise CheckFailedError(f"the twin cannot be set up: {answer['problem']}")
            return int(answer["stamp_ns"])
        raise RobotLostError(f"the twin does not answer within {within_s:g} s")

    def again(self, problem: str) -> bool:
        """The same seed would give the same scene."""
        del problem
        return False

    def let_go(self) -> None:
        """Tell the twin: what the guard sent before, to stop it, must not let the pole fall."""
        self._link.event(event="go")

    def may_reset(self, cause: str) -> None:
        """A twin hurts nobody."""

    def disturb(self, fault: str, **fields: Any) -> None:  # noqa: ANN401 - JSON
        """Tell the twin to have a fault."""
        self._link.event(event="inject", fault=fault, **fields)


class OperatorStagehand:
    """A person sets the robot up and says so.

    Args:
        link: Connection to the robot, kept alive while the person works.
        ask: Shows a text and returns whether the person confirms it; False means to give up.
        ready: The same for a scene that is to be set up; by default `ask`.
        scene: Sets the scene up once the person is ready, where a robot can do that itself.
        shown: How the id of an episode is shown.
    """

    def __init__(
        self,
        link: RobotLink,
        ask: Callable[[str], bool],
        *,
        ready: Callable[[str], bool] | None = None,
        scene: Stagehand | None = None,
        shown: Callable[[str], str] = str,
    ) -> None:
        self._link = link
        self._ask = ask
        self._ready = ready or ask
        self._scene = scene
        self._shown = shown
        self._problem = ""
        self._gave_up = False

    def arrange(
        self,
        *,
        task: str,
        keywords: Mapping[str, Any],
        seed: int,
        episode_id: str,
        state: Mapping[str, Any] | None,
        within_s: float,
    ) -> int:
        """Ask, and go on when it was confirmed."""
        scene = ", ".join(f"{name} {value}" for name, value in sorted(keywords.items()))
        name = self._shown(episode_id)
        problem, self._problem = self._problem, ""
        question = f"{problem}Set up {task} ({scene}), seed {seed}, episode {name}. Ready?"
        self._gave_up = not self._ready(question)
        if self._gave_up:
            raise CheckFailedError(f"{episode_id}: was not set up")
        if self._scene is not None:
            return self._scene.arrange(
                task=task,
                keywords=keywords,
                seed=seed,
                episode_id=episode_id,
                state=state,
                within_s=within_s,
            )
        # What arrived while the person was asked lies in a queue.
        self._link.wait(lambda: False, _DRAIN_S)
        return self._link.latest.stamp_ns if self._link.latest else 0

    def again(self, problem: str) -> bool:
        """A person is told what is wrong, and asked once more."""
        self._problem = f"{problem[:1].upper()}{problem[1:]}. "
        return self._scene is None and not self._gave_up

    def let_go(self) -> None:
        """A person who holds the pole feels the robot move."""
        if self._scene is not None:
            self._scene.let_go()

    def may_reset(self, cause: str) -> None:
        """A person looks at the robot first."""
        if not self._ask(f"The guard stopped the robot ({cause}). Is the cause gone? Reset?"):
            self._gave_up = True
            raise CheckFailedError(f"the guard stays stopped: {cause}")

    def disturb(self, fault: str, **fields: Any) -> None:  # noqa: ANN401 - JSON
        """A person is not asked to break anything."""
        if self._scene is not None:
            self._scene.disturb(fault, **fields)
            return
        raise InputError(f"injections: {fault!r} can be provoked on a twin only; remove it")
