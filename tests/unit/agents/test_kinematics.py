"""Where the tip of an arm is, and how it is brought somewhere."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from robo_eval.agents.kinematics import (
    Chain,
    Joint,
    rotation_of,
    rotation_vector,
    turned,
)
from robo_eval.core.errors import InputError
from robo_eval_sim.arm.chain import CHAIN
from robo_eval_sim.arm.description import file_of_wheel
from robo_eval_sim.arm.layout import HOME_RAD, LOWER_RAD, TIP, UPPER_RAD

AXIS = '<robot><joint name="j" type="revolute"><child link="tip"/><axis xyz="{}"/></joint></robot>'
JOINTS = st.tuples(*(st.floats(low, high) for low, high in zip(LOWER_RAD, UPPER_RAD, strict=True)))
ANGLES = st.tuples(*[st.floats(-3.1, 3.1)] * 3)
FLAT = Chain([Joint(name="a", xyz=(0, 0, 0)), Joint(name="b", xyz=(1, 0, 0)),
              Joint(name="tip", xyz=(1, 0, 0), axis=None)])  # fmt: skip


def test_two_links_in_a_plane():
    place, turn = FLAT.forward([math.pi / 2, -math.pi / 2])
    assert place == pytest.approx([1.0, 1.0, 0.0])
    assert turn == pytest.approx(np.eye(3))


def test_the_chain_is_that_of_the_wheel():
    other = Chain.of_urdf(file_of_wheel().read_text(), TIP)
    assert other.names == CHAIN.names
    assert other.lower == pytest.approx(CHAIN.lower)
    assert other.upper == pytest.approx(CHAIN.upper)
    rng = np.random.default_rng(0)
    for q in rng.uniform(LOWER_RAD, UPPER_RAD, (20, 7)):
        for one, two in zip(other.forward(q), CHAIN.forward(q), strict=True):
            assert one == pytest.approx(two, abs=1e-9)


@settings(max_examples=25)
@given(JOINTS)
def test_the_jacobian_is_the_derivative(q):
    found, place, turn = CHAIN.jacobian(q)
    step = 1e-6
    for index in range(7):
        moved = np.array(q)
        moved[index] += step
        after, turned_by = CHAIN.forward(moved)
        assert found[:3, index] == pytest.approx((after - place) / step, abs=1e-4)
        assert found[3:, index] == pytest.approx(
            rotation_vector(turned_by @ turn.T) / step, abs=1e-4
        )


@settings(max_examples=25)
@given(st.floats(0.35, 0.6), st.floats(-0.25, 0.25), st.floats(0.02, 0.4), st.floats(-0.8, 0.8))
def test_a_pose_on_the_table_is_reached_within_the_limits(x, y, z, yaw):
    wanted = turned((math.pi, 0.0, yaw))
    found = CHAIN.reach((x, y, z), wanted, HOME_RAD)
    assert found.position_error_m < 1e-3
    assert found.turn_error_rad < 1e-2
    assert (found.q >= CHAIN.lower).all()
    assert (found.q <= CHAIN.upper).all()
    place, _ = CHAIN.forward(found.q)
    assert np.linalg.norm(place - [x, y, z]) == pytest.approx(found.position_error_m)


def test_what_is_out_of_reach_is_said():
    found = CHAIN.reach((2.0, 0.0, 0.3), turned((math.pi, 0.0, 0.0)), HOME_RAD)
    assert found.position_error_m > 0.5


def test_many_positions_at_once_are_as_one_by_one():
    sliding = Joint(name="slides", xyz=(0.1, 0.0, 0.2), axis=(0.0, 0.6, 0.8), slides=True)
    turning = Joint(name="turns", xyz=(0.0, 0.3, 0.0), rpy=(0.2, -0.4, 1.0), axis=(0.0, 0.0, 1.0))
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (20, 2))
    chain = Chain([turning, sliding])
    places, turns = chain.forward_at(q)
    for row, place, turn in zip(q, places, turns, strict=True):
        assert chain.forward(row)[0] == pytest.approx(place)
        assert chain.forward(row)[1] == pytest.approx(turn)


@given(ANGLES)
def test_orientations_come_back(angles):
    rotation = turned(angles)
    assert rotation_of(Rotation.from_matrix(rotation).as_quat()) == pytest.approx(
        rotation, abs=1e-6
    )
    assert turned((0.0, 0.0, 0.0)) == pytest.approx(np.eye(3))


def test_half_a_turn_has_an_axis():
    for angles in ((math.pi, 0.0, 0.0), (0.0, math.pi, 0.0), (0.0, 0.0, math.pi)):
        assert np.linalg.norm(rotation_vector(turned(angles))) == pytest.approx(math.pi)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no xml", "is not XML"),
        ("<robot/>", "no joint leads to the link 'tip'"),
        ("<!DOCTYPE a><robot/>", "entities"),
        ('<robot><joint name="j" type="planar"><child link="tip"/></joint></robot>', "planar"),
        (AXIS.format("0 0"), "joint 'j': xyz has to be three numbers"),
        (AXIS.format("0 0 0"), "its axis has no length"),
    ],
)
def test_a_description_that_is_none_is_refused(text, said):
    with pytest.raises(InputError, match=said):
        Chain.of_urdf(text, "tip")
