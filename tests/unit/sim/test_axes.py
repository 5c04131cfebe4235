"""What an axis of the arm's novelty changes, what it leaves, and that the episode can be played."""

import functools
import itertools
import json
import math

import gymnasium
import numpy as np
import pybullet
import pytest

from robo_eval.agents.arm.mover import downwards
from robo_eval.agents.kinematics import rotation_of
from robo_eval.agents.registry import make_agent
from robo_eval.core.errors import InputError, PlanError
from robo_eval.core.plan import parse_plan
from robo_eval.core.task import tasks
from robo_eval_sim.arm import environment
from robo_eval_sim.arm.chain import CHAIN
from robo_eval_sim.arm.footprint import REACH_M, Footprint
from robo_eval_sim.arm.layout import HOME_RAD, TIP_POSITION, TIP_QUAT_XYZW
from robo_eval_sim.arm.levels.axis import Axis
from robo_eval_sim.runner import check_plan
from robo_eval_sim.tasks.drawer.layout import RANGE_M, TOLERANCE_M

PICK, DRAWER = "RoboEval/PickPlace-v0", "RoboEval/Drawer-v0"
PLAYED = [(PICK, {}), (DRAWER, {"motion": "open"}), (DRAWER, {"motion": "close"})]
AXES = [
    (task, level)
    for task in (PICK, DRAWER)
    for level in tasks()[task].levels().values()
    if isinstance(level, Axis)
]
PLACES = {
    "object_size",
    "object_shape",
    "distractors",
    "goal_shift",
    "path_blocked",
    "fixture_shift",
    "fixture_turn",
}
"""Say where something stands, or how large it is."""
PICTURES = {"camera_shift", "camera_turn", "light", "light_turn", "texture"}
"""Seen in pictures alone."""


def named(value):
    return value.name if isinstance(value, Axis) else None


def made(task=PICK, **keywords):
    return gymnasium.make(task, **keywords).unwrapped


def strengths(axis):
    """Magnitudes of the presets."""
    return {table[axis.parameter].value for table in axis.tables["paper"].values()}


def strongest(axis):
    return axis.span[0] if axis.falls else axis.span[1]


@functools.cache
def start_of(task, motion, seed):
    """Start of an episode, and the seed of what its level draws."""
    rng = np.random.default_rng(seed)
    rng.uniform(-0.02, 0.02, 7)
    env = made(task, **({"motion": motion} if motion else {}))
    return env._start(rng), int(rng.integers(2**32))


def drawn(env, seed):
    """Setting, things and goal of an episode, as `reset` draws them, without the engine."""
    start, level_seed = start_of(env.task.env, getattr(env, "_motion", None), seed)
    novelty = env._draw(start, np.random.default_rng(level_seed))
    things, goal = env._given(start)
    return env._setting, things, goal, env._shifted(goal), novelty


def points_of(place, count=25):
    """Points of a rectangle, shape (n, 2)."""
    x, y = (np.linspace(-half, half, count) for half in place.half_m)
    local = np.array(list(itertools.product(x, y)))
    cosine, sine = math.cos(place.turn_rad), math.sin(place.turn_rad)
    return local @ [[cosine, sine], [-sine, cosine]] + [place.x_m, place.y_m]


def is_clear(points, place):
    """Whether none of some points is in a rectangle."""
    cosine, sine = math.cos(place.turn_rad), math.sin(place.turn_rad)
    local = (points - [place.x_m, place.y_m]) @ [[cosine, -sine], [sine, cosine]]
    return not (abs(local) < place.half_m).all(axis=1).any()


def check_pick_place(env, setting, things, goal, moved):
    at, yaw = things[:2], 2.0 * math.atan2(things[5], things[6])
    half = setting.object_size_m / 2
    assert math.dist(at, moved) > 0.1
    if setting.goal_shift_m:
        assert math.dist(goal, moved) == pytest.approx(setting.goal_shift_m)
        assert REACH_M[0] <= math.hypot(*moved) <= REACH_M[1]
    others, _ = env._further(things, moved)
    assert len(others) == setting.distractors
    taken = [*((*place, half) for place in (at, moved)), *((x, y, h[0]) for x, y, _, h in others)]
    for (x, y, one), (u, v, other) in itertools.combinations(taken, 2):
        assert max(abs(x - u), abs(y - v)) > one + other
    if setting.block_height_m:
        place = setting.block_x_m, setting.block_y_m, setting.block_turn_rad
        wall = points_of(Footprint(*place, (0.005, 0.12)))
        for middle, turns in ((at, (yaw, yaw + math.pi / 2)), (moved, np.arange(0, math.pi, 0.1))):
            assert any(
                is_clear(wall, Footprint(*middle, turn, (0.032, 0.102)))
                and is_clear(wall, Footprint(*middle, turn, (half, half)))
                for turn in turns
            )
        if setting.block_height_m <= 0.15:
            line = at + np.linspace(0, 1, 200)[:, None] * np.subtract(moved, at)
            assert not is_clear(line, Footprint(*place, (0.006, 0.121))), "in the way"


def check_drawer(env, setting, things, goal, moved):
    x, y, yaw, opening, _ = things
    assert 0.0 <= moved[0] <= RANGE_M - TOLERANCE_M
    assert abs(moved[0] - opening) >= 2 * TOLERANCE_M - 1e-9
    if setting.goal_shift_m:
        assert 0.01 - 1e-9 <= abs(moved[0] - goal[0]) <= setting.goal_shift_m + 1e-9
        if setting.goal_shift_m <= 0.1:
            assert abs(moved[0] - goal[0]) == pytest.approx(setting.goal_shift_m)
    for out in np.linspace(opening, moved[0], 5):
        handle = env._handle((x, y, yaw), out)
        assert REACH_M[0] <= math.hypot(*handle[:2]) <= REACH_M[1]


def check_all(task, axis, magnitudes, seeds):
    check = check_pick_place if task == PICK else check_drawer
    for own in (keywords for env, keywords in PLAYED if env == task):
        for magnitude in magnitudes:
            env = made(task, novelty={axis.name: magnitude}, **own)
            for seed in seeds:
                setting, things, goal, moved, novelty = drawn(env, seed)
                assert getattr(setting, axis.parameter) == magnitude
                assert novelty.turned_down >= 0
                check(env, setting, things, goal, moved)


@pytest.mark.parametrize(("task", "axis"), AXES, ids=named)
def test_every_preset_leaves_every_episode_possible(task, axis):
    # What has no place depends on no draw; the long test plays those as often.
    check_all(task, axis, strengths(axis), range(300 if axis.name in PLACES else 3))


@pytest.mark.slow
@pytest.mark.parametrize(("task", "axis"), AXES, ids=named)
def test_every_strength_leaves_every_episode_possible(task, axis):
    check_all(task, axis, sorted({*strengths(axis), *axis.span}), range(3000))


@pytest.mark.parametrize(
    ("task", "novelty"),
    [
        (PICK, {"path_blocked": 0.1, "object_size": 0.075, "goal_shift": 0.3, "distractors": 40}),
        (PICK, {"path_blocked": 0.5, "object_size": 0.075, "goal_shift": 0.3, "distractors": 40}),
        (DRAWER, {"fixture_shift": 0.15, "fixture_turn": 0.8, "goal_shift": 0.1}),
    ],
)
def test_axes_together_leave_every_episode_possible(task, novelty):
    for own in (keywords for env, keywords in PLAYED if env == task):
        env = made(task, novelty=novelty, **own)
        for seed in range(40):
            found = drawn(env, seed)
            (check_pick_place if task == PICK else check_drawer)(env, *found[:-1])


@pytest.mark.parametrize(
    ("task", "novelty"),
    [
        (PICK, {"path_blocked": 0.5, "object_size": 0.075, "distractors": 40}),
        (PICK, {"path_blocked": 0.1, "goal_shift": 0.3, "distractors": 20}),
        (PICK, {"path_blocked": 0.2, "object_size": 0.075, "object_shape": 2}),
        (PICK, {"mass_offset": 0.02}),
        (DRAWER, {"fixture_shift": 0.15, "fixture_turn": 0.8}),
    ],
)
def test_nothing_is_inside_something_else_as_an_episode_begins(task, novelty):
    env = made(task, novelty=novelty)
    for seed in range(6):
        env.reset(seed=seed)
        client = env._world.client
        pybullet.performCollisionDetection(physicsClientId=client)
        deep = [one[8] for one in pybullet.getContactPoints(physicsClientId=client)]
        assert min(deep, default=0.0) > -1e-3


@pytest.mark.parametrize("height_m", [0.02, 0.12, 0.15, 0.25])
def test_the_arm_gets_wherever_a_draw_may_send_it(height_m):
    for away, azimuth in itertools.product(REACH_M, (0.0, 0.9, -1.4)):
        place = away * math.cos(azimuth), away * math.sin(azimuth), height_m
        # Two turns of the hand bring its fingers to the same sides.
        found = [
            CHAIN.reach(place, downwards(yaw), (azimuth, *HOME_RAD[1:]), rounds=200)
            for yaw in (azimuth, azimuth + math.pi)
        ]
        assert min(max(one.position_error_m, one.turn_error_rad) for one in found) < 2e-3


def test_reset_plays_what_was_drawn_and_says_what_was_turned_down():
    env = made(novelty={"path_blocked": 0.08})
    counts = []
    for seed in range(5):
        *_, novelty = drawn(env, seed)
        env.reset(seed=seed)
        assert env.novelty["parameters"] == {"path_blocked": novelty.parameters["path_blocked"]}
        assert env.novelty["turned_down"] == novelty.turned_down
        counts.append(novelty.turned_down)
        state = json.loads(json.dumps(env.get_state()))
        env.reset(options={"state": state})
        assert env.get_state() == state
    assert len(set(counts)) > 1
    plain = made()
    plain.reset(seed=0)
    assert "turned_down" not in plain.novelty
    with pytest.raises(InputError, match=r"^state.novelty.turned_down: a whole number from 0"):
        env.reset(options={"state": state | {"novelty": state["novelty"] | {"turned_down": -1}}})


def test_a_start_that_leaves_no_way_is_refused(monkeypatch):
    monkeypatch.setattr(environment, "_DRAWS", 200)
    env = made(novelty={"path_blocked": 0.08})
    env.reset(seed=0)
    state = {name: one for name, one in env.physical_state().items() if name != "tick"}
    x, y, _ = state["object_position"]
    with pytest.raises(InputError, match=r"^reset: .*path_blocked none leaves .* give a state"):
        env.reset(options={"state": state | {"goal_position": [x, y + 0.03]}})


# One thing changes -------------------------------------------------------------------------------

OTHER_START = {
    "object_size": {"object_position": "a larger thing is higher"},
    "object_shape": {"object_position": "a capsule is higher"},
    "goal_shift": {"goal_position": "it moves", "goal_opening": "it moves"},
}
"""Fields of the start that an axis is there to change, and why."""
SEEN_OTHERWISE = {
    "joint_noise": range(22),
    "joint_bias": range(22),
    "object_noise": range(22, 25),
    "object_bias": range(22, 25),
    "object_size": [24],
    "object_shape": [24],
    "goal_shift": [28, 35, 36],
}
"""Numbers of the observation that an axis is there to change; 15 to 21 are the tip."""


def shape_of(env):
    """Where the shape of the object, or of the drawer and its cabinet, is: its bounds."""
    world = env._world
    bodies = (
        [(world.object, -1)] if env.task.env == PICK else [(world.cabinet, -1), (world.cabinet, 0)]
    )
    pybullet.performCollisionDetection(physicsClientId=world.client)
    return np.array([pybullet.getAABB(*one, physicsClientId=world.client) for one in bodies])


@pytest.mark.parametrize(("task", "axis"), AXES, ids=named)
def test_a_start_is_that_of_the_control(task, axis):
    plain, changed = made(task), made(task, novelty={axis.name: strongest(axis)})
    for seed in (3, 4):
        seen, shown = (env.reset(seed=seed)[0] for env in (plain, changed))
        here, there = plain.physical_state(), changed.physical_state()
        for name, value in here.items():
            if name not in OTHER_START.get(axis.name, {}):
                assert there[name] == pytest.approx(value, abs=1e-12), name
        is_same = np.ones(len(seen), bool)
        is_same[[i for i in SEEN_OTHERWISE.get(axis.name, ()) if i < len(seen)]] = False
        assert (shown[is_same] == seen[is_same]).all()
        if axis.name not in ("object_size", "object_shape", "fixture_shift", "fixture_turn"):
            assert shape_of(changed) == pytest.approx(shape_of(plain), abs=1e-9)


def test_a_mass_beside_the_middle_moves_the_mass_alone():
    plain, heavy = made(), made(novelty={"mass_offset": 0.02})
    still = make_agent("arm-still")
    for env in (plain, heavy):
        observation, _ = env.reset(seed=6)
        for _ in range(20):
            observation, *_ = env.step(still.act(observation))
    # It lies on the table as before, and the engine's centre of mass is beside it.
    middle = [env.physical_state()["object_position"] for env in (plain, heavy)]
    assert middle[1] == pytest.approx(middle[0], abs=1e-3)
    bounds = shape_of(heavy)[0].mean(axis=0)
    assert middle[1] == pytest.approx(bounds, abs=1e-6)
    world = heavy._world
    centre, _ = pybullet.getBasePositionAndOrientation(world.object, physicsClientId=world.client)
    assert math.dist(centre, middle[1]) == pytest.approx(0.02)
    drawn_at = heavy._setting.mass_direction_rad
    turn = rotation_of(heavy.physical_state()["object_quat_xyzw"])
    towards = turn @ [0.02 * math.cos(drawn_at), 0.02 * math.sin(drawn_at), 0.0]
    assert np.subtract(centre, middle[1]) == pytest.approx(towards, abs=1e-9)


def test_a_thrown_object_turns_about_its_mass_and_its_middle_moves_with_it():
    env = made(novelty={"mass_offset": 0.02})
    env.reset(seed=6)
    state = {name: one for name, one in env.physical_state().items() if name != "tick"}
    spin = [0.0, 0.0, 8.0]
    state |= {"object_position": [0.45, -0.1, 0.9], "object_angular_velocity": spin}
    env.reset(options={"state": state})
    assert env.physical_state()["object_velocity"] == pytest.approx([0.0] * 3, abs=1e-9)
    world = env._world
    lever = rotation_of(state["object_quat_xyzw"]) @ world._centre
    before, _ = pybullet.getBasePositionAndOrientation(world.object, physicsClientId=world.client)
    env.step(np.array([*state["joint_position"], 0.08], np.float32))
    after, _ = pybullet.getBasePositionAndOrientation(world.object, physicsClientId=world.client)
    # The middle stood still, so the mass went round it; nothing but weight acts on it since.
    moved = np.subtract(after, before)[:2]
    assert moved == pytest.approx(0.05 * np.cross(spin, lever)[:2], rel=0.01, abs=1e-6)


@pytest.mark.parametrize(("axis", "size"), [("joint_bias", 0.03), ("joint_noise", 0.03)])
def test_a_tip_is_seen_where_the_joints_that_are_seen_have_it(axis, size):
    for mode in ("state", "rgbd"):
        env = made(novelty={axis: size}, obs_mode=mode)
        env.reset(seed=4)
        seen, *_ = env.step(np.array([*HOME_RAD, 0.08], np.float32))
        seen = seen["state"] if mode == "rgbd" else seen
        place, turn = CHAIN.forward(seen[:7].astype(float))
        assert seen[TIP_POSITION] == pytest.approx(place, abs=1e-5)
        assert rotation_of(seen[TIP_QUAT_XYZW]) == pytest.approx(turn, abs=1e-5)
        true = env.physical_state()
        assert math.dist(seen[TIP_POSITION], true["tip_position"]) > 0.005
        assert seen[TIP_QUAT_XYZW] @ true["tip_quat_xyzw"] > 0.9


@pytest.mark.parametrize("asked", [None, 0.05, 2.0])
def test_a_drawer_weighs_what_it_says(asked):
    env = made(DRAWER, novelty=None if asked is None else {"object_mass": asked})
    env.reset(seed=1)
    world = env._world
    mass = pybullet.getDynamicsInfo(world.cabinet, 0, physicsClientId=world.client)[0]
    assert mass == pytest.approx(asked or 0.55)


def test_a_level_from_elsewhere_leaves_the_drawer_its_mass(tmp_path, monkeypatch):
    (tmp_path / "level_90_slippery.py").write_text(
        "from robo_eval.core.kinds import Profile\n"
        "from robo_eval_sim.arm.setting import Setting\n"
        "from robo_eval_sim.novelty import Level, both, novelty, same\n"
        f"@novelty('slippery', level=90, task={DRAWER!r})\n"
        "class Slippery(Level):\n"
        "    effects = dict.fromkeys(Profile, 'slippery')\n"
        "    tables = both(same({}))\n"
        "    def physics(self, drawn):\n"
        "        return Setting(friction=0.1)\n"
    )
    monkeypatch.setenv("ROBO_EVAL_LEVELS", str(tmp_path))
    env = made(DRAWER, level=90)
    env.reset(seed=1)
    assert (env._setting.friction, env._setting.object_mass_kg) == (0.1, 0.55)


# Later -------------------------------------------------------------------------------------------

LATER = [(task, axis) for task, axis in AXES if not axis.no_onset]
ONSET = 12


def engine_of(env):
    """What the engine has been told of every body, and where it pulls."""
    client = env._world.client
    bodies = range(pybullet.getNumBodies(physicsClientId=client))
    parts = [
        (body, link)
        for body in bodies
        for link in range(-1, pybullet.getNumJoints(body, physicsClientId=client))
    ]
    return [pybullet.getDynamicsInfo(*one, physicsClientId=client)[:10] for one in parts]


@pytest.mark.parametrize(("task", "axis"), LATER, ids=named)
def test_what_begins_later_leaves_what_was_and_changes_what_follows(task, axis):
    keywords = {"obs_mode": "rgbd"} if axis.name in PICTURES else {}
    plain = made(task, **keywords)
    later = made(task, novelty={axis.name: strongest(axis)}, onset=ONSET, **keywords)
    agent = make_agent("pick-place" if task == PICK else "drawer")
    envs = [plain, later]
    state = [env.reset(seed=2)[0] for env in envs]
    agent.reset()
    for tick in range(1, ONSET + 40):
        same = np.array_equal(flat(state[0]), flat(state[1]))
        assert same or tick > ONSET
        if tick == ONSET:
            assert later._setting == plain._setting
        if tick > ONSET:
            assert getattr(later._setting, axis.parameter) == strongest(axis)
            if not same or engine_of(plain) != engine_of(later):
                return
        rest = np.array([*HOME_RAD, 0.08], np.float32)
        action = rest if keywords else agent.act(state[0])
        state = [env.step(action)[0] for env in envs]
    pytest.fail("nothing changed")


def flat(observation):
    if isinstance(observation, dict):
        return np.concatenate([observation[name].ravel() for name in sorted(observation)])
    return observation


@pytest.mark.parametrize(("task", "axis"), [one for one in AXES if one[1].no_onset], ids=named)
def test_what_cannot_begin_later_is_refused_with_its_reason(task, axis):
    said = rf"onset: {axis.name} cannot begin while .* because {axis.no_onset}; leave `onset` out"
    for onset in (5, [5, 9]):
        for keywords in ({"level": axis.number}, {"novelty": {axis.name: strongest(axis)}}):
            with pytest.raises(InputError, match=said):
                made(task, onset=onset, **keywords)
    together = {"delay": 0.1, axis.name: strongest(axis)}
    with pytest.raises(InputError, match=said):
        made(task, onset=5, novelty=together)


@pytest.mark.parametrize("how", ["levels: [0, 22]", "axes: {fixture_shift: [0.02]}"])
def test_a_plan_with_what_cannot_begin_later_is_refused(how):
    text = (
        f"name: x\ntasks: [{{env: {DRAWER}, kwargs: {{onset: 5}}, {how}}}]\npolicies: [arm-still]"
    )
    with pytest.raises(PlanError, match=r"^tasks\.0\.kwargs: onset: fixture_shift cannot begin"):
        check_plan(parse_plan(text, source="plan"))
