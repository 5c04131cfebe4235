"""The arm: what it does, what it refuses, what its novelty changes."""

import json
import math

import gymnasium
import numpy as np
import pytest

from robo_eval.agents.registry import make_agent
from robo_eval.core.errors import InputError
from robo_eval.core.task import tasks
from robo_eval.stats.proportions import wilson_interval
from robo_eval_sim.arm.layout import JOINT_POSITION, SPEED_RAD_S, TIP_POSITION
from robo_eval_sim.arm.levels.axis import Axis
from robo_eval_sim.arm.setting import NOMINAL
from robo_eval_sim.engine import places_seen
from robo_eval_sim.novelty import levels_in

PICK, DRAWER = "RoboEval/PickPlace-v0", "RoboEval/Drawer-v0"
LEVELS = levels_in("robo_eval_sim.arm.levels", PICK).values()
AXES = [one for one in LEVELS if isinstance(one, Axis)]


def made(env=PICK, **keywords):
    return gymnasium.make(env, **keywords).unwrapped


def played(env, agent, seed, ticks=10_000):
    """Observations, return and the last info of an episode."""
    observation, info = env.reset(seed=seed)
    agent.reset(seed=seed)
    seen, earned, is_over = [observation], 0.0, False
    while not is_over and len(seen) <= ticks:
        observation, reward, terminated, truncated, info = env.step(agent.act(observation))
        seen.append(observation)
        earned += reward
        is_over = terminated or truncated
    return np.array(seen), earned, info


@pytest.fixture
def env():
    one = made()
    yield one
    one.close()


def test_the_expert_places_and_who_stays_or_flails_does_not(env):
    for seed in range(12):
        _, earned, info = played(env, make_agent("pick-place"), seed)
        assert info == {"is_success": True, "stage": 5}
        assert earned == pytest.approx(1.0)
    for name in ("arm-still", "arm-random"):
        _, earned, info = played(env, make_agent(name), 3)
        assert not info["is_success"]
        assert earned < 0.6


@pytest.mark.parametrize("motion", ["open", "close"])
def test_the_drawer_is_opened_and_closed_by_its_expert_alone(motion):
    env = made(DRAWER, motion=motion)
    for seed in range(8):
        seen, earned, info = played(env, make_agent("drawer"), seed)
        assert info == {"is_success": True, "stage": 4}
        assert earned == pytest.approx(1.0)
        assert seen[-1][26] == pytest.approx(seen[-1][28], abs=0.0101)
        assert (seen[0][26] > 0.1) == (motion == "close")
    for name in ("arm-still", "arm-random"):
        _, earned, info = played(env, make_agent(name), 3)
        assert not info["is_success"]
        assert earned < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("recovers", [True, False])
@pytest.mark.parametrize(
    ("task", "name", "keywords"),
    [
        (PICK, "pick-place", {}),
        (DRAWER, "drawer", {"motion": "open"}),
        (DRAWER, "drawer", {"motion": "close"}),
    ],
)
def test_the_experts_nearly_always_succeed(task, name, keywords, recovers):
    env, agent = made(task, **keywords), make_agent(name, recovers=recovers)
    done = sum(played(env, agent, seed)[2]["is_success"] for seed in range(200))
    assert done >= 190
    assert wilson_interval(done, 200)[0] >= 0.90


@pytest.mark.slow
@pytest.mark.parametrize("task", [PICK, DRAWER])
def test_random_targets_hardly_ever_succeed(task):
    env, agent = made(task), make_agent("arm-random")
    assert sum(played(env, agent, seed)[2]["is_success"] for seed in range(100)) < 5


def test_the_expert_begins_again_when_the_object_was_taken_away(env):
    agent = make_agent("pick-place")
    observation, _ = env.reset(seed=5)
    agent.reset()
    while observation[24] < 0.05:  # until it is lifted
        observation, *_ = env.step(agent.act(observation))
    state = env.physical_state()
    state |= {"object_position": [0.45, -0.1, 0.02], "object_velocity": [0.0] * 3}
    state |= {"object_angular_velocity": [0.0] * 3, "object_quat_xyzw": [0.0, 0.0, 0.0, 1.0]}
    observation, _ = env.reset(options={"state": state})
    is_over, info = False, {}
    while not is_over:
        observation, _, terminated, truncated, info = env.step(agent.act(observation))
        is_over = terminated or truncated
    assert info["is_success"]


@pytest.mark.parametrize("mode", ["joint_velocity", "ee_delta"])
def test_other_modes_move_what_they_say(mode):
    env = made(action_mode=mode)
    observation, _ = env.reset(seed=1)
    action = np.zeros(env.action_space.shape, np.float32)
    action[0] = 0.2 if mode == "joint_velocity" else 0.01
    before = observation
    for _ in range(5):
        observation, *_ = env.step(action)
    action[0] = 0.0  # it gets up to speed and stops within its limits, and all the way is done
    for _ in range(2):
        observation, *_ = env.step(action)
    if mode == "joint_velocity":
        turned = observation[JOINT_POSITION][0] - before[JOINT_POSITION][0]
        assert turned == pytest.approx(5 * 0.05 * 0.2, rel=0.1)
    else:
        moved = observation[TIP_POSITION] - before[TIP_POSITION]
        assert moved == pytest.approx([0.05, 0.0, 0.0], abs=0.006)


def test_pictures_are_pictures_and_the_wrench_feels_the_hand():
    env = made(obs_mode="rgbd")
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    assert observation["image"].std() > 10
    assert 0.3 < observation["depth"].min() < 2.0
    dark = made(obs_mode="rgbd", novelty={"light": 0.3})
    darker, _ = dark.reset(seed=1)
    assert darker["image"].mean() < observation["image"].mean() - 10
    squares = made(obs_mode="rgbd", novelty={"texture": 0.5})
    textured, _ = squares.reset(seed=1)
    changed = (textured["image"] != observation["image"]).any(axis=2)
    x, _, z = np.moveaxis(
        places_seen(textured["depth"], (1.2, 0.0, 0.75), (0.4, 0.0, 0.05), (0.0, 0.0, 1.0)), -1, 0
    )
    is_top = (abs(z) < 1e-3) & (x > 0.01) & (x < 0.79)
    assert (~changed[~is_top & (x < 0.7)]).all()
    assert 0.4 < changed[is_top].mean() < 0.6
    felt = made(obs_mode="state+wrench")
    observation, _ = felt.reset(seed=1)
    still = make_agent("arm-still")
    for _ in range(10):
        observation, *_ = felt.step(still.act(observation))
    weight = np.linalg.norm(observation[-6:-3])
    assert 5.0 < weight < 15.0  # 0.81 kg of hand and two fingers of 0.1 kg


def test_a_state_goes_on_bit_for_bit_with_the_object_in_the_hand(env):
    agent = make_agent("pick-place")
    observation, _ = env.reset(seed=8)
    agent.reset()
    while env._deepest < 3:
        observation, *_ = env.step(agent.act(observation))
    state = json.loads(json.dumps(env.get_state()))
    actions = [env.action_space.sample() for _ in range(8)]
    here = [env.step(action)[0].tobytes() for action in actions]
    other = made()
    restored, info = other.reset(options={"state": state})
    assert restored.tobytes() == observation.tobytes()
    assert info["start_error"] == {"rad": 0.0, "m": 0.0}
    assert [other.step(action)[0].tobytes() for action in actions] == here
    changed = state | {"object_position": [0.5, 0.0, 0.02]}
    with pytest.raises(InputError, match=r"state.object_position: differs from"):
        other.reset(options={"state": changed})


def test_an_episode_that_is_over_is_so_when_it_is_restored(env):
    played(env, make_agent("pick-place"), 3)
    state = env.get_state()
    other = made()
    other.records_motion = True
    observation, _ = other.reset(options={"state": state})
    assert observation.tobytes() == env._observe().tobytes()
    assert other._rows == [(other._row, other._tip)]
    with pytest.raises(InputError, match="the episode is over"):
        other.step(np.append(observation[:7], 0.04))


def test_measured_fields_are_a_start_and_its_error_is_said(env):
    state = {
        "joint_position": [0.0, -0.7, 0.0, -2.3, 0.0, 1.6, 0.8],
        "object_position": [0.5, 0.1, 0.02],
        "goal_position": [0.45, -0.1],
    }
    observation, info = env.reset(options={"state": state})
    assert observation[:7] == pytest.approx(state["joint_position"])
    assert info["start_error"]["rad"] == pytest.approx(0.0, abs=1e-12)
    assert info["start_error"]["m"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"joint_position": [0.0, -40.0, 0.0, -130.0, 0.0, 90.0, 45.0]}, "is it in degrees"),
        ({"joint_position": [0.0] * 6}, "a list of 7 finite numbers"),
        ({"joint_position": [math.nan] * 7}, "a list of 7 finite numbers"),
        ({"object_position": [500.0, 0.0, 20.0]}, "is it in millimetres"),
        ({"goal_position": [1.4, 0.0]}, "goal_position: must be 0.2 to 0.8 m"),
        ({"object_position": [0.5, 0.0, -0.05]}, "the object overlaps the table"),
        ({"object_position": [0.05, 0.0, 0.02]}, "the arm reaches it and does not stand"),
        ({"object_quat_xyzw": [0.0, 0.0, 0.0, 2.0]}, "quaternion of length 1"),
        ({"gripper_width": [40.0]}, "is it in millimetres"),
        ({"tick": 500}, "state.tick"),
        ({"tick": True}, "state.tick"),
        ({"history": {"actions": []}}, "state.novelty: is missing"),
    ],
)
def test_a_state_that_cannot_be_is_refused(env, change, said):
    env.reset(seed=0)
    with pytest.raises(InputError, match=said):
        env.reset(options={"state": env.physical_state() | change})
    env.reset(seed=0)
    env.step(np.array([*env.physical_state()["joint_position"], 0.04], np.float32))


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (np.zeros(7), "8 numbers are needed"),
        (np.full(8, np.nan), "given nan"),
        ([0.0, -45.0, 0.0, -135.0, 0.0, 90.0, 45.0, 0.04], "is it in degrees"),
        ([0.0, -0.7, 0.0, -2.3, 0.0, 1.6, 0.8, 0.09], "0 to 0.08 m is possible, given 0.09"),
        ([0.0, -0.7, 0.0, -2.3, 0.0, 1.6, 0.8, 8.0], "is it in millimetres"),
        ("open", "numbers are needed"),
        (None, "numbers are needed|finite|given nan"),
    ],
)
def test_an_action_that_cannot_be_is_refused_and_a_reset_heals(env, action, said):
    env.reset(seed=0)
    with pytest.raises(InputError, match=said):
        env.step(action)
    first, _ = env.reset(seed=0)
    again, _ = env.reset(seed=0)
    assert first.tobytes() == again.tobytes()


@pytest.mark.parametrize("axis", AXES, ids=lambda one: one.name)
def test_every_axis_states_its_range_and_changes_one_constant(axis):
    low, high = axis.span
    known = {level.name for level in tasks()[PICK].levels().values()}
    task = PICK if axis.name in known else DRAWER
    assert 0.0 < low < high
    assert getattr(NOMINAL, axis.parameter) == axis.usual
    for magnitude in (low * 0.9, high * 1.1):
        with pytest.raises(InputError, match=rf"novelty.{axis.name}: a (whole )?number from"):
            made(task, novelty={axis.name: magnitude})
    env = made(task, novelty={axis.name: high})
    env.reset(seed=3)
    assert getattr(env._setting, axis.parameter) == high
    assert env.novelty["parameters"][axis.name][axis.parameter] == high


@pytest.mark.parametrize("task", [PICK, DRAWER])
def test_presets_are_in_the_range_and_do_not_weaken(task):
    for level in tasks()[task].levels().values():
        if isinstance(level, Axis):
            found = [table[level.parameter].value for table in level.tables["paper"].values()]
            assert all(level.span[0] <= value <= level.span[1] for value in found), level.name
            assert found == sorted(found, reverse=level.falls), level.name


def test_a_cabinet_stands_beside_what_is_known_of_it():
    plain, shifted = made(DRAWER), made(DRAWER, novelty={"fixture_shift": 0.05})
    seen = [one.reset(seed=1)[0] for one in (plain, shifted)]
    assert (seen[0] == seen[1]).all()
    places = [one._row[27:29] for one in (plain, shifted)]
    assert math.dist(*places) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cabinet_position": [680.0, 0.0]}, "is it in millimetres"),
        ({"cabinet_position": [0.1, 0.0]}, "must be 0.5 to 1 m"),
        ({"cabinet_yaw": [8.0]}, "is it in degrees"),
        ({"opening": [150.0]}, "is it in millimetres"),
        ({"goal_opening": [0.3]}, "0 to 0.2 m is possible"),
    ],
)
def test_a_drawer_that_cannot_be_is_refused(change, said):
    env = made(DRAWER)
    env.reset(seed=0)
    state = env.physical_state()
    with pytest.raises(InputError, match=said):
        env.reset(options={"state": state | change})
    with pytest.raises(InputError, match="motion 'push'"):
        made(DRAWER, motion="push")


@pytest.mark.parametrize("task", [PICK, DRAWER])
def test_a_keyword_it_has_not_is_refused(task):
    with pytest.raises(TypeError, match="unexpected keyword argument 'mass'"):
        made(task, mass=3)


def test_axes_combine_and_each_does_its_part():
    env = made(novelty={"object_mass": 0.5, "delay": 0.1, "friction": 0.4})
    env.reset(seed=1)
    assert (env._setting.object_mass_kg, env._setting.delay_s, env._setting.friction) == (
        0.5,
        0.1,
        0.4,
    )


def test_a_delay_is_as_long_as_it_says():
    first = {}
    for delay in (None, 0.1):
        env = made(novelty=None if delay is None else {"delay": delay})
        observation, _ = env.reset(seed=1)
        target = np.append(observation[:7], 0.08).astype(np.float32)
        target[0] += 0.3
        for tick in range(10):
            moved, *_ = env.step(target)
            if abs(moved[0] - observation[0]) > 0.01:
                first[delay] = tick
                break
    assert first[0.1] - first[None] == 2


def test_noise_is_of_the_tick_and_a_bias_of_the_episode():
    env = made(novelty={"object_noise": 0.01})
    plain = made()
    seen = [one.reset(seed=4)[0] for one in (env, plain, env)]
    assert (seen[0] == seen[2]).all()
    assert 0.0 < np.abs(seen[0][22:25] - seen[1][22:25]).max() < 0.06
    assert (np.delete(seen[0], [22, 23, 24]) == np.delete(seen[1], [22, 23, 24])).all()
    biased = made(novelty={"object_bias": 0.02}).reset(seed=4)[0]
    assert math.dist(biased[22:25], seen[1][22:25]) == pytest.approx(0.02, abs=1e-6)


def test_a_goal_moves_at_its_onset(env):
    later = made(novelty={"goal_shift": 0.1}, onset=3)
    observation, _ = later.reset(seed=2)
    goal = observation[35:37]
    still = make_agent("arm-still")
    apart = []
    for _ in range(5):
        observation, *_ = later.step(still.act(observation))
        apart.append(math.dist(observation[35:37], goal))
    assert apart == pytest.approx([0.0, 0.0, 0.1, 0.1, 0.1], abs=1e-6)


@pytest.mark.parametrize("index", range(7))
@pytest.mark.parametrize("way", [1.0, -1.0])
def test_a_state_with_a_joint_faster_than_it_can_be_is_refused(env, index, way):
    env.reset(seed=1)
    state, most = env.physical_state(), SPEED_RAD_S[index]
    speeds = [0.0] * 7
    speeds[index] = 1.04 * most * way
    env.reset(options={"state": state | {"joint_velocity": speeds}})
    speeds[index] = 10.0 * way
    said = rf"^state.joint_velocity\[{index}\]: -{most:g} to {most:g} rad/s .*given {10 * way:g}; "
    with pytest.raises(InputError, match=said):
        env.reset(options={"state": state | {"joint_velocity": speeds}})


def test_what_is_measured_so_far_is_given_after_any_tick(env):
    agent = make_agent("arm-still")
    observation, _ = env.reset(seed=0)
    for tick in range(10):
        assert ("jerk_rms_rad_s3" in env.measures()) == (tick >= 6)
        observation, *_ = env.step(agent.act(observation))


def test_what_is_measured_of_the_control(env):
    played(env, make_agent("pick-place"), 0)
    found = env.measures()
    assert found["energy_J"] > 10.0
    assert found["contact_force_peak_N"] > 5.0


def test_a_missing_description_is_named(monkeypatch):
    from robo_eval_sim.arm import description

    monkeypatch.setattr(description, "find_spec", lambda _name: None)
    with pytest.raises(ImportError, match=r"panda.urdf: is missing in the package pybullet_data"):
        description.file_of_wheel()


@pytest.mark.parametrize(
    ("env", "field"),
    [("RoboEval/PickPlace-v0", "goal_position"), ("RoboEval/Drawer-v0", "goal_opening")],
)
@pytest.mark.parametrize("onset", [None, 3])
def test_a_measured_goal_that_was_moved_is_not_moved_again(env, field, onset):
    keywords = {"novelty": {"goal_shift": 0.02}, "onset": onset}
    here = gymnasium.make(env, **keywords).unwrapped
    here.reset(seed=5)
    for ticks in (1, 4):
        here.step(here.action_space.sample())
        while here.get_state()["tick"] < ticks:
            here.step(here.action_space.sample())
        state = here.get_state()
        measured = {name: one for name, one in state.items() if name != "history"}
        there = gymnasium.make(env, **keywords).unwrapped
        there.reset(options={"state": measured})
        assert there.get_state()[field] == pytest.approx(state[field])
        again = there.get_state()
        there.reset(options={"state": again})
        assert there.get_state()[field] == again[field]


def test_a_joint_that_is_read_beside_its_place_stays_so():
    plain, biased = made(), made(novelty={"joint_bias": 0.03})
    seen, shown = plain.reset(seed=4)[0], biased.reset(seed=4)[0]
    assert abs(shown[:7] - seen[:7]) == pytest.approx(0.03, abs=1e-6)
    rest = np.r_[7:15, 22:37]  # but for the tip, which follows the joints that are seen
    assert shown[rest] == pytest.approx(seen[rest])
    action = np.array([*seen[:7], 0.08], np.float32)
    later = biased.step(action)[0][:7] - plain.step(action)[0][:7]
    assert later == pytest.approx(shown[:7] - seen[:7], abs=1e-6)


def test_light_from_elsewhere_changes_the_picture_alone():
    plain, turned = made(obs_mode="rgbd"), made(obs_mode="rgbd", novelty={"light_turn": 1.5})
    seen, shown = plain.reset(seed=1)[0], turned.reset(seed=1)[0]
    assert (seen["image"] != shown["image"]).mean() > 0.01
    np.testing.assert_array_equal(seen["depth"], shown["depth"])
