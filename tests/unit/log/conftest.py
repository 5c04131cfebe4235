"""Trials and episodes that the tests of the log share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_eval.core.episode import Episode
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import TrialPlan, parse_plan
from robo_eval.core.trajectory import Trajectory
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore
from robo_eval.log.trace import write_trace

PLAN = "name: log\ntasks: [{levels: [0]}]\npolicies: [nothing]\nepisodes: 5\ntraces: all\n"


@pytest.fixture
def plan() -> TrialPlan:
    return parse_plan(PLAN, source="plan")


@pytest.fixture
def trial(tmp_path: Path, plan: TrialPlan) -> TrialDirectory:
    return TrialDirectory.create(tmp_path / "trial", plan)


@pytest.fixture
def make_episode() -> Callable[..., Episode]:
    """Episode number i; any field can be set."""

    def make(i: int = 0, **changed: Any) -> Episode:
        fields: dict[str, Any] = {
            "episode_id": f"e{i}",
            "plan_digest": "0" * 64,
            "side": Side.SIM,
            "task": "RoboEval/CartPole3D-v0",
            "family": "balance",
            "level": 3,
            "difficulty": "easy",
            "profile": "paper",
            "seed": 1000 + i,
            "policy": "nothing",
            "policy_digest": "1" * 64,
            "start_ns": 1_700_000_000_000_000_000 + i,
            "duration_s": 4.0,
            "ticks": 200,
            "episode_return": 0.1 + i,
            "quality": 1.0,
            "success": True,
            "end_reason": EndReason.SUCCESS,
            "stated_success_probability": 0.25,
            "software": "robo-eval 0.1.0",
            "control_quality": {"jerk_rms": 0.1},
            "costs": {"energy_j": 1.5},
            "novelty": {"name": "ice", "parameters": {"friction": 0.1}},
            "initial_state": {"cart_position": [0.1, -0.2], "balls": [{"position": [1, 2, 3]}]},
        }
        return Episode(**{**fields, **changed})

    return make


@pytest.fixture
def make_trajectory() -> Callable[..., Trajectory]:
    """Random numbers in the shape of an episode; one frame comes late, one never."""

    def make(n: int = 9, joints: int = 2, frames: int = 4, width: int = 5, seed: int = 0):
        rng = np.random.default_rng(seed)
        poses = rng.normal(size=(n, frames, 7))
        if frames > 1:
            poses[: n // 2, 1] = np.nan
            poses[:, frames - 1] = np.nan
        return Trajectory(
            stamp_ns=np.arange(n, dtype=np.int64) * 20_000_000,
            joint_names=tuple(f"joint_{i}" for i in range(joints)),
            joint_position=rng.normal(size=(n, joints)),
            joint_velocity=rng.normal(size=(n, joints)),
            frames=tuple(f"frame_{i}" for i in range(frames)),
            pose_world_frame=poses,
            actions=rng.normal(size=(n - 1, 1)),
            rewards=rng.normal(size=n - 1),
            observations=rng.normal(size=(n, width)),
            robot_description="<robot name='ünit'/>",
        )

    return make


@pytest.fixture
def finished(trial, make_episode, make_trajectory) -> TrialDirectory:
    """A complete trial of five episodes, the first two with a trace."""
    with trial.lock(), EpisodeStore(trial.path, durable=False) as store:
        episodes = []
        for i in range(5):
            trace = {}
            if i < 2:
                uri = f"traces/e{i}.mcap"
                moves = make_trajectory(n=3, seed=i)
                digest = write_trace(trial.path / uri, moves)
                trace = {"trace_uri": uri, "trace_sha256": digest, "ticks": 2}
                trace |= {"uninterrupted_actions": 2, "episode_return": moves.rewards.sum()}
            episodes.append(make_episode(i, plan_digest=trial.plan_digest, **trace))
        store.append(episodes[:3])
        store.append(episodes[3:])
        trial.write_manifest(status="complete", store=store)
    return trial
