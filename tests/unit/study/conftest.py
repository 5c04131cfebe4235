"""A suite that takes a second: CartPole3D without novelty and with a longer pole."""

from __future__ import annotations

import copy
from typing import Any

import pytest


@pytest.fixture(scope="session")
def tiny_suite() -> dict[str, Any]:
    """As it is written in YAML; not to be changed."""
    return {
        "version": 1,
        "name": "tiny",
        "seed": 3,
        "tasks": [
            {
                "env": "RoboEval/CartPole3D-v0",
                "name": "level {level}",
                "kwargs": {"difficulty": "medium"},
                "each": {"level": [0, 9]},
                "experts": ["balancer", "adaptive"],
                "observed": 12,
            }
        ],
        "expert_episodes": 2,
        "entropy_episodes": 1,
        "pool": {"policies": 12, "examples": 300, "steps": 40, "episodes": 2},
        "learner": {"examples": 300, "steps": 40, "episodes": 2, "trainings": 2, "alone": 2},
    }


@pytest.fixture
def tiny(tiny_suite: dict[str, Any]) -> dict[str, Any]:
    """A copy of it to change."""
    return copy.deepcopy(tiny_suite)
