"""Tests that a study can be made of, on tasks that come with Gymnasium."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from robo_eval.core.errors import InputError
from robo_eval.study.cloning import Examples, TrainingBudget, clone
from robo_eval.study.domain import Labelled, Task
from robo_eval.study.network import Architecture, Network


class Balance:
    """Keeps the pole of CartPole up: a linear rule."""

    name = "balance"
    digest = "0" * 64

    def reset(self, *, seed: int | None = None) -> None:
        """Nothing to forget."""

    def act(self, observation: Any) -> int:
        x, v, angle, spin = observation
        return int(angle + 0.3 * spin + 0.02 * x + 0.05 * v > 0)


def cart(**fields: Any) -> Task:
    values: dict[str, Any] = {"name": "cart", "env": "CartPole-v1", "expert": Balance()}
    return Task(**(values | {"highest": 500.0} | fields))


def rule(*weights: float) -> Network:
    """A linear network that does 1 where a weighted sum of what it sees is positive."""
    architecture = Architecture(inputs=4, hidden=(), outputs=2)
    return Network(architecture, [np.column_stack([np.zeros(4), weights])], [[0, 0]])


def test_a_task_knows_what_it_shows_and_takes():
    found = cart()
    assert (found.inputs, found.outputs) == (4, 2)


def test_performance_is_the_return_between_its_ends():
    found = cart().performances(rule(0.02, 0.05, 1.0, 0.3), 4, seed=0)
    assert found.tolist() == [1.0] * 4
    poor = cart().performances(rule(0, 0, -1, 0), 20, seed=0)
    assert 8 / 500 < poor.mean() < 12 / 500
    shifted = cart(lowest=5.0, highest=10.0).performances(rule(0, 0, -1, 0), 20, seed=0)
    assert shifted == pytest.approx(np.clip((500 * poor - 5) / 5, 0, 1))


def test_the_same_seed_gives_the_same_episodes_and_examples():
    task = cart()
    network = rule(0, 0, 1, 0)
    found = [task.performances(network, 6, seed=seed).tolist() for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    assert task.performances(network, 3, seed=1).tolist() == found[0][:3]
    first, same, other = (task.examples(100, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.observations, same.observations)
    assert (first.observations != other.observations).any()


def test_examples_are_what_the_expert_does_there_and_not_what_was_done():
    found = cart(wander=0.5).examples(300, seed=0)
    expert = Balance()
    assert found.actions.tolist() == [expert.act(one) for one in found.observations]


def test_wandering_shows_more_of_the_task():
    calm, wild = (cart(wander=wander).examples(600, seed=0).observations for wander in (0.0, 0.4))
    assert np.abs(wild[:, 2]).max() > np.abs(calm[:, 2]).max()


def test_a_clone_does_as_well_as_its_expert():
    task = cart()
    network = clone(
        Architecture(inputs=4, hidden=(8,), outputs=2),
        task.examples(3_000, seed=0),
        budget=TrainingBudget(steps=1_000),
        seed=0,
    )
    assert task.performances(network, 5, seed=1).mean() > 0.9


def test_actions_need_not_begin_at_zero_nor_observations_be_flat():
    class Shifted(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Dict(
            {"a": gymnasium.spaces.Box(-1, 1, (2,)), "b": gymnasium.spaces.Discrete(3)}
        )
        action_space = gymnasium.spaces.Discrete(2, start=5)

        def reset(self, **more: Any) -> Any:
            super().reset(**more)
            return self._seen(), {}

        def step(self, action: int) -> Any:
            assert action in (5, 6)
            return self._seen(), float(action == 6), True, False, {}

        def _seen(self) -> Any:
            return {"a": np.zeros(2, dtype=np.float32), "b": 1}

    class Six(Balance):
        def act(self, observation: Any) -> int:
            return 6

    gymnasium.register("tests/Shifted-v0", Shifted)
    task = Task(name="shifted", env="tests/Shifted-v0", expert=Six())
    assert (task.inputs, task.outputs) == (5, 2)
    examples = task.examples(7, seed=0)
    assert examples.actions.tolist() == [1] * 7
    network = clone(
        Architecture(inputs=5, hidden=(), outputs=2),
        examples,
        budget=TrainingBudget(steps=30),
        seed=0,
    )
    assert task.performances(network, 3, seed=0).tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"env": "Nowhere-v0"}, "cart: Nowhere-v0 cannot be made"),
        ({"kwargs": {"wind": 3}}, "cart: CartPole-v1 cannot be made"),
        ({"env": "Pendulum-v1"}, "studies need discrete actions"),
        ({"lowest": 1.0, "highest": 1.0}, "lowest is 1.0 and highest 1.0"),
        ({"wander": 1.0}, "wander is 1.0"),
    ],
)
def test_what_is_no_task_is_refused(fields, message):
    with pytest.raises(InputError, match=message):
        cart(**fields)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (4, "cart: expert balance took action 4; CartPole-v1 takes whole numbers from 0 to 1;"),
        (0.5, "cart: expert balance took action 0.5; CartPole-v1 takes whole numbers from 0 to 1;"),
        (np.zeros(2), "cart: expert balance failed: ValueError: "),
        (None, "cart: expert balance failed: TypeError: "),
    ],
)
def test_an_expert_of_something_else_is_refused_by_name(answer: Any, said: str):
    class Other(Balance):
        def act(self, observation: Any) -> Any:
            return answer

    for use in ("examples", "expert_performances"):
        with pytest.raises(InputError) as caught:
            getattr(cart(expert=Other()), use)(5, seed=0)
        assert str(caught.value).startswith(said)


def test_an_expert_that_says_why_it_cannot_is_quoted():
    class Picky(Balance):
        def reset(self, *, seed: int | None = None) -> None:
            raise InputError("a whole robot is needed")

    with pytest.raises(InputError, match=r"^cart: expert balance failed: a whole robot is needed$"):
        cart(expert=Picky()).examples(5, seed=0)


@pytest.mark.parametrize("where", ["reset", "step"])
def test_an_environment_that_fails_is_told_by_name(monkeypatch, where):
    def fail(*given: Any, **named: Any) -> Any:
        raise ZeroDivisionError("no\nmass")

    task = cart()
    monkeypatch.setattr(f"gymnasium.envs.classic_control.CartPoleEnv.{where}", fail)
    with pytest.raises(InputError, match=r"^cart: CartPole-v1 failed: ZeroDivisionError: no mass$"):
        task.examples(5, seed=0)


# Labelled examples


def labelled(n: int = 100) -> Labelled:
    points = np.random.default_rng(0).normal(size=(2 * n, 2))
    sets = [Examples.of(half, (half[:, 0] > 0).astype(int)) for half in np.split(points, 2)]
    return Labelled(name="sides", train=sets[0], test=sets[1], outputs=2)


def test_labels_are_judged_one_by_one():
    found = labelled()
    network = Network(Architecture(inputs=2, hidden=(), outputs=2), [[[0, 1], [0, 0]]], [[0, 0]])
    assert found.performances(network, 100, seed=0).tolist() == [1.0] * 100
    wrong = Network(Architecture(inputs=2, hidden=(), outputs=2), [[[0, -1], [0, 0]]], [[0, 0]])
    assert found.performances(wrong, 100, seed=0).sum() == 0.0


def test_every_example_comes_once_before_one_comes_again():
    found = labelled(50)
    rows = {tuple(one) for one in found.examples(50, seed=1).observations.tolist()}
    assert len(rows) == 50
    assert len(found.examples(120, seed=1)) == 120


def test_sets_that_do_not_fit_are_refused():
    good = labelled()
    with pytest.raises(InputError, match="there is a class 1, and outputs is 1"):
        Labelled(name="sides", train=good.train, test=good.test, outputs=1)
    other = Examples.of([[1.0]], [0])
    with pytest.raises(InputError, match="differ in length"):
        Labelled(name="sides", train=good.train, test=other, outputs=2)
