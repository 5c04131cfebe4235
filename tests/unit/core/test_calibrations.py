"""What the simulated half of a plan is played with: its episodes, and what they draw."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.core.errors import PlanError
from robo_eval.core.kinds import Side
from robo_eval.core.plan import CalibrationPlan, TrialPlan, Way, locked_text, parse_plan
from robo_eval.core.schedule import (
    environment_keywords,
    planned_ids,
    schedule,
    simulated_id,
)

ENTRIES = [
    "nominal",
    {"name": "broad", "randomised": {"cart_mass_kg": [0.8, 1.2]}},
    {
        "name": "identified",
        "file": "calibration/identified.yaml",
        "recordings": {"rec-1": {"cart_mass_kg": 1.2}, "rec-2": {"cart_mass_kg": 1.4}},
    },
]
NAMES = ["nominal", "broad", "identified/rec-1", "identified/rec-2"]


def plan_with(**changes) -> TrialPlan:
    data = {
        "name": "x",
        "tasks": [{"levels": [1, 9], "difficulties": ["easy", "hard"]}],
        "policies": ["a", "b"],
        "episodes": 3,
        "calibrations": ENTRIES,
        **changes,
    }
    return TrialPlan.model_validate(data)


@pytest.mark.parametrize("order", ["randomised", "blocked", "interleaved"])
@pytest.mark.parametrize("control", [False, True])
def test_every_simulated_episode_is_played_once_with_each(order, control):
    plan = plan_with(order=order, control=control)
    episodes = schedule(plan, Side.SIM)
    n = plan_with(calibrations=[], control=control)
    assert len(episodes) == 4 * len(schedule(n, Side.SIM)) == len({e.base_id for e in episodes})
    by_name = {name: [e for e in episodes if e.way.calibration == name] for name in NAMES}
    assert {len(own) for own in by_name.values()} == {len(episodes) // 4}
    ids = {e.base_id: e for e in episodes}
    for episode in episodes:
        if episode.control_id:
            assert ids[episode.control_id].way == episode.way
    fast = planned_ids(plan, Side.SIM)
    assert fast.base_ids == [e.base_id for e in episodes]
    assert fast.policies == [e.policy for e in episodes]
    assert fast.numbers == [e.index for e in episodes]


def test_physical_episodes_and_plans_without_calibrations_are_as_they_were():
    plan = plan_with(sides=["sim", "twin"])
    plain = plan_with(sides=["sim", "twin"], calibrations=[])
    assert schedule(plan, Side.TWIN) == schedule(plain, Side.TWIN)
    assert all(e.way.calibration is None for e in schedule(plain, Side.SIM))
    twins = {
        simulated_id(e.base_id, Side.TWIN, way)
        for e in schedule(plan, Side.TWIN)
        for way in plan.ways(Side.SIM)
    }
    assert twins == {e.base_id for e in schedule(plan, Side.SIM)}


def test_constants_go_to_the_environment():
    plan = plan_with()
    given = {
        e.way.calibration: environment_keywords(plan.tasks[0], e).get("constants")
        for e in schedule(plan, Side.SIM)
        if e.seed == 1000
    }
    assert given["nominal"] is None
    assert given["identified/rec-2"] == {"cart_mass_kg": 1.4}
    assert 0.8 <= given["broad"]["cart_mass_kg"] <= 1.2


def test_a_seed_draws_the_same_whatever_else_is_drawn():
    one = Way(calibration="a", ranges=(("mass", 0.8, 1.2),))
    both = Way(calibration="b", ranges=(("gain", 0.5, 2.0), ("mass", 0.8, 1.2)))
    assert one.drawn(7)["mass"] == both.drawn(7)["mass"] != one.drawn(8)["mass"]
    assert both.drawn(7)["gain"] - 0.5 != pytest.approx((both.drawn(7)["mass"] - 0.8) * 1.5 / 0.4)


@given(st.integers(0, 2**31), st.floats(0.01, 10.0), st.floats(1.01, 100.0))
def test_draws_stay_within_their_range(seed, low, factor):
    for logarithmic in ((), ("mass",)):
        way = Way(ranges=(("mass", low, low * factor),), logarithmic=logarithmic)
        drawn = way.drawn(seed)["mass"]
        assert low * (1 - 1e-12) <= drawn <= low * factor * (1 + 1e-12)


def test_half_of_the_draws_lie_below_the_middle():
    n = 2000
    even = Way(ranges=(("mass", 1.0, 9.0),))
    log = Way(ranges=(("mass", 1.0, 9.0),), logarithmic=("mass",))
    assert sum(even.drawn(seed)["mass"] < 5.0 for seed in range(n)) == pytest.approx(n / 2, abs=100)
    assert sum(log.drawn(seed)["mass"] < 3.0 for seed in range(n)) == pytest.approx(n / 2, abs=100)


def test_the_locked_text_is_read_back_as_it_is():
    plan = plan_with()
    assert parse_plan(locked_text(plan), source="p") == plan


def test_a_snapshot_that_was_not_read_is_no_simulator():
    plan = plan_with(calibrations=["identified.yaml"])
    assert plan.calibrations == (CalibrationPlan(file="identified.yaml"),)
    with pytest.raises(PlanError, match=r"identified\.yaml is read when `robo-eval run`"):
        schedule(plan, Side.SIM)
    assert schedule(plan, Side.TWIN)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"calibrations": ["nominal", "nominal"]}, "calibrations: .*share a name, 'nominal'"),
        ({"calibrations": [{"name": "x"}]}, "one of three"),
        ({"calibrations": [{"name": "nominal", "file": "x.yaml"}]}, "one of three"),
        ({"calibrations": [{"randomised": {"m": [1, 2]}}]}, "name: is missing"),
        ({"calibrations": [{"name": "x", "randomised": {"m": [2, 2]}}]}, r"randomised\.m: 2 must"),
        ({"calibrations": [{"file": "x.yaml", "play": []}]}, "play"),
        ({"calibrations": [{"file": "x.yaml", "play": ["noise", "mass"]}]}, "play.1"),
        ({"sides": ["twin"]}, "sides: must name sim"),
        ({"tasks": [{"kwargs": {"constants": {}}}]}, r"tasks\.0\.kwargs: `calibrations` choose"),
        (
            {
                "tasks": [{"levels": [0]}],
                "policies": ["a"],
                "stopping": {"compare": ["a"], "rate": 0.5},
            },
            r"stopping\.rate: .* several calibrations",
        ),
    ],
)
def test_what_cannot_be_chosen_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        plan_with(**changes)
