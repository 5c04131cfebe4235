"""Every level, difficulty and profile is a proper Gymnasium environment."""

from __future__ import annotations

import gc
import pickle
import warnings
from collections import defaultdict
from collections.abc import Callable

import gymnasium
import numpy as np
import pybullet
import pytest
from gymnasium.utils.env_checker import check_env

from robo_eval.core.errors import UnknownNameError
from robo_eval.core.kinds import Difficulty, Profile
from robo_eval_sim.engine import Engine
from robo_eval_sim.novelty import levels
from robo_eval_sim.tasks.cartpole3d.layout import (
    BALL_SLOTS,
    EPISODE_TICKS,
    ball_mask,
    observation_size,
)

CARTPOLE = "RoboEval/CartPole3D-v0"


@pytest.mark.parametrize("profile", list(Profile))
@pytest.mark.parametrize("difficulty", list(Difficulty))
@pytest.mark.parametrize("level", range(17))
def test_check_env_is_content(
    make: Callable, level: int, difficulty: Difficulty, profile: Profile
) -> None:
    env = make(level=level, difficulty=difficulty, profile=profile)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True, skip_close_check=True)


def test_there_are_seventeen_levels() -> None:
    assert list(levels()) == list(range(17))


@pytest.mark.parametrize("profile", list(Profile))
@pytest.mark.parametrize("level", range(17))
def test_observations_stay_in_their_space_under_random_pushes(
    make: Callable, balance: Callable, balls_of: Callable, level: int, profile: str
) -> None:
    env = make(level=level, difficulty="hard", profile=profile)
    assert env.observation_space.shape == (observation_size(profile),)
    for seed in range(3):
        for observation in balance(env, seed):
            assert observation.dtype == np.float32
            assert env.observation_space.contains(observation)
            positions, velocities = balls_of(observation)
            mask = ball_mask(profile)
            assert not observation[12 + 6 * len(positions) : mask.start].any()
            assert observation[mask].tolist() == [
                float(slot < len(positions)) for slot in range(BALL_SLOTS[profile])
            ]
            # Nothing leaves the room, however fast it is.
            assert np.abs(positions[:, :2]).max(initial=0) < 6.5
            assert np.abs(positions[:, 2] - 5.0).max(initial=0) < 6.5
            assert np.abs(velocities).max(initial=0) <= 100.0 + 1e-9


def test_most_balls_of_each_profile_are_reached(make: Callable) -> None:
    for profile, every in (("paper", 5), ("compat", 1)):
        env = make(level=16, difficulty="hard", profile=profile, balls=4)
        env.reset(seed=0)
        assert env.unwrapped.novelty["parameters"]["every"] == every
        # Stepping the world itself: no policy keeps the pole up among so many balls.
        for _ in range(EPISODE_TICKS):
            row = env.unwrapped._advance(0)
        assert row[11] == BALL_SLOTS[profile]
        assert len(env.unwrapped._observe(row)) == observation_size(profile)


@pytest.mark.parametrize("level", range(17))
def test_pickled_environment_plays_the_same_episode(make: Callable, level: int) -> None:
    env = make(level=level, difficulty="medium", balls=2, reveal=True).unwrapped
    copy = pickle.loads(pickle.dumps(env))
    for played in (env, copy):
        played.reset(seed=5)
    assert copy.novelty == env.novelty
    for action in (1, 0, 4):
        np.testing.assert_array_equal(env.step(action)[0], copy.step(action)[0])
    copy.close()


@pytest.mark.parametrize("task", [CARTPOLE, "RoboEval/PickPlace-v0"])
def test_a_world_that_nobody_closed_is_freed(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = []

    class Watched(Engine):
        def __init__(self) -> None:
            super().__init__()
            numbers.append(self.client)

    monkeypatch.setattr("robo_eval_sim.spare._spare", defaultdict(list))
    monkeypatch.setattr("robo_eval_sim.arm.world.Engine", Watched)
    monkeypatch.setattr("robo_eval_sim.tasks.cartpole3d.scene.Engine", Watched)
    env = gymnasium.make(task)
    env.reset(seed=0)
    assert [pybullet.isConnected(number) for number in numbers] == [1]
    del env
    gc.collect()
    assert [pybullet.isConnected(number) for number in numbers] == [0]


def test_closes_twice_and_can_be_reset_again(make: Callable) -> None:
    env = make()
    env.close()
    first, _ = env.reset(seed=1)
    env.close()
    env.close()
    with pytest.raises(ValueError, match="call reset"):
        env.step(0)
    again, _ = env.reset(seed=1)
    np.testing.assert_array_equal(first, again)


def test_two_environments_side_by_side_do_not_touch(make: Callable) -> None:
    alone = make(level=7)
    alone.reset(seed=3)
    expected = [alone.step(1)[0] for _ in range(10)]
    one, other = make(level=7), make(level=4, difficulty="hard")
    one.reset(seed=3)
    other.reset(seed=4)
    for observation in expected:
        np.testing.assert_array_equal(one.step(1)[0], observation)
        if other.step(3)[2]:
            other.reset()


def test_vector_environments_are_made(make: Callable) -> None:
    vector = gymnasium.make_vec(
        CARTPOLE, num_envs=2, vectorization_mode="sync", level=3, difficulty="hard"
    )
    observations, _ = vector.reset(seed=[1, 2])
    single = make(level=3, difficulty="hard")
    np.testing.assert_array_equal(observations[1], single.reset(seed=2)[0])
    for _ in range(60):
        observations, *_ = vector.step(np.array([1, 2]))
    assert observations.shape == (2, observation_size("paper"))
    vector.close()


def test_info_never_reveals_the_novelty_unless_asked(make: Callable) -> None:
    hidden, shown = make(level=12), make(level=12, reveal=True)
    _, info = hidden.reset(seed=1)
    assert info == {}
    assert hidden.step(0)[4] == {}
    _, info = shown.reset(seed=1)
    assert info["novelty"]["name"] == "restitution"
    assert 1.05 <= info["novelty"]["parameters"]["restitution"] < 1.15
    assert shown.step(0)[4] == info
    info["novelty"]["level"] = 99
    info["novelty"]["parameters"].clear()
    assert shown.step(0)[4] == {"novelty": shown.unwrapped.novelty}
    assert shown.unwrapped.novelty["level"] == 12


def test_level_may_be_any_whole_number(make: Callable) -> None:
    assert make(level=np.int64(3)).reset(seed=1)[0].shape
    for wrong in (True, 3.0, "3", np.float64(3), None):
        with pytest.raises(UnknownNameError, match="unknown level"):
            make(level=wrong)


def test_draws_a_picture_without_a_screen(make: Callable) -> None:
    env = make(render_mode="rgb_array", balls=4)
    env.reset(seed=1)
    first = env.render()
    assert first.shape == (360, 480, 3)
    assert first.dtype == np.uint8
    assert len(np.unique(first.reshape(-1, 3), axis=0)) > 10
    for _ in range(5):
        env.step(1)
    assert (env.render() != first).any()


def test_looking_does_not_change_what_happens(make: Callable) -> None:
    seen, unseen = make(render_mode="rgb_array", level=14), make(level=14)
    seen.reset(seed=2)
    unseen.reset(seed=2)
    for action in (1, 2, 0, 3):
        seen.render()
        seen.unwrapped.get_state()
        np.testing.assert_array_equal(seen.step(action)[0], unseen.step(action)[0])


def test_spawning_levels_add_balls_whatever_was_played_before() -> None:
    def counts(env) -> list[int]:
        observation, _ = env.reset(seed=0)
        found, over = [int(observation[11])], False
        while not over:
            observation, _, terminated, truncated, _ = env.step(0)
            found.append(int(observation[11]))
            over = terminated or truncated
        return found

    for level, balls in ((16, 6), (16, 20), (8, 8)):
        fresh = gymnasium.make(
            "RoboEval/CartPole3D-v0", level=level, difficulty="hard", balls=balls
        )
        first = counts(fresh)
        if level == 16:
            assert first[-1] > balls
        state = {"balls": [{"position": [0.0, 0.0, 5.0], "velocity": [0.0, 0.0, 0.0]}] * 40}
        fresh.reset(options={"state": state})
        assert counts(fresh) == first
        fresh.close()


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vectorised_environments(mode) -> None:
    envs = gymnasium.make_vec(
        "RoboEval/CartPole3D-v0", num_envs=3, vectorization_mode=mode, level=7, difficulty="hard"
    )
    observations, _ = envs.reset(seed=[1, 2, 3])
    single = gymnasium.make("RoboEval/CartPole3D-v0", level=7, difficulty="hard")
    np.testing.assert_array_equal(observations[1], single.reset(seed=2)[0])
    for action in (1, 3, 0):
        observations, rewards, *_ = envs.step(np.full(3, action))
        np.testing.assert_array_equal(observations[1], single.step(action)[0])
    assert rewards.tolist() == [1 / 200] * 3
    envs.close()
