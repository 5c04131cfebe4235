"""Runs the command line as users do: as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

SMALL_PLAN = """
name: small
tasks:
  - env: RoboEval/CartPole3D-v0
    levels: [0, 1]
    difficulties: [easy]
policies: [random, balancer]
episodes: 3
traces: first
"""


@dataclass(frozen=True)
class Finished:
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def environment(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """The environment commands run in: plain output, modules found in the test's folder."""

    def build(**extra: str) -> dict[str, str]:
        plain = {"NO_COLOR": "1", "TERM": "dumb", "PYTHONPATH": str(tmp_path)}
        return {**os.environ, **plain, **extra}

    return build


@pytest.fixture
def cli(tmp_path: Path, environment: Callable[..., dict[str, str]]) -> Callable[..., Finished]:
    """Run `robo-eval` in a temporary folder that is also on the import path."""

    def call(*args: object, **extra: str) -> Finished:
        done = subprocess.run(
            [sys.executable, "-m", "robo_eval", *map(str, args)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(**extra),
            timeout=240,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def small_plan(tmp_path: Path) -> Path:
    """A plan of twelve quick episodes."""
    path = tmp_path / "small.yaml"
    path.write_text(SMALL_PLAN)
    return path
