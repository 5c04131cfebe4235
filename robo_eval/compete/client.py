"""How an agent takes part in a competition: an ordinary Gymnasium environment, played elsewhere."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from robo_eval.compete.link import (
    CompetitionError,
    Link,
    SaidNoError,
    checked_url,
    rules_of,
    token_of,
    told_rules,
)
from robo_eval.compete.messages import declared
from robo_eval.compete.spaces import action_of, space_of
from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.core.trials import call_if_there, checked_declaration

_TOO_LATE: Final = ("no_episode", "order", "declared", "lost", "closed", "no_attempts")
"""Codes of a declaration that is refused although nothing is wrong with it."""
_SEED: Final = "a competition draws its own seeds: the seed of reset is ignored"


_Seen = tuple[Any, float, bool, bool, dict[str, Any]]
"""What `step` of an environment gives."""


class _Remote:
    """What an environment and a batch of them have in common: the connection and what is told.

    Attributes:
        left: Episodes that are still to be played.
    """

    left: int
    _link: Link

    def _enter(
        self, url: str, token: str | None, task: str | None, trials: int, *, rehearsal: bool,
        render_mode: str | None,
    ) -> Mapping[str, Any]:  # fmt: skip
        """Connect; what the competition tells of the task."""
        if render_mode is not None:
            raise InputError("render_mode: a competition shows nothing; leave it out")
        self._url, self._token = checked_url(url), token
        tasks = {str(one.get("env")): one for one in told_rules(url).get("tasks", ())}
        if task is not None and task not in tasks:
            raise unknown_name("task", task, tasks)
        if task is None and len(tasks) != 1:
            raise InputError(f"{self._url}: has several tasks; give `task`, one of {list(tasks)}")
        told = dict(tasks[task or next(iter(tasks))])
        for name in ("observation_space", "action_space"):
            told[name] = space_of(told.get(name))
        self._actions: gymnasium.Space[Any] = told["action_space"]
        self._link = Link(url, token, {"trials": trials, "task": task, "rehearsal": rehearsal})
        self.left = int(self._link.welcome["left"])
        self._nothing = _zeros(told["observation_space"])
        self._seen = [self._nothing] * trials
        self._over: set[int] = set()
        self._has_warned = False
        return told

    def _reset(self, places: Sequence[int]) -> list[dict[str, Any]]:
        """Begin the next episode of some trials; what is told of each."""
        try:
            answer = self._insist("reset", trials=list(places))
        except SaidNoError as err:
            if err.code != "over":
                raise
            over = set(err.trials or places) & set(places)
            self._over.update(over)
            for place in over:
                self._seen[place] = self._nothing
            self.left = self.left if len(self._over) < len(self._seen) else 0
            others = [place for place in places if place not in over]
            told = dict(zip(others, self._reset(others) if others else (), strict=True))
            return [told.get(place, {"over": True}) for place in places]
        self.left = int(answer["left"])
        for place, seen in zip(places, answer["value"], strict=True):
            self._seen[place] = seen
        return list(answer["info"])

    def _step(self, places: Sequence[int], actions: Any) -> list[_Seen]:
        """One tick in some trials.

        Where the server has forgotten their episodes, or will not go on with them, they are
        truncated, and begin anew with the next reset, or go on.
        """
        try:
            if isinstance(self._actions, gymnasium.spaces.Discrete):
                wanted = [action_of(self._actions, _whole(action)) for action in actions]
                answer = self._link.ask("step", trials=list(places), actions=wanted)
            else:
                answer = self._link.ask("step", list(actions), trials=list(places))
        except SaidNoError as err:
            if err.code not in ("given_back", "forfeited"):
                raise
            told = {err.code: str(err)} if len(self._seen) == 1 else {"given_back": True}
            return [(self._seen[place], 0.0, False, True, told) for place in places]
        if answer is None:
            self.left = int(self._link.welcome["left"])
            told = {"given_back": True}
            return [(self._seen[place], 0.0, False, True, told) for place in places]
        names = ("value", "reward", "terminated", "truncated", "info")
        found: list[_Seen] = list(zip(*[answer[name] for name in names], strict=True))
        for place, (seen, _, terminated, truncated, info) in zip(places, found, strict=True):
            self._seen[place] = seen
            self.left -= bool((terminated or truncated) and not info.get("given_back"))
        return found

    @property
    def receipt(self) -> str | None:
        """Names all that the server has kept of the attempt; `check --receipt` finds it at the end.

        None where that is nothing yet.

        Raises:
            CompetitionError: If the server does not answer.
        """
        token = token_of(self._url, self._token)
        found = rules_of(self._url, path="/v1/me", token=token).get("receipt")
        return found if isinstance(found, str) else None

    def _insist(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Ask what can be asked of a server that has begun anew as well."""
        while (answer := self._link.ask(kind, **fields)) is None:
            pass
        return answer

    def _declare(
        self,
        place: int,
        *,
        probability: float,
        threshold: float = 0.5,
        report: Mapping[str, Any] | None = None,
    ) -> None:
        """Speak for the episode of one trial that has just ended; see `RemoteEnv.declare`."""
        spoken = declared(probability, threshold, report)
        self._insist("declare", trial=_whole(place), **spoken)

    def _feedback(self, place: int) -> dict[str, Any]:
        """Ask about the episode of one trial that has just ended; see `RemoteEnv.feedback`."""
        answer = self._insist("feedback", trial=_whole(place))
        return {name: answer[name] for name in ("novel", "left")}

    def _ignore(self, seed: object, options: object) -> None:
        """Say once that a seed changes nothing, and refuse what would choose a start."""
        if options:
            raise InputError(f"{self._url}: a competition takes no options of reset")
        if seed is not None and not self._has_warned:
            self._has_warned = True
            warnings.warn(_SEED, stacklevel=4)

    def _leave(self) -> None:
        if hasattr(self, "_link"):  # it got in
            self._link.close()


def _whole(action: Any) -> Any:
    return (
        action.item() if isinstance(action, np.ndarray | np.generic) and not action.ndim else action
    )


class RemoteEnv(_Remote, gymnasium.Env[Any, Any]):
    """A competition's episodes, one after the other, as an ordinary environment.

    Each `reset` begins the next episode. `info["episode_index"]` is its number in its trial, from
    0: with 0 a new trial begins, and what an agent has learned in the last one helps no more. If
    the competition says when novelty has begun, `info["novel"]` says it. Played to its end when
    `left` is 0; a reset after that gives an observation of zeros and `info["over"]`.

    Args:
        url: Where the competition is, as `robo-eval compete serve` prints it.
        token: The team's token; None for the one in the variable `ROBO_EVAL_COMPETE_TOKEN`.
        task: Gymnasium id of the task, where the competition has several.
        rehearsal: Whether to play one episode without novelty that does not count.
        render_mode: None; there is nothing to see.

    Raises:
        InputError: If the token is refused, or the competition is not open to the team.
        CompetitionError: If no competition can be reached there.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium has it

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        task: str | None = None,
        rehearsal: bool = False,
        render_mode: str | None = None,
    ) -> None:
        told = self._enter(url, token, task, 1, rehearsal=rehearsal, render_mode=render_mode)
        self.observation_space, self.action_space = told["observation_space"], told["action_space"]
        if told.get("tick_s"):
            self.metadata = {**self.metadata, "render_fps": round(1.0 / told["tick_s"])}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin the next episode; one that was left in the middle goes on where it was.

        Raises:
            InputError: If options are given.
            CompetitionError: If the server does not answer.
        """
        self._ignore(seed, options)
        (info,) = self._reset([0])
        return self._seen[0], info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One tick.

        Where the server had to begin anew, `truncated` is true and `info["given_back"]` says so:
        the episode does not count, and the next reset plays it again.

        Raises:
            InputError: If the action is none of `action_space`, or no episode is under way.
            CompetitionError: If the server does not answer.
        """
        return self._step([0], [action])[0]

    def declare(
        self,
        *,
        probability: float,
        threshold: float = 0.5,
        report: Mapping[str, Any] | None = None,
    ) -> None:
        """Say how probable it is that the episode that has just ended was novel.

        It is for the time between its last step and the next reset; an episode nobody speaks for
        counts as probability 0.

        Args:
            probability: From 0 to 1.
            threshold: From which probability on the agent means that there is novelty.
            report: What is new: `levels` (a list of `level_number` and `probability`), `entity`,
                `attribute`, `change`.

        Raises:
            InputError: If no episode has just ended, or it was spoken for.
        """
        self._declare(0, probability=probability, threshold=threshold, report=report)

    def feedback(self) -> dict[str, Any]:
        """Whether the episode that has just ended was novel, if the competition tells it.

        It is for the time between its last step and the next reset, after `declare`: of what was
        told nothing can be declared any more.

        Returns:
            `novel`, and `left`: how often it may still be asked in this trial.

        Raises:
            InputError: If no episode has just ended, or it is not told.
        """
        return self._feedback(0)

    def close(self) -> None:
        """Leave the competition; whoever comes back in time goes on."""
        self._leave()


class RemoteVectorEnv(_Remote, VectorEnv[Any, Any, Any]):
    """Several trials of a competition at once, each with its own episodes, over one connection.

    A trial whose episode has ended begins its next one with the next step. One that has nothing
    left gives zeros and `infos["over"]`; all is played when `left` is 0.

    Args:
        num_envs: How many trials at once.
        url: As of `RemoteEnv`, and the others as well.
        token: The team's token.
        task: Gymnasium id of the task.
        rehearsal: Whether nothing is to count.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as Gymnasium has it
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        url: str = "",
        token: str | None = None,
        *,
        task: str | None = None,
        rehearsal: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self.num_envs = num_envs
        told = self._enter(url, token, task, num_envs, rehearsal=rehearsal, render_mode=render_mode)
        batch_space = gymnasium.vector.utils.batch_space
        self.single_observation_space = told["observation_space"]
        self.single_action_space = told["action_space"]
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._ended: set[int] = set(range(num_envs))

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin the next episode of each trial."""
        self._ignore(seed, options)
        self._ended = set(range(self.num_envs))
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        self._begin(infos)
        return self._observations(), self._gathered(infos)

    def step(
        self,
        actions: Any,
    ) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """One tick of each trial, or a reset of those whose episode has ended before."""
        n = self.num_envs
        rewards, ends = np.zeros(n), np.zeros((2, n), dtype=np.bool_)
        infos: list[dict[str, Any]] = [{} for _ in range(n)]
        given: list[Any] = []
        with contextlib.suppress(TypeError, LookupError, ValueError):  # it is no batch
            given = list(gymnasium.vector.utils.iterate(self.action_space, actions))
        if len(given) != n:
            raise InputError(f"actions: {n} are wanted, one for each trial, given {actions!r:.60}")
        going = [place for place in range(n) if place not in self._ended | self._over]
        # First, since it may refuse an action, and nothing has changed then.
        found = self._step(going, [given[place] for place in going]) if going else []
        self._begin(infos)
        for place, (_, reward, terminated, truncated, info) in zip(going, found, strict=True):
            rewards[place], ends[:, place], infos[place] = reward, (terminated, truncated), info
        self._ended = set(np.flatnonzero(ends.any(0)).tolist())
        return self._observations(), rewards, ends[0], ends[1], self._gathered(infos)

    declare = _Remote._declare  # noqa: SLF001 - our own
    feedback = _Remote._feedback  # noqa: SLF001

    def close_extras(self, **kwargs: Any) -> None:
        """Leave the competition."""
        del kwargs
        self._leave()

    def _begin(self, infos: list[dict[str, Any]]) -> None:
        """Begin the next episodes where one has ended before."""
        places = sorted(self._ended - self._over)
        for place, info in zip(places, self._reset(places) if places else (), strict=True):
            infos[place] = info
        for place in self._over:
            infos[place] = {"over": True}
        self._ended = set()

    def _observations(self) -> Any:
        space = self.single_observation_space
        out: Any = gymnasium.vector.utils.create_empty_array(space, n=self.num_envs)
        return gymnasium.vector.utils.concatenate(space, self._seen, out)

    def _gathered(self, infos: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Infos by their key; Gymnasium's own way to gather them costs more than a step."""
        found: dict[str, Any] = {}
        for name in dict.fromkeys(name for info in infos for name in info):
            found[name] = np.array([info.get(name, 0) for info in infos])
            found[f"_{name}"] = np.array([name in info for info in infos])
        return found


def _zeros(space: gymnasium.Space[Any]) -> Any:
    utils = gymnasium.vector.utils
    zeros = utils.create_empty_array(space, n=1, fn=np.zeros)
    return next(utils.iterate(utils.batch_space(space, 1), zeros))


def play(env: gymnasium.Env[Any, Any], agent: Any) -> int:
    """Let an agent play everything that is left, and say how many episodes that was.

    Args:
        env: `gymnasium.make("RoboEval/Remote-v0", ...)`, wrapped as one likes.
        agent: Has `act(observation)`. If it has them, `begin_trial()` is called when a trial
            begins, `reset(seed=None)` when an episode does, and `declare()` when one has ended:
            what it returns speaks for that episode, as in a plan with `trials`.
    """
    door: Any = env.unwrapped
    played = 0
    while door.left:
        observation, info = env.reset()
        if info.get("over"):
            break
        if info.get("episode_index") == 0:
            call_if_there(agent, "begin_trial")
        call_if_there(agent, "reset")
        terminated = truncated = False
        while not (terminated or truncated):
            step = env.step(agent.act(observation))
            observation, _, terminated, truncated, info = step
        if info.get("given_back") or info.get("forfeited"):
            continue
        played += 1
        said = checked_declaration(call_if_there(agent, "declare"))
        if said is not None:
            spoken = {name: said.pop(name) for name in ("probability", "threshold")}
            try:
                door.declare(**spoken, report=said or None)
            except SaidNoError as err:
                if err.code not in _TOO_LATE:
                    raise
                warnings.warn(f"a declaration was not taken: {err}", stacklevel=2)
    return played


__all__ = ["CompetitionError", "RemoteEnv", "RemoteVectorEnv", "SaidNoError", "play"]
