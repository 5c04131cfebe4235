"""Training a network by deep Q-learning, through Stable-Baselines3.

The trainer of the agents in Pereyda and Holder (2025), The Artificial Intelligence Quotient (AIQ),
AI 6(12):313. Needs the extra `train`; what comes out is a network in plain NumPy, which does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import FlattenObservation
from numpy.typing import NDArray

from robo_eval.agents.first_numbers import FirstNumbers
from robo_eval.core.errors import InputError, MissingExtraError, pip_install
from robo_eval.core.names import unknown_name
from robo_eval.study.cloning import standard, unstandardised
from robo_eval.study.network import Architecture, Array, Network

Exploration = Literal["boltzmann", "epsilon"]
_EXPLORATIONS: Final = ("boltzmann", "epsilon")
_WATCHED: Final = 5_000
"""Ticks of random play that say how large the numbers of an observation are."""
_SEED_LIMIT: Final = 2**31
_Env = gymnasium.Env[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """How deep Q-learning is done.

    Attributes:
        rate: Step size of Adam.
        batch: Transitions in an update.
        discount: What a reward one tick later is worth.
        buffer: Transitions that are remembered.
        warm_up: Ticks before the first update; actions are random in them.
        every: Ticks from one update to the next.
        target_every: Ticks after which the target network takes over the weights.
        reward: Factor of rewards while training, so that values are some units large.
        temperature: Of Boltzmann exploration, in units of the values, at the beginning and at the
            end; it falls evenly.
        epsilon: Share of random actions of the other kind of exploration, at the beginning and at
            the end; it falls evenly.
        checks: How often, evenly spread, the network is judged without exploration. The best of
            these is what training gives: deep Q-learning forgets at times what it could do.
        check_episodes: Episodes it is judged by each time, the same ones.
    """

    rate: float = 5e-4
    batch: int = 64
    discount: float = 0.99
    buffer: int = 100_000
    warm_up: int = 2_000
    every: int = 4
    target_every: int = 1_000
    reward: float = 1.0
    temperature: tuple[float, float] = (1.0, 0.1)
    epsilon: tuple[float, float] = (1.0, 0.02)
    checks: int = 20
    check_episodes: int = 10

    def __post_init__(self) -> None:
        least = ("batch", "buffer", "every", "target_every", "checks", "check_episodes")
        for name in least:
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be 1 or more")
        if self.warm_up < 0:
            raise InputError(f"warm_up is {self.warm_up}; it must be 0 or more")
        for name, value in (("rate", self.rate), ("reward", self.reward)):
            if not 0.0 < value < math.inf:
                raise InputError(f"{name} is {value}; it must be a finite number above 0")
        if not 0.0 <= self.discount <= 1.0:
            raise InputError(f"discount is {self.discount}; it must be in [0, 1]")
        if not all(0.0 < one < math.inf for one in self.temperature):
            raise InputError(f"temperature is {self.temperature}; both must be above 0")
        if not all(0.0 <= one <= 1.0 for one in self.epsilon):
            raise InputError(f"epsilon is {self.epsilon}; both must be in [0, 1]")


_DEFAULT: Final = Learning()


def train_dqn(
    architecture: Architecture,
    make_env: Callable[[], _Env],
    *,
    steps: int,
    seed: int,
    exploration: Exploration = "boltzmann",
    observed: int | None = None,
    learning: Learning = _DEFAULT,
) -> Network:
    """Train a network from scratch by deep Q-learning (Mnih and others, 2015, Nature 518:529).

    Observations are standardised for training by what random play shows; the network that is
    returned takes them as they are. One seed gives one network on one machine with one
    number of threads (`OMP_NUM_THREADS`). Seeds the generators of Python, NumPy and torch.

    Args:
        architecture: How the network is built.
        make_env: Makes the task, with discrete actions from 0 on and observations that can be
            flattened. Called more than once; what it makes is closed in the end.
        steps: Ticks that are played to learn from.
        seed: Of weights, episodes, exploration and what is learned again.
        exploration: `boltzmann` draws actions by the softmax of their values divided by a
            temperature; `epsilon` does a random one now and then.
        observed: How many of the first numbers of the flattened observation the network sees; none
            shows all.
        learning: How it is done.

    Returns:
        The network that did best when it was judged.

    Raises:
        UnknownNameError: If there is no such exploration.
        InputError: If a number is out of range, or the architecture does not fit the task.
        MissingExtraError: If Stable-Baselines3 is not installed.
    """
    if exploration not in _EXPLORATIONS:
        raise unknown_name("exploration", exploration, _EXPLORATIONS)
    if steps < 1:
        raise InputError(f"steps is {steps}; it must be 1 or more")
    check_library()
    played, judged = make_env(), make_env()
    try:
        inside = _shown(played, observed)
        _check_fit(architecture, inside)
        mean, scale = standard(_watched(inside, seed))
        task = _Standardised(inside, mean, scale, learning.reward)
        model = make_model(architecture, task, exploration, learning, seed=seed, steps=steps)
        judge = _Judge(_shown(judged, observed), mean, scale, learning.check_episodes, seed)
        _learn(model, steps, judge, exploration, learning)
    finally:
        played.close()
        judged.close()
    return judge.best


def make_model(
    architecture: Architecture,
    env: _Env,
    exploration: Exploration,
    learning: Learning,
    *,
    seed: int,
    steps: int,
) -> Any:
    """A Stable-Baselines3 `DQN` before training.

    Args:
        architecture: Its hidden layers are those of the networks of values.
        env: The task, as it is learned.
        exploration: How actions are chosen while training.
        learning: How it is done.
        seed: Of everything.
        steps: Ticks that are remembered at most, if fewer than there is room for.

    Raises:
        MissingExtraError: If Stable-Baselines3 is not installed.
    """
    dqn, policies, _ = _library()
    is_boltzmann = exploration == "boltzmann"
    first, last = (0.0, 0.0) if is_boltzmann else learning.epsilon
    return dqn.DQN(
        _boltzmann_policy(policies) if is_boltzmann else policies.DQNPolicy,
        env,
        learning_rate=learning.rate,
        batch_size=learning.batch,
        gamma=learning.discount,
        buffer_size=min(learning.buffer, max(steps, learning.batch)),
        learning_starts=learning.warm_up,
        train_freq=learning.every,
        target_update_interval=learning.target_every,
        exploration_initial_eps=first,
        exploration_final_eps=last,
        exploration_fraction=1.0,
        policy_kwargs={"net_arch": list(architecture.hidden)},
        seed=seed,
        device="cpu",
    )


def exported(model: Any) -> Network:
    """The network of values of a Stable-Baselines3 `DQN`, without the library.

    It chooses what the model predicts with `deterministic=True`.

    Args:
        model: Its network must be fully connected, of rectified units.
    """
    layers = [one for one in model.q_net.q_net if hasattr(one, "weight")]
    weights = [one.weight.detach().cpu().numpy().T.copy() for one in layers]
    biases = [one.bias.detach().cpu().numpy().copy() for one in layers]
    architecture = Architecture(
        inputs=weights[0].shape[0],
        hidden=tuple(one.shape[1] for one in weights[:-1]),
        outputs=weights[-1].shape[1],
    )
    return Network(architecture, weights, biases)


def check_library() -> None:
    """Refuse to go on without what trains.

    Raises:
        MissingExtraError: If Stable-Baselines3, or torch, is not installed.
    """
    _library()


def _library() -> tuple[Any, Any, Any]:
    try:
        from stable_baselines3 import dqn
        from stable_baselines3.common import callbacks
        from stable_baselines3.dqn import policies
    except ImportError as err:
        raise MissingExtraError(
            f"networks are trained by Stable-Baselines3; run: {pip_install('train')}"
        ) from err
    return dqn, policies, callbacks


def _boltzmann_policy(policies: Any) -> type[Any]:
    """A policy of Stable-Baselines3 that draws actions by the softmax of their values."""

    class BoltzmannPolicy(policies.DQNPolicy):  # type: ignore[misc]
        temperature = 1.0

        def _predict(self, obs: Any, deterministic: bool = True) -> Any:  # noqa: FBT001, FBT002
            if deterministic:
                return super()._predict(obs, deterministic=True)
            shares = (self.q_net(obs) / self.temperature).softmax(dim=1)
            return shares.multinomial(1).reshape(-1)

    return BoltzmannPolicy


def _learn(
    model: Any,
    steps: int,
    judge: _Judge,
    exploration: Exploration,
    learning: Learning,
) -> None:
    _, _, callbacks = _library()
    checks = set(np.linspace(0, steps, learning.checks + 1).round().astype(int)[1:])
    begin, end = learning.temperature

    class Watch(callbacks.BaseCallback):  # type: ignore[misc, name-defined]
        def _on_step(self) -> bool:
            if exploration == "boltzmann":
                share = self.num_timesteps / steps
                self.model.policy.temperature = begin + share * (end - begin)
            if self.num_timesteps in checks:
                judge.look(exported(self.model))
            return True

    model.learn(steps, callback=Watch())


# The task --------------------------------------------------------------------------------------


def _check_fit(architecture: Architecture, env: _Env) -> None:
    actions = env.action_space
    if not isinstance(actions, Discrete) or actions.start != 0:
        raise InputError(f"the task takes {actions}; deep Q-learning needs actions 0, 1, ...")
    there = (int(env.observation_space.shape[0]), int(actions.n))  # type: ignore[index]
    if (architecture.inputs, architecture.outputs) != there:
        raise InputError(
            f"the network takes {architecture.inputs} numbers and has {architecture.outputs}"
            f" actions; the task shows {there[0]} and takes {there[1]}"
        )


def _shown(env: _Env, observed: int | None) -> _Env:
    """The task with flat observations, and only what is seen of them."""
    space = env.observation_space
    is_flat = isinstance(space, Box) and len(space.shape) == 1
    flat = env if is_flat else FlattenObservation(env)
    return flat if observed is None else FirstNumbers(flat, observed)


class _Standardised(gymnasium.Wrapper[Array, Any, Any, Any]):
    """Shows observations as training takes them, and scales rewards."""

    def __init__(self, env: _Env, mean: Array, scale: Array, reward: float) -> None:
        super().__init__(env)
        self._mean, self._scale, self._reward = mean, scale, reward
        self.observation_space = Box(-np.inf, np.inf, mean.shape, dtype=np.float32)

    def reset(self, **keywords: Any) -> tuple[Array, dict[str, Any]]:
        seen, info = self.env.reset(**keywords)
        return (seen - self._mean) / self._scale, info

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        # Stable-Baselines3 gives an array without a dimension.
        seen, reward, terminated, truncated, info = self.env.step(int(action))
        scaled = (seen - self._mean) / self._scale
        return scaled, float(reward) * self._reward, terminated, truncated, info


def _watched(env: _Env, seed: int) -> Array:
    """Observations of random play, shape (n, inputs)."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
    actions = cast("Discrete", env.action_space).n
    seen: list[NDArray[Any]] = []
    is_over = True
    while len(seen) < _WATCHED:
        if is_over:
            observation, _ = env.reset(seed=int(rng.integers(_SEED_LIMIT)))
            seen.append(np.array(observation))
        observation, _, terminated, truncated, _ = env.step(int(rng.integers(actions)))
        seen.append(np.array(observation))
        is_over = terminated or truncated
    return np.stack(seen).astype(np.float32)


class _Judge:
    """Plays networks as they are trained, and keeps the best."""

    def __init__(self, env: _Env, mean: Array, scale: Array, episodes: int, seed: int) -> None:
        self._env, self._mean, self._scale = env, mean, scale
        self._starts = np.random.SeedSequence([seed, 2]).generate_state(episodes) >> 1
        self._highest = -math.inf
        self.best: Network

    def look(self, trained: Network) -> None:
        """Play a network for standardised observations; of equals the later one is kept."""
        network = unstandardised(trained, self._mean, self._scale)
        total = sum(self._return(network, int(start)) for start in self._starts)
        if total >= self._highest:
            self._highest, self.best = total, network

    def _return(self, network: Network, start: int) -> float:
        observation, _ = self._env.reset(seed=start)
        total, is_over = 0.0, False
        while not is_over:
            observation, reward, terminated, truncated, _ = self._env.step(
                int(network.choose(observation))
            )
            total += float(reward)
            is_over = terminated or truncated
        return total
