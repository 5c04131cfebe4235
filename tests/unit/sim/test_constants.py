"""What calibration found can be played with: constants of an environment."""

from __future__ import annotations

import importlib
import json
import math
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
import pytest

from robo_eval.core.errors import InputError, ShapeError, UnknownNameError
from robo_eval.core.task import tasks
from robo_eval_sim.tasks.cartpole3d.layout import PUSHES, TICK_S

CARTPOLE, ARMS = "RoboEval/CartPole3D-v0", ("RoboEval/PickPlace-v0", "RoboEval/Drawer-v0")
FOUND: Mapping[str, float] = {
    "cart_mass_kg": 1.3,
    "pole_com_height_m": 0.95,
    "slide_friction_n_s_m": 0.6,
    "push_gain": 0.9,
    "delay_s": 1.4 * TICK_S,
}
NOISE: Mapping[str, float] = {
    "position_noise_m": 5e-4,
    "velocity_noise_m_s": 0.01,
    "tilt_noise_rad": 2e-3,
    "tilt_rate_noise_rad_s": 0.02,
    "force_noise_n": 0.3,
    "force_memory_s": 0.4,
}
ACTIONS = [1, 1, 2, 3, 0, 4, 2, 1, 3, 4, 0, 2]


def played(env: gymnasium.Env, seed: int = 5) -> list[Any]:
    """Start and the states after some actions."""
    env.reset(seed=seed)
    states = [env.unwrapped.physical_state()]
    for action in ACTIONS:
        env.step(action)
        states.append(env.unwrapped.physical_state())
    return states


# What tasks declare ------------------------------------------------------------------------------


@pytest.mark.parametrize("env", [CARTPOLE, *ARMS])
def test_each_constant_is_one_of_the_physics_and_usual_inside_its_bounds(env: str) -> None:
    spec = tasks()[env]
    module, _, name = spec.environment.partition(":")
    made = getattr(importlib.import_module(module), name)()
    assert spec.constants
    for one in spec.constants:
        assert getattr(made._usual, one.name) == one.nominal
        assert one.low <= one.nominal < one.high
        assert one.low < one.nominal or one.low == 0.0
        assert one.wanted > 0.0
        assert one.is_log == (one.low > 0.0)
    names = {one.name for one in spec.constants}
    assert {one.noise for one in spec.channels} <= names | {""}
    assert len({one.name for one in spec.channels}) == len(spec.channels) == 8
    assert spec.replay == ("steps" if env == CARTPOLE else "whole")
    made.close()


@pytest.mark.parametrize("env", ARMS)
def test_constants_of_the_arm_are_those_of_its_axes(env: str) -> None:
    spec = tasks()[env]
    axes = {level.parameter: level for level in spec.levels().values() if level.number}  # type: ignore[attr-defined]
    for one in spec.constants:
        axis = axes[one.name]
        assert (one.unit, one.nominal, one.high) == (axis.unit, axis.usual, axis.span[1])
    stages = {one.name: one.stage for one in spec.constants}
    assert (stages["gain"], stages["delay_s"]) == ("free", "free")
    assert (stages["object_mass_kg"], stages["friction"]) == ("held", "sliding")


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", [CARTPOLE, *ARMS])
def test_an_unknown_constant_is_refused_with_the_nearest_one(env: str) -> None:
    with pytest.raises(UnknownNameError, match=r"constant of \w+ 'dellay_s'; did you mean 'delay"):
        gymnasium.make(env, constants={"dellay_s": 0.1})


@pytest.mark.parametrize("value", [0.0, 11, math.nan, math.inf, "1", True, None, [1.0]])
def test_a_value_that_cannot_be_is_refused_with_bounds_and_unit(make: Callable, value: Any) -> None:
    with pytest.raises(InputError, match=r"constants\.cart_mass_kg: a number from 0\.1 to 10 kg"):
        make(constants={"cart_mass_kg": value})


@pytest.mark.parametrize("given", [[], "cart_mass_kg", 1.0])
def test_what_is_no_mapping_is_refused(make: Callable, given: Any) -> None:
    with pytest.raises(InputError, match="constants: a mapping"):
        make(constants=given)


def test_a_task_that_declares_none_takes_none() -> None:
    spec = tasks()["RoboEval/CartPoleVaried-v0"]
    with pytest.raises(UnknownNameError, match="constant of"):
        spec.checked({"cart_mass_kg": 1.0})
    assert spec.checked(None) == spec.checked({}) == {}


# What wins ---------------------------------------------------------------------------------------


def test_a_constant_wins_over_nominal_and_a_level_over_a_constant(make: Callable) -> None:
    found = {"cart_mass_kg": 1.3, "pole_com_height_m": 0.95}
    assert played(make(constants=found)) != played(make())
    one = make(constants=found, level=1).unwrapped  # cart mass 5 kg
    one.reset(seed=1)
    assert one._world.physics.cart_mass_kg == 5.0
    assert one._world.physics.pole_com_height_m == 0.95


def test_what_a_novelty_does_not_change_stays_before_and_after_its_onset(make: Callable) -> None:
    env = make(balls=0, constants=FOUND, novelty={"cart_mass": 3.0}, onset=4).unwrapped
    env.reset(seed=1)
    masses = []
    for _ in range(6):
        env.step(0)
        physics = env._world.physics
        masses.append(physics.cart_mass_kg)
        assert physics.slide_friction_n_s_m == 0.6
    assert masses == [1.3] * 3 + [3.0] * 3


@pytest.mark.parametrize("env", ARMS)
def test_a_level_of_the_arm_wins_over_its_constants(env: str) -> None:
    one: Any = gymnasium.make(env, constants={"gain": 0.9, "payload_kg": 0.5}, level=10).unwrapped
    one.reset(seed=1)
    assert one._setting.gain == 0.9
    assert one._setting.payload_kg > 5.0
    one.close()


@pytest.mark.parametrize("name", ["cart_mass_kg", "slide_friction_n_s_m", "delay_s", "push_gain"])
def test_nominal_values_change_nothing(make: Callable, name: str) -> None:
    nominal = {one.name: one.nominal for one in tasks()[CARTPOLE].constants}
    assert played(make(constants={name: nominal[name]})) == played(make())


def test_a_level_that_draws_plays_the_same_with_noise(make: Callable) -> None:
    """What a level draws does not shift."""
    one, other = make(level=14), make(level=14, constants=NOISE)
    one.reset(seed=3)
    other.reset(seed=3)
    assert one.unwrapped.novelty == other.unwrapped.novelty


# Late pushes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ticks", [0.5, 1.0, 1.4, 3.0, 3.25])
def test_a_delay_holds_back_and_blends_pushes(make: Callable, ticks: float) -> None:
    late = make(balls=0, constants={"delay_s": ticks * TICK_S, "cart_mass_kg": 1.3})
    there = make(balls=0, constants={"cart_mass_kg": 1.3}).unwrapped
    states = played(late)
    there.reset(seed=5)
    told = [(0.0, 0.0)] * 5 + [PUSHES[action] for action in ACTIONS]
    whole, part = int(ticks), ticks - int(ticks)
    for tick, state in enumerate(states[1:]):
        one, before = np.array(told[tick + 5 - whole]), np.array(told[tick + 4 - whole])
        there.advance(tuple((1.0 - part) * one + part * before))
        for name, value in there.physical_state().items():
            np.testing.assert_allclose(value, state[name], atol=1e-9)


def test_advance_delays_nothing(make: Callable) -> None:
    late, prompt = make(balls=0, constants={"delay_s": 0.06}), make(balls=0)
    for env in (late, prompt):
        env.reset(seed=2)
        env.unwrapped.advance((3.0, -4.0))
    assert late.unwrapped.physical_state() == prompt.unwrapped.physical_state()


def test_gain_and_friction_act_in_step_and_advance(make: Callable) -> None:
    env = make(balls=0, constants={"push_gain": 0.5, "slide_friction_n_s_m": 2.0}).unwrapped
    bare = make(balls=0).unwrapped
    for act in (lambda: env.step(1), lambda: env.advance((10.0, 0.0))):
        state = {"cart_velocity": [0.4, -0.3]}
        env.reset(options={"state": state})
        bare.reset(options={"state": state})
        act()
        bare.advance((0.5 * 10.0 - 2.0 * 0.4, 2.0 * 0.3))
        assert env.physical_state() == bare.physical_state()


# Noise -------------------------------------------------------------------------------------------


def test_noise_is_in_what_is_seen_and_not_in_the_state(make: Callable) -> None:
    sensors = {name: value for name, value in NOISE.items() if not name.startswith("force")}
    assert played(make(constants=sensors)) == played(make())
    env, exact = make(balls=0, constants=sensors), make(balls=0)
    errors = []
    for seed in range(40):
        errors.append((env.reset(seed=seed)[0] - exact.reset(seed=seed)[0])[:11])
        errors += [(env.step(0)[0] - exact.step(0)[0])[:11] for _ in range(10)]
    sd = np.std(errors, axis=0)
    np.testing.assert_allclose(sd[:2], 5e-4, rtol=0.15)
    np.testing.assert_allclose(sd[2:4], 0.01, rtol=0.15)
    np.testing.assert_allclose(2.0 * sd[4:6], 2e-3, rtol=0.15)  # half angles
    np.testing.assert_allclose(sd[8:10], 0.02, rtol=0.15)
    assert abs(np.mean(errors, axis=0)[:10]).max() < 4e-3


def test_the_hidden_force_has_its_size_and_memory(make: Callable) -> None:
    from robo_eval_sim.tasks.cartpole3d.hindrance import Hindrance
    from robo_eval_sim.tasks.cartpole3d.physics import Physics

    pushes: list[Any] = []

    class Watched:
        def resist(self) -> None: ...

        def push_cart(self, force: Any) -> None:
            pushes.append(force[:2])

    world: Any = Watched()
    for seed in range(60):
        force = Hindrance(
            None,  # type: ignore[arg-type]
            world,
            Physics(force_noise_n=0.3, force_memory_s=0.1),
            seed,
            None,
        )
        for tick in range(200):
            force.push(tick)
    felt = np.array(pushes).reshape(60, 200, 2)
    np.testing.assert_allclose(np.sqrt((felt**2).mean((0, 1))), 0.3, rtol=0.06)
    np.testing.assert_allclose(np.sqrt((felt[:, 0] ** 2).mean()), 0.3, rtol=0.2)  # from the start
    kept = (felt[:, 5:] * felt[:, :-5]).mean() / (felt**2).mean()
    assert kept == pytest.approx(math.exp(-1.0), abs=0.06)
    assert abs((felt[..., 0] * felt[..., 1]).mean()) < 0.02


def test_the_same_seed_is_the_same_episode_and_starts_do_not_shift(make: Callable) -> None:
    one, other, bare = (make(constants=NOISE), make(constants=NOISE), make())
    assert played(one) == played(other)
    np.testing.assert_array_equal(one.reset(seed=7)[0], other.reset(seed=7)[0])
    for env in (one, bare):
        env.reset(seed=9)
        env.reset()
    origins = [env.unwrapped.get_state()["history"]["start"] for env in (one, bare)]
    assert origins[0] == origins[1]
    assert played(one, 5) != played(one, 6)


@pytest.mark.parametrize("constants", [FOUND, {**FOUND, **NOISE}])
@pytest.mark.parametrize("level", [0, 14])
def test_a_restored_state_goes_on_bit_for_bit(
    make: Callable, constants: dict[str, float], level: int
) -> None:
    env, other = (make(constants=constants, level=level) for _ in range(2))
    env.reset(seed=3)
    env.reset()
    for action in ACTIONS[:4]:
        seen = env.step(action)[0]
    saved = json.loads(json.dumps(env.unwrapped.get_state()))
    other.reset(seed=99)
    np.testing.assert_array_equal(other.reset(options={"state": saved})[0], seen)
    for action in ACTIONS[4:7]:
        for mine, its in zip(env.step(action), other.step(action), strict=True):
            np.testing.assert_array_equal(mine, its)
    assert env.unwrapped.get_state() == other.unwrapped.get_state()


def test_a_seed_of_noise_that_cannot_be_is_refused(make: Callable) -> None:
    env = make(constants=NOISE)
    env.reset(seed=3)
    state = env.unwrapped.get_state()
    state["history"]["noise_seed"] = -1
    with pytest.raises(InputError, match=r"state\.history\.noise_seed: a whole number from 0"):
        env.reset(options={"state": state})


def test_a_state_without_noise_says_nothing_of_it(make: Callable) -> None:
    env = make(constants=FOUND)
    env.reset(seed=3)
    assert "noise_seed" not in env.unwrapped.get_state()["history"]


# One tick from each state ------------------------------------------------------------------------


def upright(rng: np.random.Generator, count: int) -> np.ndarray:
    """Some states of a pole that has not fallen."""
    size = [2.0, 2.0, 1.0, 1.0, 0.12, 0.12, 0.5, 0.5]
    return rng.uniform(-1.0, 1.0, (count, 8)) * size


@pytest.mark.parametrize("constants", [{}, FOUND, {**FOUND, "pole_mass_kg": 0.2}])
def test_a_prediction_is_what_advance_makes_of_the_state(
    make: Callable, constants: dict[str, float]
) -> None:
    from robo_eval_sim.tasks.cartpole3d.steps import _rows_of

    env = make(balls=0, constants=constants).unwrapped
    rng = np.random.default_rng(1)
    states, forces = upright(rng, 30), rng.uniform(-10.0, 10.0, (30, 2))
    states[3] = 0.0  # at rest, after one that moves
    states[7, 2:4] = 0.0
    made = []
    for row, force in zip(_rows_of(states), forces, strict=True):
        state = {
            "cart_position": row[:2],
            "cart_velocity": row[2:4],
            "pole_quat_xyzw": row[4:8],
            "pole_angular_velocity": row[8:11],
        }
        env.reset(options={"state": state})
        made.append(env.advance(tuple(force)))
    found = env.predict(states, forces, constants)
    np.testing.assert_array_equal(found, env.channels(np.array(made)))


def test_channels_and_rows_are_each_other_s_inverse(make: Callable) -> None:
    from robo_eval_sim.tasks.cartpole3d.steps import _rows_of

    states = upright(np.random.default_rng(2), 20)
    np.testing.assert_allclose(make().unwrapped.channels(_rows_of(states)), states, atol=1e-12)


def test_a_state_that_is_not_known_predicts_nothing_and_spoils_no_other(make: Callable) -> None:
    env = make().unwrapped
    rng = np.random.default_rng(3)
    states, forces = upright(rng, 5), np.zeros((5, 2))
    clean = env.predict(states, forces, {})
    states[1, 4], forces[3, 0] = np.nan, np.inf
    found = env.predict(states, forces, {})
    assert np.isnan(found[[1, 3]]).all()
    np.testing.assert_array_equal(found[[0, 2, 4]], clean[[0, 2, 4]])


def test_a_prediction_disturbs_no_episode(make: Callable) -> None:
    env, alone = make(constants=FOUND), make(constants=FOUND)
    for one in (env, alone):
        one.reset(seed=4)
        one.step(1)
    env.unwrapped.predict(np.zeros((2, 8)), np.ones((2, 2)), {"cart_mass_kg": 2.0})
    np.testing.assert_array_equal(env.step(2)[0], alone.step(2)[0])


def test_a_prediction_of_what_does_not_fit_is_refused(make: Callable) -> None:
    env = make().unwrapped
    with pytest.raises(UnknownNameError, match="did you mean 'cart_mass_kg'"):
        env.predict(np.zeros((1, 8)), np.zeros((1, 2)), {"cart_mas_kg": 1.0})
    with pytest.raises(ShapeError, match=r"states: shape \(T, 8\)"):
        env.predict(np.zeros((1, 7)), np.zeros((1, 2)), {})
    with pytest.raises(ShapeError, match="forces: 2 rows"):
        env.predict(np.zeros((2, 8)), np.zeros((1, 2)), {})


# As an environment -------------------------------------------------------------------------------


@pytest.mark.parametrize("env", [CARTPOLE, ARMS[0]])
def test_constants_survive_pickling_and_vector_environments(env: str) -> None:
    constants = {"delay_s": 0.05}
    one: Any = gymnasium.make(env, constants=constants)
    other = pickle.loads(pickle.dumps(one.unwrapped))
    assert other._usual == one.unwrapped._usual
    assert other._usual.delay_s == 0.05
    many = gymnasium.make_vec(env, num_envs=2, vectorization_mode="sync", constants=constants)
    seen, _ = many.reset(seed=[1, 2])
    np.testing.assert_array_equal(seen[1], one.reset(seed=2)[0])
    many.close()
    one.close()
    other.close()


def test_a_calibrated_level_is_the_same_level(make: Callable) -> None:
    env, found = make(balls=0).unwrapped, make(balls=0, constants=FOUND).unwrapped
    assert found.digest == env.digest
    assert found.behaviour == env.behaviour
    assert found.novelty == env.novelty


# The arm -----------------------------------------------------------------------------------------


def still(env: Any, ticks: int) -> list[Any]:
    """What is seen while the joints move a little."""
    seen = []
    for tick in range(ticks):
        asked = [*np.array(env._row[:7]) + 0.02 * (-1) ** tick, 0.08]
        seen.append(env.step(np.clip(asked, env._low, env._high))[0])
    return seen


def test_noise_of_the_arm_differs_by_seed_and_is_restored() -> None:
    constants = {"joint_noise_rad": 5e-4, "object_noise_m": 1e-3, "gain": 0.9}
    env, other, exact = (
        gymnasium.make(ARMS[0], constants=given).unwrapped
        for given in (constants, constants, {"gain": 0.9})
    )
    noises = [(env.reset(seed=seed)[0] - exact.reset(seed=seed)[0])[:7] for seed in (1, 2)]
    assert abs(noises[0]).max() > 1e-5
    assert abs(noises[0] - noises[1]).max() > 1e-5
    env.reset(seed=1)
    still(env, 3)
    state = json.loads(json.dumps(env.get_state()))
    other.reset(seed=8)
    other.reset(options={"state": state})
    for mine, its in zip(still(env, 3), still(other, 3), strict=True):
        np.testing.assert_array_equal(mine, its)
    state["history"]["start"]["noise_seed"] = "1"
    with pytest.raises(InputError, match=r"noise_seed: a whole number"):
        other.reset(options={"state": state})
    for one in (env, other, exact):
        one.close()


def test_traces_of_the_arm_tell_what_its_motors_applied(tmp_path: Any) -> None:
    from dataclasses import replace

    from robo_eval.log.trace import read_trace, write_trace

    env: Any = gymnasium.make(ARMS[0]).unwrapped
    env.records_motion = True
    seen = [env.reset(seed=1)[0], *still(env, 3)]
    moved = env.trajectory(np.array(seen), np.zeros((3, 8)), np.zeros(3))
    assert (moved.joint_effort[0] == 0.0).all()
    assert (moved.joint_effort[1:, 1] != 0.0).all()  # the shoulder
    write_trace(tmp_path / "a.mcap", moved)
    back = read_trace(tmp_path / "a.mcap")
    np.testing.assert_array_equal(back.joint_effort, moved.joint_effort)
    assert env.channels(back.observations).shape == (4, 8)
    write_trace(tmp_path / "b.mcap", replace(moved, joint_effort=None))  # as earlier ones
    assert read_trace(tmp_path / "b.mcap").joint_effort is None
    with pytest.raises(ShapeError, match="joint_effort has shape"):
        write_trace(tmp_path / "c.mcap", replace(moved, joint_effort=np.zeros((4, 2))))
    env.close()


@pytest.mark.parametrize("env", ARMS)
def test_commands_of_the_arm_are_played_again_with_other_constants(env: str) -> None:
    constants = {"gain": 0.9, "delay_s": 0.03, "payload_kg": 0.3}
    other: Any = gymnasium.make(env, obs_mode="state+wrench", constants=constants).unwrapped
    nominal: Any = gymnasium.make(env).unwrapped
    seen = [other.reset(seed=3)[0]]
    start = other.physical_state()
    seen += still(other, 4)
    commands = np.array(other.get_state()["history"]["actions"])
    told = nominal.replayed(start, commands, constants)
    np.testing.assert_allclose(told["states"], other.channels(np.array(seen)), atol=1e-6)
    np.testing.assert_allclose(told["wrench"], np.array(seen)[:, -6:], rtol=1e-5, atol=1e-4)
    assert (told["efforts"].shape, told["things"].shape) == ((4, 9), (5, 1, 7))
    # They hold for this replay alone.
    usual = nominal.replayed(start, commands, {})
    assert abs(usual["wrench"] - told["wrench"]).max() > 1.0
    with pytest.raises(InputError, match=r"constants\.gain: a number from"):
        nominal.replayed(start, commands, {"gain": 7.0})
    other.close()
    nominal.close()
