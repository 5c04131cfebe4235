"""CartPole with other parameters is Gymnasium's own; its regulator balances what it knows."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from robo_eval.agents import load_policy
from robo_eval.agents.cartpole_varied.regulator import Regulator
from robo_eval.core.errors import InputError, ShapeError
from robo_eval.core.policy import Policy
from robo_eval.study.entries import environment_digest

VARIED = "RoboEval/CartPoleVaried-v0"


def played(env: gymnasium.Env, seed: int, actions: list[int]) -> list[tuple[Any, ...]]:
    """Everything an episode shows, as plain numbers."""
    found: list[tuple[Any, ...]] = [(env.reset(seed=seed)[0].tolist(),)]
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        found.append((observation.tolist(), reward, terminated, truncated, info))
        if terminated or truncated:
            break
    return found


def balanced(env: gymnasium.Env, policy: Policy, seed: int) -> int:
    """Ticks for which a policy keeps the pole up."""
    observation, _ = env.reset(seed=seed)
    ticks, is_over = 0, False
    while not is_over:
        observation, _, terminated, truncated, _ = env.step(policy.act(observation))
        ticks += 1
        is_over = terminated or truncated
    return ticks


@pytest.mark.parametrize("reward", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_with_the_usual_parameters_it_is_cartpole(seed: int, reward: bool) -> None:
    actions = np.random.default_rng(seed).integers(2, size=200).tolist()
    ours = played(gymnasium.make(VARIED, sutton_barto_reward=reward), seed, actions)
    assert ours == played(gymnasium.make("CartPole-v1", sutton_barto_reward=reward), seed, actions)
    assert len(ours) > 5


def test_it_is_cartpole_to_the_time_limit() -> None:
    policy = Regulator()
    lengths = [balanced(gymnasium.make(name), policy, seed=3) for name in (VARIED, "CartPole-v1")]
    assert lengths == [500, 500]


@pytest.mark.parametrize("name", ["force_mag", "gravity", "length", "masspole"])
def test_each_parameter_changes_the_motion_as_in_gymnasium(name: str) -> None:
    actions = [1, 1, 0, 1, 0, 0]
    usual = gymnasium.make("CartPole-v1")
    own: Any = usual.unwrapped
    setattr(own, name, 2.0 * getattr(own, name))
    own.total_mass = own.masspole + own.masscart
    own.polemass_length = own.masspole * own.length
    varied = gymnasium.make(VARIED, **{name: getattr(own, name)})
    wanted = played(usual, 1, actions)
    assert played(varied, 1, actions) == wanted
    assert played(varied, 1, actions) == wanted, "the same seed gives the same episode"
    assert played(gymnasium.make(VARIED), 1, actions) != wanted
    assert played(varied, 2, actions) != wanted


def test_it_is_a_proper_environment_that_pickles_and_needs_no_engine() -> None:
    env = gymnasium.make(VARIED, gravity=20).unwrapped
    check_env(env, skip_render_check=True)
    copy = pickle.loads(pickle.dumps(env))
    assert played(copy, 4, [1, 0, 1]) == played(env, 4, [1, 0, 1])
    program = (
        "import sys\nsys.modules['pybullet'] = None\nimport gymnasium\n"
        f"print(gymnasium.make({VARIED!r}).spec.max_episode_steps)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "500", done.stderr


@pytest.mark.parametrize("name", ["force_mag", "gravity", "length", "masspole"])
@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, 1e5, "10", None, True])
def test_parameters_that_are_none_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{name} is .*above 0 and up to 10000"):
        gymnasium.make(VARIED, **{name: value})


def test_a_keyword_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match="masscart"):
        gymnasium.make(VARIED, masscart=2.0)


def test_digest_covers_the_time_limit_and_not_the_keywords() -> None:
    usual = environment_digest(gymnasium.make(VARIED))
    assert environment_digest(gymnasium.make(VARIED, gravity=3)) == usual
    shorter = gymnasium.make(VARIED)
    own = shorter.unwrapped
    assert own.spec is not None
    own.spec = replace(own.spec, max_episode_steps=200)
    assert environment_digest(shorter) != usual
    assert environment_digest(gymnasium.make("CartPole-v1")) != usual


# The regulator ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [("force_mag", 1), ("force_mag", 160), ("gravity", 1), ("gravity", 100), ("gravity", 150),
     ("length", 0.05), ("length", 8), ("masspole", 0.01), ("masspole", 5)],
)  # fmt: skip
def test_the_regulator_keeps_every_pole_up_that_it_knows(name: str, value: float) -> None:
    env = gymnasium.make(VARIED, **{name: value})
    policy = Regulator(**{name: value})
    assert [balanced(env, policy, seed) for seed in range(3)] == [500] * 3


def test_what_it_knows_matters() -> None:
    env = gymnasium.make(VARIED, length=4)
    assert max(balanced(env, Regulator(length=0.1), seed) for seed in range(3)) < 100


def test_a_suite_names_it_by_its_path() -> None:
    path = "robo_eval.agents.cartpole_varied.regulator:Regulator"
    made = load_policy("regulator", path, {"gravity": 20})
    assert isinstance(made, Policy)
    assert made.name == "regulator"
    assert made.digest != load_policy("regulator", path, {}).digest
    with pytest.raises(InputError, match=r"gravity must be a number from 1e-06"):
        load_policy("regulator", path, {"gravity": 0})


def test_an_observation_of_another_task_is_refused() -> None:
    with pytest.raises(ShapeError, match="CartPole's four numbers are needed"):
        Regulator().act(np.zeros(12))
