"""The analytic model against independent integration and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.spatial.transform import Rotation

from robo_eval.agents.cartpole3d.model import (
    Flight,
    PlanarModel,
    fold,
    read_balls,
    read_state,
)
from robo_eval.agents.linear_quadratic import cost_to_go
from robo_eval.core.errors import ShapeError
from robo_eval_sim.tasks.cartpole3d.layout import (
    NOMINAL,
    TICK_S,
    NominalParameters,
    observation_size,
)


def observation(*, cart=(0, 0), velocity=(0, 0), pole=None, spin=(0, 0, 0), balls=()):
    found = np.zeros(observation_size("paper"), np.float32)
    found[0:2], found[2:4] = cart, velocity
    found[4:8] = (pole or Rotation.identity()).as_quat()
    found[8:11] = spin
    found[11] = len(balls)
    for i, ball in enumerate(balls):
        found[12 + 6 * i : 18 + 6 * i] = ball
    return found


def test_the_state_of_an_axis_is_the_poles_direction_and_its_rate():
    pole = Rotation.from_euler("xyz", [0.05, -0.11, 0.4])
    spin = np.array([0.3, -0.2, 0.5])
    found = read_state(observation(cart=(1, 2), velocity=(3, 4), pole=pole, spin=spin))
    tip = pole.apply([0.0, 0.0, 1.0])
    rate = np.cross(spin, tip)
    expected = [1, 3, tip[0], rate[0], 2, 4, tip[1], rate[1]]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("given", [np.zeros(4), np.zeros((2, 12)), [0.0] * 12, None])
def test_what_is_no_observation_is_refused(given):
    with pytest.raises(ShapeError, match="CartPole3D's vector"):
        read_state(given)


def test_only_the_balls_that_are_there_are_read():
    position, velocity = read_balls(observation(balls=[(1, 2, 3, 4, 5, 6), (7, 8, 9, 10, 11, 12)]))
    assert position.tolist() == [[1, 2, 3], [7, 8, 9]]
    assert velocity.tolist() == [[4, 5, 6], [10, 11, 12]]


def lagrange(p: NominalParameters, angle: float, rate: float, push: float) -> tuple[float, float]:
    """Accelerations of cart and pole angle from the full planar Lagrangian, without damping."""
    lever = p.pole_mass_kg * p.pole_com_height_m
    mass = np.array(
        [
            [p.cart_mass_kg + p.pole_mass_kg, lever * math.cos(angle)],
            [lever * math.cos(angle), p.pole_inertia_kg_m2[0] + lever * p.pole_com_height_m],
        ]
    )
    force = [push + lever * math.sin(angle) * rate**2, lever * p.gravity_m_s2 * math.sin(angle)]
    cart, pole = np.linalg.solve(mass, force)
    return float(cart), float(pole)


@pytest.mark.parametrize(
    "p",
    [
        NOMINAL,
        NominalParameters(cart_mass_kg=50.0),
        NominalParameters(gravity_m_s2=40.0),
        NominalParameters(pole_com_height_m=3.0, pole_inertia_kg_m2=(0.07, 0.07, 1e-4)),
    ],
)
@pytest.mark.parametrize("push", [0.0, 10.0, -10.0])
def test_coefficients_are_those_of_the_lagrangian_near_upright(p, push):
    model = PlanarModel.from_parameters(p)
    angle = 1e-4
    cart, pole = lagrange(p, angle, 0.0, push)
    assert model.cart_per_lean * angle + model.cart_per_newton * push == pytest.approx(
        cart, rel=1e-6
    )
    assert model.pole_per_lean * angle - model.pole_per_newton * push == pytest.approx(
        pole, rel=1e-6
    )


def test_a_tick_changes_velocities_first_then_positions():
    model = PlanarModel.from_parameters()
    a, b = model.discrete()
    x, v, n, m = state = np.array([0.3, -0.2, 0.05, 0.4])
    push = 10.0
    v2 = v + TICK_S * (model.cart_per_lean * n + model.cart_per_newton * push - model.damping * v)
    m2 = m + TICK_S * (model.pole_per_lean * n - model.pole_per_newton * push - model.damping * m)
    expected = [x + TICK_S * v2, v2, n + TICK_S * m2, m2]
    np.testing.assert_allclose(a @ state + b * push, expected, atol=1e-14)


@pytest.mark.parametrize("weights", [(1, 1, 100, 1), (10, 1, 1000, 1), (0.1, 0, 1, 0)])
@pytest.mark.parametrize("r", [1e-3, 1.0])
def test_cost_to_go_is_the_one_of_scipy(weights, r):
    a, b = PlanarModel.from_parameters().discrete()
    expected = solve_discrete_are(a, b[:, None], np.diag(np.array(weights, float)), [[r]])
    found = cost_to_go(a, b, np.array(weights, float), r)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_an_axis_no_push_reaches_has_no_cost_to_go():
    a, _ = PlanarModel.from_parameters().discrete()
    with pytest.raises(ArithmeticError, match="did not settle"):
        cost_to_go(a, np.zeros(4), np.ones(4), 1.0)


def flown(position, velocity, seconds, dt=1e-4):
    """A ball integrated in small steps, thrown back by walls it reaches."""
    half = NOMINAL.arena_half_width_m - NOMINAL.ball_radius_m
    low = np.array([-half, -half, NOMINAL.arena_floor_m + NOMINAL.ball_radius_m])
    high = np.array([half, half, NOMINAL.arena_ceiling_m - NOMINAL.ball_radius_m])
    x, v = np.array(position, float), np.array(velocity, float)
    for _ in range(round(seconds / dt)):
        v = v * (1.0 - NOMINAL.damping * (1.0 + np.linalg.norm(v)) * dt)
        x = x + v * dt
        v = np.where(((x < low) & (v < 0)) | ((x > high) & (v > 0)), -v, v)
    return x


@pytest.mark.parametrize("velocity", [(8.0, -7.0, 6.0), (-9.0, 9.0, -9.5), (0.0, 0.0, 0.0)])
def test_balls_fly_as_small_steps_do_walls_included(velocity):
    position = (3.0, -2.0, 8.0)
    times = np.array([0.1, 0.5, 1.3])
    found = Flight(times)(np.array([position]), np.array([velocity]))
    assert found.shape == (1, 3, 3)
    for k, seconds in enumerate(times):
        np.testing.assert_allclose(found[0, k], flown(position, velocity, seconds), atol=5e-3)


def test_folding_keeps_what_is_inside_and_mirrors_what_is_not():
    low, high = np.array([-1.0]), np.array([2.0])
    straight = np.array([[-1.0], [0.5], [2.0], [2.5], [-1.5], [5.5], [8.2]])
    found = fold(straight, low, high).ravel()
    np.testing.assert_allclose(found, [-1.0, 0.5, 2.0, 1.5, -0.5, -0.5, 2.0 - 0.2 + 0.0], atol=1e-9)
