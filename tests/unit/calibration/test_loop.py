"""Which episodes of a trial are fitted, which compared, and what they are compared with."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from robo_eval.core.errors import InputError, UnknownNameError
from robo_eval.core.kinds import Side
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import schedule
from robo_eval.core.task import task_of
from robo_eval.log.planned_row import row_for
from robo_eval_calibration.loop import chosen, physical_rows, plan_of, ranges_of
from robo_eval_calibration.recordings import Gathered, Recording

TASK = task_of("RoboEval/CartPole3D-v0")
HIDDEN = {"cart_mass_kg": 1.3}


def trial_of(side=Side.SIM, **changed):
    plan = {
        "name": "stand-in", "episodes": 6, "policies": ["balancer"], "sides": [side],
        "tasks": [{"levels": [0], "kwargs": {"balls": 0, "constants": HIDDEN}}],
    }  # fmt: skip
    made = TrialPlan.model_validate(plan | changed)
    return SimpleNamespace(plan=made, plan_digest="d" * 64, path=Path("trial"))


def gathered_of(trial, side=Side.SIM, recorded=6):
    scored = [
        (
            row_for(
                one, trial.plan, trial.plan_digest, policy_digest="p", start_ns=1, duration_s=4.0,
                ticks=200, episode_return=1.0, quality=1.0, success=True, end_reason="success",
                software="s", robot="gantry",
            ),
            one,
        )
        for one in schedule(trial.plan, side)
    ]  # fmt: skip
    recordings = [
        Recording(
            id=row.episode_id, env=TASK.env, side=side.value, stamp_ns=np.arange(2),
            states=np.full((2, 8), float(number)), commands=np.zeros((1, 2)),
        )
        for number, (row, _) in enumerate(scored[:recorded])
    ]  # fmt: skip
    return Gathered(task=TASK, recordings=recordings, left_out={}, scored=scored)


def test_what_is_fitted_is_not_compared():
    told = chosen(gathered_of(trial_of(), recorded=4), (1, 2, 4))
    fitted = {one.id for one in told.fitted}
    compared = {row.episode_id for row, _ in told.compared}
    assert len(fitted) == 4
    assert len(compared) == 2  # episodes without a recording count as well
    assert not fitted & compared
    assert told.ways == 2 + 3 * (1 + 2 + 4)


def test_fewer_recordings_are_the_first_of_more():
    few, more = (chosen(gathered_of(trial_of()), sizes) for sizes in ((1, 2), (4,)))
    assert [one.id for one in few.fitted] == [one.id for one in more.fitted[:2]]


@pytest.mark.parametrize(("sizes", "recorded"), [((8,), 6), ((5,), 6), ((4,), 3)])
def test_too_few_recordings_say_how_many_are_needed(sizes, recorded):
    with pytest.raises(InputError, match=rf"needs {sizes[0] + 2} at least.*--recordings"):
        chosen(gathered_of(trial_of(), recorded=recorded), sizes)


def test_of_several_policies_one_is_chosen():
    gathered = gathered_of(trial_of(policies=["balancer", "random"]))
    with pytest.raises(InputError, match="--policy: balancer, random"):
        chosen(gathered, (1,))
    with pytest.raises(UnknownNameError, match="policy"):
        chosen(gathered, (1,), policy="baalncer")
    told = chosen(gathered, (1,), policy="random")
    assert {row.policy for row, _ in told.compared} == {"random"}


def test_a_simulator_without_hidden_constants_is_played_beside_snapshots():
    trial = trial_of()
    told = chosen(gathered_of(trial), (1, 2))
    plan = plan_of(trial, told, {"cart_mass_kg": (0.7, 1.3)}, {})
    assert plan.tasks[0].kwargs == {"balls": 0}
    assert plan.sides == (Side.SIM, Side.TWIN)
    assert [one.name for one in plan.calibrations] == [
        "nominal", "constants-1", "constants-2", "noise-1", "noise-2", "force-1", "force-2",
        "randomised",
    ]  # fmt: skip
    assert plan.calibrations[-2].play == ("constants", "noise", "disturbance")
    other = plan_of(trial, told, {"cart_mass_kg": (0.6, 1.3)}, {})
    assert other.description != plan.description


@pytest.mark.parametrize("side", [Side.SIM, Side.TWIN])
def test_the_robots_half_is_that_of_the_trial(side):
    trial = trial_of(side, policies=["balancer", "random"])
    told = chosen(gathered_of(trial, side), (1,), policy="random")
    plan = plan_of(trial, told, {"cart_mass_kg": (0.7, 1.3)}, {})
    assert [one.name for one in plan.policies] == ["random"]
    rows = physical_rows(told, plan, "e" * 64)
    planned = {one.base_id: one.seed for one in schedule(plan, Side.TWIN)}
    assert {row.episode_id: row.seed for row in rows} == planned  # all that is planned
    for row, (was, _) in zip(rows, told.compared, strict=True):
        assert (row.side, row.plan_digest) == (Side.TWIN, "e" * 64)
        assert (row.success, row.initial_state) == (was.success, was.initial_state)
        # A stand-in draws its noise by its seed; its partner must not draw the same.
        assert row.seed not in {one.seed for one, _ in told.compared}


def test_what_is_drawn_is_within_bounds():
    found = ranges_of(TASK, {"push_gain": 1.0}, {"delay_s": (0.01, 0.05)})
    assert found["cart_mass_kg"] == pytest.approx((0.7, 1.3))
    assert found["slide_friction_n_s_m"] == (0.0, 2.0)
    assert found["delay_s"] == (0.01, 0.05)
    assert not {"push_gain", "position_noise_m", "force_noise_n"} & found.keys()
