"""What deep Q-learning refuses before it needs Stable-Baselines3; tests/train has the rest."""

from __future__ import annotations

import builtins
import math
from typing import Any

import gymnasium
import pytest

from robo_eval.core.errors import InputError, MissingExtraError, UnknownNameError
from robo_eval.study.dqn import Learning, train_dqn
from robo_eval.study.network import Architecture

CART = Architecture(inputs=4, hidden=(8,), outputs=2)


def make_cart() -> Any:
    return gymnasium.make("CartPole-v1")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"batch": 0}, "batch is 0; it must be 1 or more"),
        ({"checks": 0}, "checks is 0"),
        ({"warm_up": -1}, "warm_up is -1"),
        ({"rate": math.nan}, "rate is nan"),
        ({"reward": 0.0}, "reward is 0.0"),
        ({"discount": 1.5}, "discount is 1.5"),
        ({"temperature": (1.0, 0.0)}, "temperature is"),
        ({"epsilon": (1.5, 0.0)}, "epsilon is"),
    ],
)
def test_what_cannot_be_learned_with_is_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        Learning(**wrong)


def test_wrong_arguments_are_refused_first():
    with pytest.raises(UnknownNameError, match="did you mean 'boltzmann'"):
        train_dqn(CART, make_cart, steps=1, seed=0, exploration="boltzman")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="steps is 0"):
        train_dqn(CART, make_cart, steps=0, seed=0)


def test_without_stable_baselines_the_extra_is_named(monkeypatch):
    whole = builtins.__import__

    def without(name: str, *more: Any, **keywords: Any) -> Any:
        if name.partition(".")[0] in {"stable_baselines3", "torch"}:
            raise ImportError(name)
        return whole(name, *more, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install \"robo-eval-stack\[train\]\""):
        train_dqn(CART, make_cart, steps=1, seed=0)
