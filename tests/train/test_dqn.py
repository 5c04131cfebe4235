"""Deep Q-learning through Stable-Baselines3, and the networks that come of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from robo_eval.core.canonical import file_digest
from robo_eval.core.errors import InputError
from robo_eval.study.cloning import Examples
from robo_eval.study.domain import Task
from robo_eval.study.dqn import Learning, exported, make_model, train_dqn
from robo_eval.study.entries import tests_of
from robo_eval.study.network import Architecture, Network
from robo_eval.study.played import read_network
from robo_eval.study.suite import LearnerSection, read_suite
from robo_eval.study.trainers import Mixture, trained

pytest.importorskip("stable_baselines3", reason='needs pip install "robo-eval-stack[train]"')
torch = pytest.importorskip("torch", reason='needs pip install "robo-eval-stack[train]"')

CART = Architecture(inputs=4, hidden=(24, 16), outputs=2)
SHORT = Learning(warm_up=100, buffer=2_000, batch=32, every=8, checks=2, check_episodes=2)
SEEN = np.random.default_rng(0).normal(size=(500, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Threads of small networks only wait for each other."""
    torch.set_num_threads(1)


def make_cart() -> Any:
    return gymnasium.make("CartPole-v1")


class Lamp(gymnasium.Env[Any, Any]):
    """Shows which of three things is to be done in ten ticks, beside a number that says nothing."""

    observation_space = gymnasium.spaces.Dict(
        {
            "lamp": gymnasium.spaces.Discrete(3),
            "noise": gymnasium.spaces.Box(-1e6, 1e6, (1,), dtype=np.float32),
        }
    )
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, **keywords: Any) -> Any:
        super().reset(seed=keywords.get("seed"))
        self._tick = 0
        return self._look(), {}

    def step(self, action: int) -> Any:
        reward = float(action == self._lamp) / 10
        self._tick += 1
        return self._look(), reward, self._tick == 10, False, {}

    def _look(self) -> Any:
        self._lamp = int(self.np_random.integers(3))
        noise = self.np_random.uniform(-1e6, 1e6, 1).astype(np.float32)
        return {"lamp": self._lamp, "noise": noise}


@pytest.mark.parametrize("exploration", ["boltzmann", "epsilon"])
def test_an_exported_network_chooses_what_the_model_predicts(exploration):
    model = make_model(CART, make_cart(), exploration, SHORT, seed=0, steps=600)
    model.learn(600)
    network = exported(model)
    assert network.architecture == CART
    predicted, _ = model.predict(SEEN, deterministic=True)
    assert 0 < predicted.mean() < 1, "both actions are chosen somewhere"
    np.testing.assert_array_equal(network.choose(SEEN), predicted)
    values = model.q_net(model.policy.obs_to_tensor(SEEN)[0]).detach().numpy()
    np.testing.assert_allclose(network.scores(SEEN), values, rtol=1e-4, atol=1e-5)


def test_boltzmann_exploration_draws_by_the_values():
    model = make_model(CART, make_cart(), "boltzmann", SHORT, seed=0, steps=1)
    values = exported(model).scores(SEEN[0]).astype(np.float64)
    for temperature in (0.2, 1.0, 5.0):
        model.policy.temperature = temperature
        drawn, _ = model.predict(np.tile(SEEN[0], (4_000, 1)), deterministic=False)
        shares = np.exp(values / temperature) / np.exp(values / temperature).sum()
        assert drawn.mean() == pytest.approx(shares[1], abs=0.03)


@pytest.mark.parametrize("exploration", ["boltzmann", "epsilon"])
def test_it_learns_from_what_it_is_to_see(exploration):
    network = train_dqn(
        Architecture(inputs=3, hidden=(16,), outputs=3),
        Lamp,
        steps=1_500,
        seed=0,
        exploration=exploration,
        observed=3,
        learning=Learning(
            rate=5e-3, warm_up=200, every=2, target_every=200, discount=0.5, reward=10.0, checks=5
        ),
    )
    assert network.choose(np.eye(3)).tolist() == [0, 1, 2]


def test_the_same_seed_gives_the_same_network():
    first, same, other = (
        train_dqn(CART, make_cart, steps=400, seed=seed, learning=SHORT) for seed in (1, 1, 2)
    )
    for name, one in first.arrays().items():
        np.testing.assert_array_equal(one, same.arrays()[name])
    assert any((one != other.arrays()[name]).any() for name, one in first.arrays().items())


def test_the_best_of_what_was_judged_is_kept(monkeypatch):
    monkeypatch.setattr("robo_eval.study.dqn._Judge._return", lambda *given: next(returns))
    seen: list[Network] = []
    look = "robo_eval.study.dqn.exported"
    monkeypatch.setattr(look, lambda model: seen.append(exported(model)) or seen[-1])
    returns = iter([1.0, 1.0, 5.0, 5.0, 2.0, 2.0])
    learning = Learning(warm_up=50, batch=32, every=4, checks=3, check_episodes=2)
    best = train_dqn(CART, make_cart, steps=300, seed=0, learning=learning)
    assert len(seen) == 3
    np.testing.assert_array_equal(best.weights[1], seen[1].weights[1])
    assert (seen[1].weights[1] != seen[2].weights[1]).any()


class Continuous(Lamp):
    action_space = gymnasium.spaces.Box(-1, 1, (1,))  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"architecture": Architecture(inputs=5, hidden=(), outputs=2)}, "takes 5 numbers and has"),
        ({"architecture": Architecture(inputs=4, hidden=(), outputs=3)}, "shows 4 and takes 2"),
        ({"observed": 5}, "n must be a whole number from 1 to 4, given 5"),
        ({"make_env": Continuous}, "deep Q-learning needs actions 0, 1"),
    ],
)
def test_what_does_not_fit_is_refused(wrong, message):
    given = {"architecture": CART, "make_env": make_cart, "steps": 10, "seed": 0} | wrong
    with pytest.raises(InputError, match=message):
        train_dqn(**given)


def test_the_recipe_writes_a_network_and_where_it_comes_from(tmp_path):
    pytest.importorskip("pybullet", reason='needs pip install "robo-eval-stack[sim]"')
    recipe = Path(__file__).resolve().parents[2] / "examples" / "train_dqn.py"
    path = tmp_path / "new" / "short.npz"
    done = subprocess.run(
        [sys.executable, recipe, "--steps", "300", "--out", path],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert "short.npz: performance 0." in done.stdout
    said = json.loads(path.with_suffix(".json").read_text())
    assert (said["file"], said["sha256"]) == ("short.npz", file_digest(path))
    assert (said["steps"], said["seed"], said["performance"]["n"]) == (300, 0, 100)
    assert 0.0 < said["performance"]["low"] < said["performance"]["mean"]
    assert said["versions"]["stable-baselines3"]
    assert read_network(path).architecture == Architecture(inputs=11, hidden=(512, 512), outputs=5)


class Swapped(Lamp):
    """Wants the next thing instead of the one that is shown, and pays ten times as much."""

    def step(self, action: int) -> Any:
        seen, reward, *rest = super().step((action - 1) % 3)
        return seen, 10.0 * reward, *rest


@pytest.mark.parametrize(("share", "answers"), [(1.0, [0, 1, 2]), (0.0, [1, 2, 0])])
def test_a_suite_learns_a_mixture_by_it(share, answers):
    for name, task in (("Lamp", Lamp), ("Swapped", Swapped)):
        gymnasium.register(f"Tests/{name}-v0", task, order_enforce=False, disable_env_checker=True)
    tasks = [
        Task(name=name, env=f"Tests/{name}-v0", expert=Nobody(), highest=highest, observed=3)
        for name, highest in (("Lamp", 1.0), ("Swapped", 10.0))
    ]
    plan = LearnerSection(trainer="dqn", steps=3_000, rate=5e-3, batch=32)
    network = trained(
        Architecture(inputs=3, hidden=(16,), outputs=3),
        Examples.of(np.eye(3), [0, 1, 2]),
        Mixture(first=tasks[0], second=tasks[1], share=share),
        plan,
        seed=0,
    )
    assert network.choose(np.eye(3)).tolist() == answers
    own, other = tasks if share else tasks[::-1]
    assert own.performances(network, 5, seed=0).mean() == pytest.approx(1.0)
    assert other.performances(network, 5, seed=0).mean() == pytest.approx(0.0)


class Nobody:
    """No expert: deep Q-learning learns from what it does itself."""

    digest = "nobody"

    def reset(self, *, seed: int) -> None:
        pass

    def act(self, observation: Any) -> Any:
        raise AssertionError("nobody is asked")


def test_the_suite_of_the_examples_can_be_built() -> None:
    path = Path(__file__).parents[2] / "examples/suites/trainers_dqn.yaml"
    suite = read_suite(path)

    assert (suite.pool.trainer, suite.learner.trainer) == ("dqn", "dqn")
    assert len(tests_of(suite)) == 3
