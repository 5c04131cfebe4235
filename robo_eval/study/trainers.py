"""Training a network on a mixture of two tests, in any of the ways there are."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from robo_eval.core.errors import InputError
from robo_eval.study.cloning import Examples, TrainingBudget, clone
from robo_eval.study.domain import Domain, Task, first_action
from robo_eval.study.dqn import Learning, train_dqn
from robo_eval.study.evolution import evolve
from robo_eval.study.network import Architecture, Array, Network
from robo_eval.study.suite import Training

_VALUE: Final = 200.0
"""Returns of episodes from 0 to 1 are learned as up to this, so that ticks are worth about 1."""
_SEED_LIMIT: Final = 2**31


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mixture:
    """Two tests, one of which an episode is of.

    Attributes:
        first: Episodes are of it with probability `share`.
        second: Otherwise they are of this one; it may be the same.
        share: In [0, 1].
    """

    first: Domain
    second: Domain
    share: float


def trained(
    architecture: Architecture, examples: Examples, mixture: Mixture, plan: Training, *, seed: int
) -> Network:
    """Train a network from scratch, as the section of a suite says.

    Args:
        architecture: How the network is built.
        examples: What experts did in the mixture; deep Q-learning does not look at them.
        mixture: The tests, which the other trainers than cloning play.
        plan: Which trainer, and what it spends.
        seed: The same seed gives the same network.

    Raises:
        InputError: If deep Q-learning is asked to learn a set of labelled examples.
        MissingExtraError: If it is not installed.
    """
    if plan.trainer == "es":
        return evolve(
            architecture,
            lambda network, episode: _tried(mixture, network, plan.plays, episode),
            generations=plan.steps,
            population=plan.batch,
            rate=plan.rate,
            observations=examples.observations,
            seed=seed,
        )
    if plan.trainer == "dqn":
        return _by_dqn(architecture, mixture, plan, seed=seed)
    budget = TrainingBudget(steps=plan.steps, batch=plan.batch, rate=plan.rate)
    return clone(architecture, examples, budget=budget, seed=seed)


def _tried(mixture: Mixture, network: Network, plays: int, seed: int) -> float:
    """Mean performance in some episodes of a mixture."""
    of_first = int(np.random.default_rng(seed).binomial(plays, mixture.share))
    parts = ((mixture.first, of_first), (mixture.second, plays - of_first))
    total = sum(
        float(domain.performances(network, count, seed=seed).sum())
        for domain, count in parts
        if count
    )
    return total / plays


def _by_dqn(architecture: Architecture, mixture: Mixture, plan: Training, *, seed: int) -> Network:
    tasks = []
    for domain in (mixture.first, mixture.second):
        if not isinstance(domain, Task):
            raise InputError(f"{domain.name} is a set; dqn learns tasks only, cloning and es both")
        tasks.append(domain)
    first, second = tasks
    return train_dqn(
        architecture,
        lambda: _Either(first, second, mixture.share),
        steps=plan.steps,
        seed=seed,
        learning=Learning(rate=plan.rate, batch=plan.batch, reward=_VALUE),
    )


class _Either(gymnasium.Env[Array, Any]):
    """Each episode is of one task or of the other; rewards add up to performance."""

    def __init__(self, first: Task, second: Task, share: float) -> None:
        self._share = share
        self._open = ExitStack()
        tasks = [first] if second is first else [first, second]
        self._tasks = [(task, self._open.enter_context(task.made())) for task in tasks]
        self._task, self._env = self._tasks[0]
        self.observation_space = Box(-np.inf, np.inf, (first.inputs,), dtype=np.float32)
        self.action_space = Discrete(first.outputs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        is_first = self.np_random.random() < self._share
        self._task, self._env = self._tasks[0 if is_first else -1]
        seen, info = self._env.reset(seed=int(self.np_random.integers(_SEED_LIMIT)))
        return self._task.look(self._env, seen).copy(), info

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        env, task = self._env, self._task
        seen, reward, terminated, truncated, info = env.step(first_action(env) + int(action))
        gained = float(reward) / (task.highest - task.lowest)
        return task.look(env, seen).copy(), gained, terminated, truncated, info

    def close(self) -> None:
        self._open.close()
