"""What the plan did to a robot is told as that, and a plan with axes counts its conditions."""

from types import SimpleNamespace

import pandas as pd

from robo_eval.core.kinds import Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.report.facts import synopsis
from robo_eval.report.outcomes import troubles

STOPS = """
name: stops
tasks: [{levels: [0, 9]}]
policies: [nothing]
episodes: 3
sides: [sim, twin]
injections: [{fault: estop, episode: 1, level: 9}, {fault: command_dropout, episode: 0}]
"""


def test_an_emergency_stop_that_the_plan_had_pressed_is_told_as_one() -> None:
    plan = parse_plan(STOPS, source="plan")
    episodes = list(schedule(plan, Side.TWIN))
    frame = pd.DataFrame(
        {
            "base_id": [one.base_id for one in episodes],
            "side": "twin",
            "policy": "nothing",
            "arm": "main",
            "end_reason": "safety_stop",
            "end_detail": "guard: estop",
        }
    )
    result = SimpleNamespace(
        policy="nothing", numbers=SimpleNamespace(side="twin", policy="nothing")
    )
    found = {one.end: one.n for one in troubles([result], frame, plan)}
    assert found == {"safety stop": 5, "safety stop that the plan had provoked": 1}


def test_a_plan_with_axes_counts_its_conditions() -> None:
    plan = parse_plan(
        "{name: x, tasks: [{env: RoboEval/PickPlace-v0, axes: {payload: [8, 11], delay: [0.2]}}],"
        " policies: [arm-still, pick-place], episodes: 5}",
        source="plan",
    )
    n = len(list(schedule(plan, Side.SIM)))
    text = synopsis(plan, pd.DataFrame({"start_ns": pd.array([None] * n, dtype="Int64")}))
    assert text.startswith(f"{n} attempts (2 policies × 4 conditions × 5 seeds)")
    assert n == 2 * 4 * 5
