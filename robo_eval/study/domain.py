"""Tests that a study can be made of: any Gymnasium task, and sets of labelled examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.spaces.utils import flatdim, flatten
from numpy.typing import NDArray

from robo_eval.core.errors import InputError, RoboEvalError, said
from robo_eval.core.policy import Policy
from robo_eval.metrics.scoring import reward_of
from robo_eval.study.cloning import Examples
from robo_eval.study.network import Array, Network

_TICK_CAP: Final = 100_000
"""Where an episode of a task without a time limit is stopped."""


class Domain(Protocol):
    """A test: examples to learn it from, and how well a network does in it."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def inputs(self) -> int:
        """Numbers in an observation."""

    @property
    def outputs(self) -> int:
        """Actions, or classes."""

    def examples(self, count: int, *, seed: int) -> Examples:
        """What an expert does; the same seed gives the same examples."""

    def performances(self, network: Network, count: int, *, seed: int) -> NDArray[np.float64]:
        """Performance in [0, 1] of a network in some episodes, shape (count,)."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A Gymnasium task with discrete actions.

    Attributes:
        name: What it is called.
        env: Its Gymnasium id.
        expert: Whom networks learn it from.
        kwargs: Keywords of `gymnasium.make`.
        lowest: The return that is performance 0.
        highest: The return that is performance 1.
        wander: How often, while the expert is watched, something else is done than it says, so that
            examples are also of where networks get that err.
        observed: How many of the first numbers of the flattened observation networks see; None
            shows all. The expert sees everything.
    """

    name: str
    env: str
    expert: Policy
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    lowest: float = 0.0
    highest: float = 1.0
    wander: float = 0.1
    observed: int | None = None

    def __post_init__(self) -> None:
        if not self.lowest < self.highest:
            raise InputError(
                f"{self.name}: lowest is {self.lowest} and highest {self.highest}; returns between"
                " them are performances between 0 and 1"
            )
        if not 0.0 <= self.wander < 1.0:
            raise InputError(f"{self.name}: wander is {self.wander}; it must be in [0, 1)")
        with self.made() as env:
            if not isinstance(env.action_space, Discrete):
                raise InputError(
                    f"{self.name}: {self.env} takes {env.action_space}; studies need discrete"
                    " actions"
                )
            object.__setattr__(self, "inputs", self._seen(flatdim(env.observation_space)))
            object.__setattr__(self, "outputs", int(env.action_space.n))

    inputs: int = field(init=False)
    outputs: int = field(init=False)

    def examples(self, count: int, *, seed: int) -> Examples:
        """What the expert does in states it gets into, and some that it would not.

        Args:
            count: Ticks that are watched.
            seed: Of the episodes and of the wandering.

        Raises:
            InputError: If the expert takes an action that is none of the task's.
        """
        rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
        seen: list[Array] = []
        done: list[int] = []
        with self.made() as env:
            first = first_action(env)
            while len(done) < count:
                self._reset_expert(int(rng.integers(2**31)))
                observation = self._reset(env, int(rng.integers(2**31)))
                is_over = False
                while not is_over and len(done) < count:
                    action = self._asked(observation, first)
                    seen.append(self.look(env, observation).copy())
                    done.append(action - first)
                    if rng.random() < self.wander:
                        action = first + int(rng.integers(self.outputs))
                    observation, _, terminated, truncated, _ = self._step(env, action)
                    is_over = terminated or truncated
        return Examples.of(np.stack(seen), np.array(done))

    def performances(self, network: Network, count: int, *, seed: int) -> NDArray[np.float64]:
        """Returns of a network as shares of the way from `lowest` to `highest`, at most 1.

        Args:
            network: Chooses the action of the highest score.
            count: Episodes.
            seed: Of the episodes; the same one gives the same episodes.
        """
        return self._played(network.choose, count, seed=seed)

    def expert_performances(self, count: int, *, seed: int) -> NDArray[np.float64]:
        """The same of the expert, in the same episodes; see `performances`."""
        starts = _starts(count, seed)
        found = np.empty(count)
        with self.made() as env:
            first = first_action(env)
            for episode, start in enumerate(starts):
                self._reset_expert(start)
                found[episode] = self._return(env, start, lambda seen: self._asked(seen, first))
        return self._shares(found)

    def observations(self, network: Network, count: int, *, seed: int) -> Array:
        """What a network sees in some episodes, shape (ticks, inputs); see `performances`."""
        seen: list[Array] = []

        def choose(observation: Array) -> NDArray[np.intp]:
            seen.append(observation.copy())
            return network.choose(observation)

        self._played(choose, count, seed=seed)
        return np.stack(seen)

    def _played(
        self, choose: Callable[[Array], NDArray[np.intp]], count: int, *, seed: int
    ) -> NDArray[np.float64]:
        found = np.empty(count)
        with self.made() as env:
            first = first_action(env)
            for episode, start in enumerate(_starts(count, seed)):
                found[episode] = self._return(
                    env, start, lambda seen: first + int(choose(self.look(env, seen)))
                )
        return self._shares(found)

    def _return(
        self,
        env: gymnasium.Env[Any, Any],
        start: int,
        act: Callable[[Any], int],
    ) -> float:
        observation = self._reset(env, start)
        total = 0.0
        for _ in range(_TICK_CAP):
            observation, reward, terminated, truncated, _ = self._step(env, act(observation))
            total += reward_of(reward)
            if terminated or truncated:
                break
        return total

    def _shares(self, returns: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip((returns - self.lowest) / (self.highest - self.lowest), 0.0, 1.0)

    def _seen(self, there: int) -> int:
        """How many of the numbers of an observation networks see."""
        if self.observed is None:
            return there
        if self.observed > there:
            raise InputError(
                f"{self.name}: observed is {self.observed}; an observation of {self.env} has"
                f" {there} numbers"
            )
        return self.observed

    def look(self, env: gymnasium.Env[Any, Any], observation: Any) -> Array:
        """What networks see of an observation of an environment that is `made`."""
        return _flat(env, observation)[: self.observed]

    # Environments and experts may be anybody's: what they raise is told by name.

    def _reset(self, env: gymnasium.Env[Any, Any], seed: int) -> Any:
        try:
            return env.reset(seed=seed)[0]
        except Exception as err:
            raise self._failed(self.env, err) from err

    def _step(self, env: gymnasium.Env[Any, Any], action: int) -> tuple[Any, ...]:
        try:
            return env.step(action)
        except Exception as err:
            raise self._failed(self.env, err) from err

    def _reset_expert(self, seed: int) -> None:
        try:
            self.expert.reset(seed=seed)
        except Exception as err:
            raise self._failed(f"expert {self.expert.name}", err) from err

    def _asked(self, observation: Any, first: int) -> int:
        """What the expert does, one of the actions from `first` on."""
        name = self.expert.name
        try:
            answer = self.expert.act(observation)
            action = int(np.asarray(answer).item())
        except Exception as err:
            raise self._failed(f"expert {name}", err) from err
        if action != answer or not first <= action < first + self.outputs:
            raise InputError(
                f"{self.name}: expert {name} took action {answer}; {self.env} takes whole numbers"
                f" from {first} to {first + self.outputs - 1}; an agent made for it is needed"
            )
        return action

    def _failed(self, who: str, err: Exception) -> InputError:
        # Errors of ours are sentences already.
        named = not isinstance(err, RoboEvalError)
        return InputError(f"{self.name}: {who} failed: {said(err, named=named)}")

    @contextmanager
    def made(self) -> Iterator[gymnasium.Env[Any, Any]]:
        """The environment, as it is; closed in the end.

        Raises:
            InputError: If Gymnasium cannot make it.
        """
        try:
            env = gymnasium.make(self.env, **self.kwargs)
        except (Exception, SystemExit) as err:  # environments may be anybody's
            problem = said(err, named=False)
            raise InputError(f"{self.name}: {self.env} cannot be made: {problem}") from err
        try:
            yield env
        finally:
            env.close()


def _starts(count: int, seed: int) -> list[int]:
    """Seeds of episodes; more of them begin with the same ones."""
    return [int(one >> 1) for one in np.random.SeedSequence([seed, 2]).generate_state(count)]


def first_action(env: gymnasium.Env[Any, Any]) -> int:
    """The lowest action of an environment with discrete ones."""
    assert isinstance(env.action_space, Discrete)
    return int(env.action_space.start)


def _flat(env: gymnasium.Env[Any, Any], observation: Any) -> Array:
    if isinstance(observation, np.ndarray) and observation.ndim == 1:
        return np.asarray(observation, dtype=np.float32)
    return np.asarray(flatten(env.observation_space, observation), dtype=np.float32)


@dataclass(frozen=True, kw_only=True, eq=False)
class Labelled:
    """A set of labelled examples; performance is the share of others that is labelled rightly.

    Attributes:
        name: What it is called.
        train: Examples to learn from.
        test: Others, to judge by.
        outputs: Classes.
    """

    name: str
    train: Examples
    test: Examples
    outputs: int

    def __post_init__(self) -> None:
        most = max(int(self.train.actions.max()), int(self.test.actions.max()))
        if most >= self.outputs:
            raise InputError(f"{self.name}: there is a class {most}, and outputs is {self.outputs}")
        if self.train.observations.shape[1] != self.test.observations.shape[1]:
            raise InputError(
                f"{self.name}: examples to learn from and to judge by differ in length"
            )

    @property
    def inputs(self) -> int:
        """Numbers in an example."""
        return int(self.train.observations.shape[1])

    def examples(self, count: int, *, seed: int) -> Examples:
        """Examples to learn from, drawn without replacement as far as there are enough."""
        rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
        rows = _drawn(len(self.train), count, rng)
        return Examples(
            observations=self.train.observations[rows], actions=self.train.actions[rows]
        )

    def performances(self, network: Network, count: int, *, seed: int) -> NDArray[np.float64]:
        """1 for each example to judge by that is labelled rightly, and 0 otherwise."""
        rng = np.random.default_rng(np.random.SeedSequence([seed, 2]))
        rows = _drawn(len(self.test), count, rng)
        chosen = network.choose(self.test.observations[rows])
        return np.asarray(chosen == self.test.actions[rows], dtype=np.float64)


def _drawn(there: int, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    rounds = [rng.permutation(there) for _ in range(-(-count // there))]
    return np.concatenate(rounds)[:count]
