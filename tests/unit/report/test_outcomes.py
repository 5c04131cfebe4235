"""What the plan did to a robot is told as that, and a plan with axes counts its conditions."""

from types import SimpleNamespace

import pandas as pd
import pytest

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


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        ([1, 3], ", played 9 February 2026, all started within 2 h 0 min"),
        ([1, 30], ", played 9 February 2026 to 10 February 2026, all started within 29 h 0 min"),
        ([1, 700], ", played 9 February 2026 to 10 March 2026, all started within 699 h 0 min"),
        (
            [-2000, 1],
            ", played 17 November 2025 to 9 February 2026, all started within 2001 h 0 min",
        ),
    ],
)
def test_both_days_are_shown_where_trials_run_over_several(hours: list[int], text: str) -> None:
    day = pd.Timestamp("2026-02-09", tz="UTC").value
    starts = [day + hour * 3_600_000_000_000 for hour in hours]
    plan = parse_plan("{name: x, tasks: [{levels: [0]}], policies: [nothing]}", source="plan")
    shown = synopsis(plan, pd.DataFrame({"start_ns": pd.array(starts, dtype="Int64")}))
    assert shown.replace("\N{NO-BREAK SPACE}", " ").endswith(text)
