"""Tests of what a report says about episodes, from rows to sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from robo_eval.core.episode import COLUMNS, Episode
from robo_eval.core.kinds import Arm, EndReason, Side
from robo_eval.core.plan import TrialPlan
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.summary import TrialSummary, summarise
from robo_eval.report.clips import choose
from robo_eval.report.content import TrialData, make_report
from robo_eval.report.lengths import lengths_of
from robo_eval.report.model import Report
from robo_eval.report.page import render

TASK = "RoboEval/CartPole3D-v0"
Outcome = Callable[[str, int, int], float | None]


def plan_of(policies: Sequence[str] = ("good", "bad"), *, seeds: int = 8) -> TrialPlan:
    return TrialPlan.model_validate(
        {
            "name": "a trial",
            "tasks": [{"env": TASK, "levels": [0, 1], "family": "balancing"}],
            "policies": [{"name": name, "factory": "x:y"} for name in policies],
            "episodes": seeds,
            "control": True,
        }
    )


def rows_of(plan: TrialPlan, quality: Outcome) -> pd.DataFrame:
    """Every planned episode with the quality that `quality(policy, level, index)` says.

    None is an episode that ended by a fault.
    """
    rows = []
    for policy in plan.policies:
        for level in (0, 1):
            for index in range(plan.episodes):
                value = quality(policy.name, level, index)
                rows.append(asdict(_episode(policy.name, level, index, value)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _episode(policy: str, level: int, index: int, value: float | None) -> Episode:
    end = EndReason.FAULT if value is None else EndReason.FAILURE
    end = EndReason.SUCCESS if value == 1.0 else end
    ticks = round(200 * (value or 0.0))
    return Episode(
        episode_id=f"l{level}-{policy}-{index}",
        control_id=f"l0-{policy}-{index}" if level else None,
        arm=Arm.MAIN,
        plan_digest="0" * 64,
        side=Side.SIM,
        task=TASK,
        family="balancing",
        level=level,
        difficulty="easy",
        profile="paper",
        seed=1000 + index,
        policy=policy,
        policy_digest="1" * 64,
        start_ns=1_700_000_000_000_000_000 + index,
        duration_s=ticks * 0.02,
        ticks=ticks,
        episode_return=value,
        quality=value,
        success=None if value is None else value == 1.0,
        end_reason=end,
        novelty={"name": "cart_mass" if level else "none"},
        software="test",
        trace_uri=f"traces/l{level}-{policy}-{index}.mcap" if value is not None else None,
    )


def report_of(quality: Outcome, *, plan: TrialPlan | None = None) -> tuple[Report, TrialSummary]:
    plan = plan or plan_of()
    frame = rows_of(plan, quality)
    summary = summarise(frame, plan, config=MetricConfig(resamples=200))
    data = TrialData(
        path=Path("nowhere/trial"),
        plan=plan,
        plan_text="name: a trial\n",
        plan_digest="2" * 64,
        status="complete",
        manifest=None,
        frame=frame,
    )
    return make_report(data, summary), summary


def noisy(mean: dict[str, float]) -> Outcome:
    rng = np.random.default_rng(5)
    return lambda policy, _level, _index: float(
        np.clip(mean[policy] + rng.normal(0, 0.02), 0, 0.99)
    )


def test_a_clear_winner_is_named_with_the_paired_difference() -> None:
    report, _ = report_of(lambda policy, _l, i: 1.0 if policy == "good" else 0.3 + 0.01 * i)
    assert report.verdict.startswith("good survived 16 of 16 scored episodes (1.00, 95\xa0%")
    assert "above bad" in report.verdict
    assert report.warnings == []


def test_policies_that_do_not_differ_are_not_ranked() -> None:
    report, _ = report_of(noisy({"good": 0.5, "bad": 0.5}))
    assert "does not separate" in report.verdict


def test_no_winner_where_episodes_crashed() -> None:
    """13 of 20 crash, the rest succeed: neither a rate nor a verdict, and all of it is said."""
    plan = plan_of(("crashing", "bad"), seeds=10)
    crash = iter([None] * 13 + [1.0] * 7)
    report, _ = report_of(lambda p, _l, _i: next(crash) if p == "crashing" else 0.5, plan=plan)
    assert report.verdict == ""
    assert "7 of 20 scored (13 fault)" in report.warnings[0]
    assert not report.results[0].numbers.is_sayable
    assert report.results[0].missing_text == "13 missing (13 fault)"


def test_a_tie_in_one_number_of_episodes_gets_no_interval_and_no_claim() -> None:
    report, _ = report_of(lambda p, _l, _i: 0.5 if p == "good" else 0.4, plan=plan_of(seeds=1))
    assert "cannot be said" in report.verdict


def test_numbers_are_those_of_the_summary() -> None:
    report, summary = report_of(noisy({"good": 0.8, "bad": 0.2}))
    assert [result.numbers for result in report.results] == list(summary.policies)
    assert [cell.numbers for cell in report.cells] == list(summary.cells)
    assert [effect.difference for effect in report.effects] == [
        effect.difference for effect in summary.effects.levels
    ]
    assert {(cell.column, cell.column_name) for cell in report.cells} == {
        ("0", "no novelty"), ("1", "cart mass"),
    }  # fmt: skip


def test_sides_are_told_apart() -> None:
    plan = plan_of(("good",))
    frame = rows_of(plan, lambda _p, _l, _i: 0.5)
    twin = frame.assign(side=Side.TWIN, episode_id="t" + frame["episode_id"], control_id=None)
    both = pd.concat([frame, twin], ignore_index=True)
    plan = plan.model_copy(update={"sides": (Side.SIM, Side.TWIN)})
    summary = summarise(both, plan, config=MetricConfig(resamples=200))
    data = TrialData(
        path=Path("x"), plan=plan, plan_text="", plan_digest="", status="complete", manifest=None,
        frame=both,
    )  # fmt: skip
    report = make_report(data, summary)
    assert report.policies == ["good (sim)", "good (twin)"]


def test_tasks_without_levels_are_named_instead() -> None:
    plan = TrialPlan.model_validate(
        {
            "name": "foreign",
            "tasks": [{"env": "CartPole-v1"}, {"env": "MountainCar-v0"}],
            "policies": [{"name": "good", "factory": "x:y"}],
            "episodes": 8,
        }
    )
    rows = rows_of(plan, lambda _p, _l, _i: 0.5)
    rows["task"] = ["CartPole-v1"] * 8 + ["MountainCar-v0"] * 8
    rows = rows.assign(level=None, difficulty=None, profile=None, family="", control_id=None)
    summary = summarise(rows, plan, config=MetricConfig(resamples=200))
    data = TrialData(
        path=Path("x"), plan=plan, plan_text="", plan_digest="", status="complete", manifest=None,
        frame=rows,
    )  # fmt: skip
    report = make_report(data, summary)
    assert [(c.column, c.panel) for c in report.cells] == [
        ("CartPole-v1", ""), ("MountainCar-v0", ""),
    ]  # fmt: skip
    assert report.verb == "succeeded"
    page = render(report, [])
    assert '<th scope="col">task</th><th scope="col" data-policy="good">' in page
    assert "Level 0" not in page


def test_lengths_fall_only_where_episodes_fail() -> None:
    rows = pd.DataFrame({"duration_s": [1.0, 2.0, 4.0, 4.0], "success": [False, False, True, True]})
    lengths = lengths_of(rows, "p")
    assert lengths is not None
    assert list(lengths.time_s) == [0.0, 1.0, 2.0, 4.0]
    assert list(lengths.unfailed) == [1.0, 0.75, 0.5, 0.5]
    assert lengths.median_s == 3.0
    longer = lengths_of(rows, "p", end_s=6.0)
    assert longer is not None
    assert (longer.time_s[-1], longer.unfailed[-1]) == (6.0, 0.5)
    assert lengths_of(rows.iloc[:0], "p") is None


def test_drawn_episodes_pair_a_success_and_a_failure_of_one_seed() -> None:
    plan = plan_of()

    def quality(policy: str, level: int, index: int) -> float:
        if level == 0:
            return 1.0 if policy == "good" or index > 5 else 0.9
        return 1.0 if policy == "good" and index == 3 else 0.1

    frame = rows_of(plan, quality)
    summary = summarise(frame, plan, config=MetricConfig(resamples=200))
    chosen = choose(frame, summary.cells, Path("trial"))
    # Level 0, where 10 of 16 succeed, divides the policies more than level 1, where 1 of 16 does.
    assert [item.episode_id for item in chosen] == [
        "l0-bad-0", "l0-good-0", "l1-bad-3", "l1-good-3",
    ]  # fmt: skip
    assert "seed 1003" in chosen[2].caption
    assert "level 1 (cart mass), easy" in chosen[2].label
    assert chosen[3].trace == Path("trial/traces/l1-good-3.mcap")


def test_an_unreadable_trace_is_left_out_and_the_report_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    report, _ = report_of(lambda policy, _l, _i: 1.0 if policy == "good" else 0.3)
    assert report.clips == []
    assert "left out of the report" in caplog.text
    assert report.clips_reason
