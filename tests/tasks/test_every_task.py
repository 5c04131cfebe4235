"""The registry is the test plan: each task that is installed keeps the contract, level by level."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from robo_eval.core.task import tasks

CONTRACT = Path(__file__).with_name("contract.py")
ENVS = [*tasks(), "Lab/SlidePuck-v0"]


def lines_of(env: str, installed: dict[str, str], *how: str) -> list[str]:
    """What a fresh process says of a task."""
    done = subprocess.run(
        [sys.executable, CONTRACT, env, *how], capture_output=True, text=True, env=installed
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("env", "how"),
    [
        # The drawer stands for both tasks of the arm.
        *((env, ("quick",)) for env in ENVS if "PickPlace" not in env),
        *(pytest.param(env, (), marks=pytest.mark.slow) for env in ENVS),
    ],
)
def test_it_keeps_the_contract_and_repeats_in_another_process(
    env: str, installed: dict[str, str], how: tuple[str, ...]
) -> None:
    first = lines_of(env, installed, *how)
    assert first
    assert len(set(first)) == len(first)
    assert lines_of(env, installed, *how) == first


@pytest.mark.parametrize("env", tasks())
def test_it_says_what_it_is(env: str) -> None:
    spec = tasks()[env]
    assert spec.tick_s > 0.0
    assert spec.max_ticks > 0
    for text in (spec.end, spec.success, spec.quality or "."):
        assert text.endswith(".")
    assert len(spec.pushes) in (0, len(spec.actions))
    for number, level in spec.levels().items():
        assert level.number == number
        row = level.as_dict("paper")
        assert row["effect"]
        assert set(row["ranges"]) == {"easy", "medium", "hard"}
