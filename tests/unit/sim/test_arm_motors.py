"""The motors of the arm: limits of speed, acceleration and force, and what is measured of them."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robo_eval.agents.registry import make_agent
from robo_eval_sim import engine
from robo_eval_sim.arm import world as of_the_arm
from robo_eval_sim.arm.layout import (
    ACCELERATION_RAD_S2,
    FASTEST_RAD_S,
    FINGER_SPEED_M_S,
    LOWER_RAD,
    SPEED_RAD_S,
    SUBSTEPS,
    UPPER_RAD,
)
from robo_eval_sim.arm.ramp import STEP_S, ramp

PICK, DRAWER = "RoboEval/PickPlace-v0", "RoboEval/Drawer-v0"
JERK_RAD_S3 = 500.0 * np.array(ACCELERATION_RAD_S2)
"""Franka's limits: so many times those of acceleration."""


class Watch:
    """What happens in every step of the engine, read independently of the environment."""

    def __init__(self, env, monkeypatch):
        self.env, self.speeds, self.forces, self.overlap_m = env, [], [], 0.0
        self.energy_j, self.felt, self.pressed, self.touched = 0.0, [], [], []
        monkeypatch.setattr(of_the_arm, "step", self._step)

    def _step(self, client):
        engine.step(client)
        world = self.env._world
        states = engine.joint_states(world.robot, world.driven, physicsClientId=client)
        self.speeds.append([one[1] for one in states])
        self.energy_j += STEP_S * sum(abs(one[1] * one[3]) for one in states)
        hand = engine.joint_states(world.robot, [world.hand], physicsClientId=client)
        self.felt.append(hand[0][2])
        pressed = dict.fromkeys(world.fingers, 0.0)
        for one in engine.contacts(physicsClientId=client):
            self.overlap_m = max(self.overlap_m, -one[8])
            if world.robot in one[1:3]:
                self.forces.append(one[9])
            if one[1] == world.robot and one[2] != world.table and one[3] in pressed:
                pressed[one[3]] += one[9]
        self.pressed.append(tuple(pressed.values()))
        self.touched.append(bool(engine.contacts(world.robot, physicsClientId=client)))


def made(env=PICK, **keywords):
    return gymnasium.make(env, **keywords).unwrapped


def play(env, act, seed):
    """The last info of an episode of somebody who acts on an observation."""
    observation, info = env.reset(seed=seed)
    is_over = False
    while not is_over:
        observation, _, terminated, truncated, info = env.step(act(observation))
        is_over = terminated or truncated
    return info


@pytest.mark.parametrize(
    ("task", "name", "keywords"),
    [
        (PICK, "pick-place", {}),
        (DRAWER, "drawer", {"motion": "open"}),
        (DRAWER, "drawer", {"motion": "close"}),
    ],
)
def test_experts_stay_within_all_limits_in_every_step(task, name, keywords, monkeypatch):
    env, agent = made(task, **keywords), make_agent(name)
    for seed in range(4):
        watch = Watch(env, monkeypatch)
        agent.reset(seed=seed)
        assert play(env, agent.act, seed)["is_success"]
        speeds = abs(np.array(watch.speeds))
        assert (speeds[:, :7].max(axis=0) <= SPEED_RAD_S).all()
        assert speeds[:, 7:].max() <= FINGER_SPEED_M_S
        changes = abs(np.diff(watch.speeds, axis=0))[:, :7] / STEP_S
        assert (changes.max(axis=0) <= ACCELERATION_RAD_S2).all()
        assert watch.overlap_m <= 0.002
        holding = [both for both in watch.pressed if min(both) > 1.0]
        assert np.median(holding, axis=0) == pytest.approx([20.0, 20.0], abs=1.0)


@pytest.mark.parametrize("mode", ["joint_position", "joint_velocity", "ee_delta"])
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 1000), hold=st.sampled_from([1, 5, 20]))
def test_no_action_drives_a_joint_faster_than_its_limit(mode, seed, hold):
    with pytest.MonkeyPatch.context() as monkeypatch:
        env = made(action_mode=mode)
        watch = Watch(env, monkeypatch)
        env.action_space.seed(seed)
        action, ticks = env.action_space.sample(), 0

        def act(_observation):
            nonlocal action, ticks
            ticks += 1
            if ticks % hold == 0:
                action = env.action_space.sample()
            return action

        play(env, act, seed)
        speeds = abs(np.array(watch.speeds))[:, :7]
        assert (speeds.max(axis=0) <= SPEED_RAD_S).all()


@pytest.mark.parametrize(
    ("mode", "most"), [("joint_position", 1.5), ("joint_velocity", 1.0), ("ee_delta", 1.0)]
)
@pytest.mark.parametrize(("seed", "hold"), [(0, 1), (0, 3), (2, 3), (1, 10)])
def test_extreme_actions_keep_the_limits_wherever_nothing_is_touched(
    mode, most, seed, hold, monkeypatch
):
    env, rng, ticks = made(action_mode=mode), np.random.default_rng(seed), 0
    watch, space = Watch(env, monkeypatch), env.action_space
    action = space.low

    def act(_observation):
        nonlocal action, ticks
        if ticks % hold == 0:
            action = np.where(rng.random(space.shape) < 0.5, space.low, space.high)
        ticks += 1
        return action

    play(env, act, seed)
    changes = abs(np.diff(watch.speeds, axis=0))[:, :7] / STEP_S
    settle = 2 * SUBSTEPS  # what a touch shakes comes to rest
    is_free = [not any(watch.touched[max(0, i - settle) : i + 3]) for i in range(len(changes))]
    assert np.mean(is_free) > 0.3
    assert (changes[is_free].max(axis=0) <= most * np.array(ACCELERATION_RAD_S2)).all()
    assert (abs(np.array(watch.speeds))[:, :7].max(axis=0) <= SPEED_RAD_S).all()


@pytest.mark.parametrize("way", [1, -1])
def test_all_joints_get_going_at_once(way):
    env = made(action_mode="joint_velocity")
    observation, _ = env.reset(seed=0)
    for _ in range(8):
        observation, *_ = env.step(np.float32([*[2.1 * way] * 7, 0.08]))
    assert (observation[7:14] * way > 0.4).all()


def test_torques_that_are_foreseen_do_not_depend_on_the_first_load():
    env, still, found = made(), [0.0] * 9, []
    env.reset(seed=0)
    for payload in (0.0, 6.0):
        world = env.world_class()
        world.prepare(replace(env._setting, payload_kg=payload))
        at, client = list(env._row[:9]), world.client
        found.append(engine.torques_of(world.robot, at, still, still, physicsClientId=client))
        world.close()
    assert found[0] == found[1]


def anywhere(rng):
    """Positions of 7 joints and 2 fingers."""
    return rng.uniform([*LOWER_RAD, 0.0, 0.0], [*UPPER_RAD, 0.04, 0.04])


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), changes=st.integers(0, 3), substeps=st.sampled_from([5, 12]))
def test_a_ramp_keeps_limits_and_ends_at_its_target(seed, changes, substeps):
    rng = np.random.default_rng(seed)
    at, speed, accelerations, speeds, places = anywhere(rng), np.zeros(9), [np.zeros(7)], [], []
    for change in range(changes + 1):
        target = anywhere(rng)
        for _ in range(rng.integers(1, 12) if change < changes else 1500 // substeps):
            for row in ramp((target, None), at, speed, substeps):
                accelerations.append((np.array(row)[:7] - speed[:7]) / STEP_S)
                speed = np.array(row)
                at = at + speed * STEP_S
                speeds.append(speed)
                places.append(at)
    assert (abs(np.array(accelerations)) <= ACCELERATION_RAD_S2).all()
    assert (abs(np.diff(accelerations, axis=0)) / STEP_S <= JERK_RAD_S3).all()
    assert abs(np.array(speeds)[:, :7]).max() <= FASTEST_RAD_S + 1e-12
    assert abs(np.array(speeds)[:, 7:]).max() <= FINGER_SPEED_M_S
    assert (np.array(places)[:, :7] >= np.array(LOWER_RAD) - 1e-9).all()
    assert (np.array(places)[:, :7] <= np.array(UPPER_RAD) + 1e-9).all()
    assert at == pytest.approx(target, abs=1e-6)
    assert speed == pytest.approx(np.zeros(9), abs=1e-6)


def test_joints_set_out_together():
    rng = np.random.default_rng(0)
    for _ in range(20):
        start, target, speed = anywhere(rng), anywhere(rng), np.zeros(9)
        at = start
        for _ in range(3):
            for row in ramp((target, None), at, speed, SUBSTEPS):
                speed = np.array(row)
                at = at + speed * STEP_S
        done = ((at - start) / (target - start))[:7]
        assert done == pytest.approx(np.full(7, done[0]))


@pytest.mark.parametrize(
    ("env", "name"), [(PICK, "pick-place"), (DRAWER, "drawer"), (PICK, "arm-random")]
)
@pytest.mark.parametrize("novelty", [None, {"delay": 0.03}])
def test_energy_and_greatest_force_count_every_step(env, name, novelty, monkeypatch):
    one, agent = made(env, novelty=novelty), make_agent(name)
    watch = Watch(one, monkeypatch)
    agent.reset(seed=2)
    play(one, agent.act, 2)
    found = one.measures()
    assert found["energy_J"] == pytest.approx(watch.energy_j)
    assert found["contact_force_peak_N"] == max(watch.forces, default=0.0)


def test_a_wrench_is_the_mean_over_its_tick(monkeypatch):
    env, agent = made(obs_mode="state+wrench"), make_agent("pick-place")
    watch = Watch(env, monkeypatch)
    observation, _ = env.reset(seed=1)
    assert observation[-6:].tolist() == [0.0] * 6
    for _ in range(30):
        observation, *_ = env.step(agent.act(observation))
        mean = np.mean(watch.felt[-SUBSTEPS:], axis=0)
        assert observation[-6:] == pytest.approx(mean, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("height_m", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("restitution", [0.1, 0.3, 0.5, 0.8, 1.0])
def test_a_cube_bounces_as_much_as_it_says(restitution, height_m):
    env = made(novelty={"restitution": restitution})
    env.reset(seed=3)
    world = env._world
    fallen = (0.5, 0.1, 0.02 + height_m, *engine.UPRIGHT, *[0.0] * 6)
    of_the_arm.free_body(world, world.object, fallen)
    speeds = []
    while len(speeds) < 2 or speeds[-1] < speeds[-2] + 0.05:
        engine.step(world.client)
        speeds.append(engine.velocity_of(world.object, physicsClientId=world.client)[0][2])
    for _ in range(3):
        engine.step(world.client)
        speeds.append(engine.velocity_of(world.object, physicsClientId=world.client)[0][2])
    kept = max(speeds[-4:]) / -min(speeds)
    assert kept == pytest.approx(restitution, abs=0.03)
    assert kept <= 1.0


@pytest.mark.parametrize("shape", [1, 2])
def test_a_shape_lies_still_by_itself_and_can_be_placed(shape):
    env, still = made(novelty={"object_shape": shape}), make_agent("arm-still")
    observation, _ = env.reset(seed=0)
    start = observation[22:29]
    for _ in range(60):
        observation, *_ = env.step(still.act(observation))
    assert observation[22:29] == pytest.approx(start, abs=0.002)
    expert = make_agent("pick-place")
    for seed in range(3):
        expert.reset(seed=seed)
        assert play(env, expert.act, seed)["is_success"]


def test_measured_fields_go_on_with_the_speed_they_have():
    env, agent = made(), make_agent("pick-place")
    observation, _ = env.reset(seed=4)
    for _ in range(6):
        observation, *_ = env.step(agent.act(observation))
    there = made()
    there.reset(options={"state": env.physical_state()})
    action = agent.act(observation)
    here, other = env.step(action)[0], there.step(action)[0]
    assert np.abs(observation[7:14]).max() > 0.3
    assert other[:22] == pytest.approx(here[:22], abs=1e-4)
