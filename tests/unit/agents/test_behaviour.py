"""What every agent keeps to, and what each one is for, on the analytic model."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from robo_eval.agents import make_agent
from robo_eval.agents.arm.random_targets import HIGH, LOW
from robo_eval.agents.cartpole3d.identification import OnlineModel
from robo_eval.agents.cartpole3d.model import PlanarModel
from robo_eval.core.errors import ShapeError
from robo_eval_sim.tasks.cartpole3d.layout import (
    NOMINAL,
    POLE_LIMIT_RAD,
    PUSHES,
    Action,
    NominalParameters,
    observation_size,
)

SEES = ["balancer", "lookahead", "adaptive"]
ARMS = ["pick-place", "drawer", "arm-random", "arm-still"]


class Plant:
    """Two independent planar axes, advanced by the discrete linear model; never a contact."""

    def __init__(self, model=None, *, drift=(0.0, 0.0), push_sign=1.0, lean=(0.01, -0.015)):
        self.a, self.b = (model or PlanarModel.from_parameters()).discrete()
        # A steady acceleration of the pole, entering as a push does.
        self.drift = 0.02 * np.array(drift)
        self.sign = push_sign
        self.axes = np.zeros((2, 4))
        self.axes[:, 2] = lean

    def observe(self, balls=()):
        found = np.zeros(observation_size("paper"), np.float32)
        (x, vx, nx, mx), (y, vy, ny, my) = self.axes
        found[:4] = x, y, vx, vy
        # The smallest rotation that leans by (nx, ny), and the rate that changes it so.
        found[4:8] = np.array([-ny / 2, nx / 2, 0.0, 1.0])
        found[4:8] /= np.linalg.norm(found[4:8])
        found[8:10] = -my, mx
        found[11] = len(balls)
        found[12 : 12 + 6 * len(balls)] = np.ravel(balls)
        return found

    def step(self, action):
        for i in (0, 1):
            self.axes[i] = self.a @ self.axes[i] + self.b * self.sign * PUSHES[action][i]
            self.axes[i, 3] += self.drift[i]
            self.axes[i, 2] += 0.02 * self.drift[i]

    def play(self, agent, ticks=200):
        """Ticks survived."""
        agent.reset(seed=1)
        for tick in range(ticks):
            self.step(agent.act(self.observe()))
            if np.abs(self.axes[:, 2]).max() > POLE_LIMIT_RAD:
                return tick + 1
        return ticks


def some_observations(n=60):
    rng = np.random.default_rng(0)
    plant = Plant()
    for _ in range(n):
        plant.axes = rng.normal(size=(2, 4)) * [1.0, 1.0, 0.05, 0.3]
        balls = rng.normal(size=(int(rng.integers(0, 5)), 6)) * 3.0
        yield plant.observe([(*b[:2], abs(b[2]), *b[3:]) for b in balls])


@pytest.mark.parametrize("name", ["pick-place", "drawer"])
def test_an_expert_refuses_what_another_task_shows(name):
    with pytest.raises(ShapeError, match=r"numbers of (PickPlace|Drawer) are needed"):
        make_agent(name).act(np.zeros(30))


def test_an_arm_that_is_to_stay_is_asked_for_what_it_may_be_asked_for():
    """Motors overshoot, and what is seen lies a little beyond the range then."""
    seen = np.full(37, 9.0, np.float32)
    assert make_agent("arm-still").act(seen).tolist() == HIGH.astype(np.float32).tolist()
    assert make_agent("arm-still").act(-seen).tolist() == LOW.astype(np.float32).tolist()


@pytest.mark.parametrize("name", ARMS)
def test_an_agent_of_the_arm_repeats_itself(name):
    rng = np.random.default_rng(0)
    size = 29 if name == "drawer" else 37
    seen = [np.clip(rng.normal(0.0, 0.2, size), -1, 1).astype(np.float32) for _ in range(20)]
    kept = [one.copy() for one in seen]
    agent = make_agent(name)
    runs = []
    for player in (agent, agent, pickle.loads(pickle.dumps(agent))):
        player.reset(seed=5)
        runs.append(np.array([player.act(one) for one in seen]))
    assert (runs[0] == runs[1]).all()
    assert (runs[0] == runs[2]).all()
    assert runs[0].dtype == np.float32
    assert (np.array(seen) == np.array(kept)).all()


@pytest.mark.parametrize("name", ["random", "nothing", *SEES])
def test_an_agent_repeats_itself_after_reset_pickles_and_changes_no_observation(name):
    agent = make_agent(name)
    runs = []
    for _ in range(2):
        agent.reset(seed=5)
        actions = []
        for observation in some_observations():
            kept = observation.copy()
            actions.append(agent.act(observation))
            assert (observation == kept).all()
        runs.append(actions)
    assert runs[0] == runs[1]
    assert {type(action) for action in runs[0]} == {int}
    assert set(runs[0]) <= set(map(int, Action))
    other = pickle.loads(pickle.dumps(agent))
    other.reset(seed=5)
    assert [other.act(o) for o in some_observations()] == runs[0]


@pytest.mark.parametrize("name", SEES)
def test_an_observation_of_another_task_is_refused(name):
    with pytest.raises(ShapeError, match="CartPole3D"):
        make_agent(name).act(np.zeros(4))


def test_random_draws_every_action_and_another_seed_draws_others():
    agent = make_agent("random")
    draws = []
    for seed in (1, 2):
        agent.reset(seed=seed)
        draws.append([agent.act(None) for _ in range(500)])
    assert draws[0] != draws[1]
    counts = np.bincount(draws[0], minlength=5)
    assert counts.min() > 60, counts


@pytest.mark.parametrize("name", SEES)
@pytest.mark.parametrize(
    ("axis", "lean", "action"),
    [
        (0, 0.05, Action.RIGHT),
        (0, -0.05, Action.LEFT),
        (1, 0.05, Action.FORWARD),
        (1, -0.05, Action.BACKWARD),
    ],
)
def test_it_pushes_the_cart_under_the_leaning_pole(name, axis, lean, action):
    plant = Plant(lean=(0.0, 0.0))
    plant.axes[axis, 2] = lean
    assert make_agent(name).act(plant.observe()) == action


def test_the_balancer_rests_when_nothing_is_wrong():
    assert make_agent("balancer").act(Plant(lean=(0.0, 0.0)).observe()) == Action.NOTHING


@pytest.mark.parametrize("name", SEES)
def test_the_nominal_pole_stands_and_the_cart_stays(name):
    plant = Plant()
    assert plant.play(make_agent(name)) == 200
    assert np.abs(plant.axes[:, 0]).max() < 0.5


HEAVY = PlanarModel.from_parameters(NominalParameters(cart_mass_kg=20.0))
LONG = PlanarModel.from_parameters(
    NominalParameters(
        pole_mass_kg=0.3, pole_com_height_m=3.0, pole_inertia_kg_m2=(0.2287, 0.2287, 2e-4)
    )
)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": LONG},
        {"push_sign": -1.0},
        {"drift": (5.0, -3.0)},
        {"model": HEAVY, "lean": (0.015, -0.02)},
    ],
    ids=["long pole", "pushes reversed", "wind", "heavy cart"],
)
def test_adaptive_stands_where_the_fixed_balancer_falls_earlier(changes):
    if "drift" in changes:
        changes = {**changes, "drift": np.array(changes["drift"])}
    fixed = Plant(**changes).play(make_agent("balancer"))
    learnt = Plant(**changes).play(make_agent("adaptive"))
    assert learnt > fixed
    if "drift" not in changes:
        assert learnt == 200


def learnt_from(plant, ticks=40, blow_at=None):
    online, rng = OnlineModel(), np.random.default_rng(3)
    online.start(tuple(plant.axes.ravel()))
    for tick in range(ticks):
        action = int(rng.integers(5))
        plant.step(action)
        if tick == blow_at:
            plant.axes[0, 1] += 4.0
            plant.axes[0, 3] -= 3.0
        online.learn(tuple(plant.axes.ravel()), PUSHES[action])
        # Slowed and kept near upright, so that it can be watched for long.
        plant.axes[:, 1:] *= 0.9 if tick != blow_at else 0.0
        online.start(tuple(plant.axes.ravel()))
    return online


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_estimate_finds_mass_and_sign_of_the_pushes(sign):
    (_, pole_push, *_), (_, cart_push, *_) = learnt_from(
        Plant(HEAVY, push_sign=sign)
    ).coefficients()
    assert cart_push == pytest.approx(sign * HEAVY.cart_per_newton, rel=0.02)
    assert pole_push == pytest.approx(-sign * HEAVY.pole_per_newton, rel=0.02)


def test_the_estimate_finds_a_steady_drift():
    pole, _ = learnt_from(Plant(drift=(2.0, -1.0))).coefficients()
    assert pole[2:] == pytest.approx((2.0, -1.0), abs=0.1)


def test_a_blow_is_not_learnt_from():
    (_, _, *calm), _ = learnt_from(Plant(), blow_at=None).coefficients()
    (_, _, *hit), _ = learnt_from(Plant(), blow_at=20).coefficients()
    np.testing.assert_allclose(hit, calm, atol=0.05)


def test_memory_says_whether_a_reset_forgets():
    for memory, kept in (("episode", False), ("trial", True)):
        agent = make_agent("adaptive", memory=memory)
        Plant(HEAVY).play(agent)
        agent.reset()
        _, (_, cart_push, *_) = agent._online.coefficients()
        nominal = PlanarModel.from_parameters().cart_per_newton
        assert (cart_push != pytest.approx(nominal, rel=0.1)) is kept


def test_lookahead_leaves_the_path_of_a_ball_and_stays_when_it_passes():
    for y, leaves in ((0.05, True), (3.0, False)):
        plant, agent = Plant(lean=(0.0, 0.0)), make_agent("lookahead")
        agent.reset()
        for tick in range(45):
            ball = (4.0 - 0.08 * tick, y, 0.8, -4.0, 0.0, 0.0)
            plant.step(agent.act(plant.observe([ball])))
        assert bool(abs(plant.axes[1, 0]) > 0.2) is leaves
        assert np.abs(plant.axes[:, 2]).max() < POLE_LIMIT_RAD


def test_lookahead_sees_no_danger_in_a_ball_high_above():
    with_ball, without = Plant(), Plant()
    agent, other = make_agent("lookahead"), make_agent("lookahead")
    for _ in range(50):
        action = agent.act(with_ball.observe([(0.0, 0.0, 8.0, 0.0, 0.0, 0.0)]))
        assert action == other.act(without.observe())
        with_ball.step(action)
        without.step(action)
    assert NOMINAL.arena_ceiling_m > 8.0
