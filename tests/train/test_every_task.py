"""Stable-Baselines3 finds every task and level as it wants an environment to be."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import gymnasium
import pytest

from robo_eval.core.task import tasks

checker = pytest.importorskip(
    "stable_baselines3.common.env_checker", reason='needs pip install "robo-eval-stack[train]"'
)


def conditions() -> Iterator[tuple[str, dict[str, int]]]:
    for env, spec in tasks().items():
        yield from ((env, {"level": level}) for level in spec.levels() or ())
        if not spec.levels():
            yield env, {}


@pytest.mark.parametrize(("env", "keywords"), list(conditions()))
def test_its_checker_has_nothing_to_say(env: str, keywords: dict[str, int]) -> None:
    made = gymnasium.make(env, **keywords)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # An action of the arm is in radians and metres.
        warnings.filterwarnings("ignore", message="We recommend you to use a symmetric")
        checker.check_env(made.unwrapped, warn=True)
    made.close()
