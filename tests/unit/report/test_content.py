"""Tests of what a report says about episodes, from rows to sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from robo_eval.core.episode import COLUMNS, Episode
from robo_eval.core.kinds import Arm, EndReason, Side
from robo_eval.core.plan import ImportPlan, TrialPlan
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.effects import DECIDED, effects_of
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.summary import TrialSummary, summarise
from robo_eval.page.words import duration
from robo_eval.report.clips import Chosen, choose, clips
from robo_eval.report.content import make_report
from robo_eval.report.facts import conditions
from robo_eval.report.model import Report, TrialData
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
    return episodes_frame(pd.DataFrame(rows, columns=list(COLUMNS)), plan)


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


def report_of(
    quality: Outcome,
    *,
    plan: TrialPlan | None = None,
    status: str = "complete",
    change: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame,
    log_problem: str | None = None,
) -> tuple[Report, TrialSummary]:
    plan = plan or plan_of()
    frame = change(rows_of(plan, quality))
    summary = summarise(frame, plan, config=MetricConfig(resamples=200))
    summary = replace(summary, verified=log_problem is None, log_problem=log_problem)
    data = TrialData(
        path=Path("nowhere/trial"),
        plan=plan,
        plan_text="name: a trial\n",
        plan_digest="2" * 64,
        status=status,
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
    (answer,) = report.answers
    assert answer.text == "good did better than the other."
    assert answer.numbers.startswith("good succeeded in 16 of 16 (100\xa0%, 95\xa0% 0.63 to 1.00)")
    assert answer.numbers.endswith("good did better than bad: +100 points, p = 0.008, 8 seeds.")
    assert report.warnings == []


def test_policies_that_were_not_told_apart_are_not_ranked() -> None:
    report, _ = report_of(lambda p, _l, i: float((p == "good") == (i % 2 == 0)))
    (answer,) = report.answers
    assert answer.text == "It was not shown who does best: good and bad may each be it."
    assert "good was not told apart from bad: 0 points, p = 1.000, 8 seeds." in answer.numbers
    imported = ImportPlan(file="their.csv", sha256="3" * 64, rows=16)
    alike, _ = report_of(
        lambda _p, _l, i: float(i % 2),
        plan=plan_of().model_copy(update={"imported": imported}),
        change=lambda frame: frame[frame["level"] == 0],
    )
    assert alike.answers[0].text == "bad and good ended alike in every pair."


def test_a_simulator_that_promises_too_much_is_told_with_where_the_gap_is() -> None:
    def matched(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame[frame["policy"] == "good"]
        pair = [
            f"{level}-{seed}" for level, seed in zip(frame["level"], frame["seed"], strict=True)
        ]
        seeds = np.arange(len(frame))
        sides = []
        for side in ("sim", "twin"):
            own = frame.assign(side=side, pair_id=pair, seed=seeds, exposure_s=1.0)
            own["episode_id"] = own["episode_id"] + side
            fails = (own["level"] == 1) & (side == "twin")
            own["quality"] = np.where(fails, 0.0, 1.0)
            own["success"] = own["quality"] == 1.0
            own["end_reason"] = np.where(fails, "failure", "success")
            sides.append(own)
        return pd.concat(sides, ignore_index=True)

    imported = ImportPlan(file="their.csv", sha256="3" * 64, rows=32)
    plan = plan_of(("good",), seeds=8).model_copy(update={"imported": imported})
    report, _ = report_of(lambda _p, _l, _i: 1.0, plan=plan, change=matched)
    (answer,) = report.answers
    assert answer.question == "Does the simulator tell how the twin does?"
    assert answer.text == (
        "No, it promised too much. The simulator promised 100\xa0%; the twin achieved 50\xa0%."
    )
    assert "−50 points, 95\xa0% " in answer.numbers
    assert "p = 0.005; 16 pairs." in answer.numbers
    assert "All of the gap is level 1" in answer.numbers


def test_no_winner_where_episodes_crashed() -> None:
    """13 of 20 crash, the rest succeed: neither a rate nor a verdict, and all of it is said."""
    plan = plan_of(("crashing", "bad"), seeds=10)
    crash = iter([None] * 13 + [1.0] * 7)
    report, _ = report_of(lambda p, _l, _i: next(crash) if p == "crashing" else 0.5, plan=plan)
    assert report.answers == []
    assert "7 of 20 scored (13 fault)" in report.warnings[0]
    assert not report.results[0].numbers.is_sayable
    assert report.results[0].missing_text == "13 missing (13 fault)"


def test_numbers_are_those_of_the_summary() -> None:
    report, summary = report_of(noisy({"good": 0.8, "bad": 0.2}))
    assert [result.numbers for result in report.results] == list(summary.policies)
    assert [cell.numbers for cell in report.cells] == list(summary.cells)
    for group, body in zip(report.effects, summary.bodies, strict=True):
        shown = {row.name: (row.estimate.value, row.is_hollow) for row in group.rows}
        assert shown == {
            str(effect.level): (effect.difference.value, effect.verdict not in DECIDED)
            for effect in effects_of(
                body.frame, body.plan, body.config, body.rows, of=body.key
            ).levels
        }
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
    rows = rows.drop(columns="task_variant")
    rows = episodes_frame(rows, plan)
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
    assert "No episode of this trial left a trace that can be drawn." in render(report, [])


def test_a_trace_that_was_changed_is_neither_drawn_nor_kept_quiet(tmp_path: Path) -> None:
    trace = tmp_path / "e.mcap"
    trace.write_bytes(b"not what was logged")
    item = Chosen(
        episode_id="e", trace=trace, sha256="0" * 64, task=TASK, label="", caption="", outcome=""
    )
    assert clips([item]) == ([], ["the trace of e was changed"])


def test_the_tally_says_what_was_planned_scored_and_missing() -> None:
    plan = plan_of(("crashing", "bad"), seeds=10)
    crash = iter([None] * 13 + [1.0] * 7)
    report, _ = report_of(lambda p, _l, _i: next(crash) if p == "crashing" else 0.5, plan=plan)
    assert report.tally == "27 of 40 planned episodes scored, 13 missing (13 fault)."
    assert (report.badge.text, report.badge.tone) == ("complete, 13 without a score", "open")
    whole, _ = report_of(lambda _p, _l, _i: 0.5)
    assert whole.tally == "32 of 32 planned episodes scored, none missing."
    assert (whole.badge.text, whole.badge.tone) == ("complete", "done")


def test_an_interrupted_trial_says_how_far_it_came_and_how_to_go_on() -> None:
    report, _ = report_of(
        lambda _p, _l, _i: 0.5,
        status="interrupted at 3/32",
        change=lambda frame: frame.iloc[:3],
    )
    assert report.warnings[0] == (
        "Interrupted at 3 of 32 planned episodes; nothing is being played now. To play what is"
        " missing: robo-eval resume trial"
    )
    assert "3 of 16 scored (13 not played)" in report.warnings[1]
    assert report.answers == []
    assert report.badge.tone == "open"
    assert report.commands[0] == ("Play what is missing", "robo-eval resume trial")


@pytest.mark.parametrize(
    ("status", "warning"),
    [
        ("interrupted at 0/32", "No episode has been played yet, 32 are planned. To play"),
        ("running at 0/32", "A run is under way: this page shows the 0 of 32 planned episodes"),
    ],
)
def test_a_trial_without_episodes_is_clear(status: str, warning: str) -> None:
    report, _ = report_of(
        lambda _p, _l, _i: 0.5, status=status, change=lambda frame: frame.iloc[:0]
    )
    assert report.warnings[0].startswith(warning)
    assert report.tally == "0 of 32 planned episodes scored, 32 missing (32 not played)."
    assert report.characteristic_reason == "Not asked for."
    page = render(report, [])
    assert "No cell has a scored episode." in page
    assert 'data-figure="heat_map"' not in page
    assert "0 of the 0" not in page


def unknown_times(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(
        start_ns=None,
        duration_s=np.nan,
        exposure_s=np.nan,
        ticks=pd.array([pd.NA] * len(frame), "Int64"),
    )


def test_times_that_nobody_recorded_are_not_shown_as_0() -> None:
    report, _ = report_of(
        lambda p, _l, i: 1.0 if p == "good" and i % 2 else 0.3, change=unknown_times
    )
    assert report.lengths == []
    assert report.lengths_reason == "The length of the episodes is not recorded in this log."
    assert report.synopsis.endswith(", sim, time not recorded")
    facts = dict(report.conditions)
    assert facts["Started"] == facts["Task time"] == "not recorded"
    assert facts["Exposure of the robot"] == "not recorded"
    page = render(report, [])
    assert "0.00 s" not in page
    assert "1970" not in page
    assert page.count("not recorded") >= 4


def test_a_policy_without_recorded_times_is_told_apart() -> None:
    def half(frame: pd.DataFrame) -> pd.DataFrame:
        is_bad = frame["policy"] == "bad"
        return frame.assign(duration_s=frame["duration_s"].mask(is_bad))

    report, _ = report_of(lambda _p, _l, _i: 0.5, change=half)
    assert [item.policy for item in report.lengths] == ["good"]
    assert "of bad is not recorded" in report.lengths_reason
    assert "not recorded for 16 attempts" in dict(report.conditions)["Task time"]


def test_drawn_episodes_of_unknown_length_say_nothing_of_it() -> None:
    plan = plan_of()
    frame = unknown_times(rows_of(plan, lambda p, _l, i: 1.0 if p == "good" and i else 0.3))
    chosen = choose(
        frame, summarise(frame, plan, config=MetricConfig(resamples=200)).cells, Path("trial")
    )
    assert chosen
    for item in chosen:
        assert re.search(r"[0-9] s\b", item.label + item.caption) is None
        assert "tick" not in item.caption
        assert "nan" not in item.caption.lower()


def test_a_log_that_does_not_verify_gets_no_verdict() -> None:
    def clear(policy: str, _level: int, _index: int) -> float:
        return 1.0 if policy == "good" else 0.3

    sound, _ = report_of(clear)
    assert sound.log is not None
    assert sound.log.text == "log verified (32 rows)"
    assert sound.answers
    report, _ = report_of(clear, log_problem="row 7 (x) was changed")
    assert report.log is not None
    assert report.log.text == "this log does not verify: row 7 (x) was changed"
    assert report.answers == []
    assert report.badge.tone == "bad"
    assert ("Check of the log", report.log.text) in report.provenance


def imported_plan() -> TrialPlan:
    return plan_of().model_copy(
        update={"imported": ImportPlan(file="their.csv", sha256="3" * 64, rows=32)}
    )


def test_seeds_are_called_the_same_only_where_conditions_share_them() -> None:
    plan = plan_of(seeds=4)
    own = plan.model_copy(update={"seeds": plan.seeds.model_copy(update={"shared": False})})
    none = rows_of(plan, lambda *_: 0.5).iloc[:0]
    told = [dict(conditions(one, none, None))["Seeds"] for one in (plan, own)]
    assert told == [
        "1000 to 1003, the same for every condition and policy",
        "1000 to 1007, 4 of them for each condition, the same for every policy",
    ]


def test_action_modes_and_told_success_are_said() -> None:
    plan = plan_of()
    tasks = [one.model_copy(update={"success": "is_success"}) for one in plan.tasks]
    policies = [one.model_copy(update={"action_mode": "ee_delta"}) for one in plan.policies]
    changed = plan.model_copy(update={"tasks": tuple(tasks), "policies": tuple(policies)})
    told = dict(conditions(changed, rows_of(plan, lambda *_: 0.5).iloc[:0], None))
    assert "success as the environment's info['is_success'] says" in told["Task"]
    assert "(action_mode='ee_delta')" in told["Policies"]


def test_an_import_claims_neither_seeds_nor_an_order_nor_a_replay() -> None:
    report, _ = report_of(lambda _p, _l, _i: 0.5, plan=imported_plan())
    facts = dict(report.conditions)
    assert not {"Seeds", "Order", "Matched control"} & facts.keys()
    assert facts["Imported from"] == f"their.csv, SHA-256 {'3' * 64}"
    assert "imported from their.csv" in report.synopsis
    assert "seeds" not in report.synopsis
    assert "imported episodes scored" in report.tally
    assert not any(command.startswith("robo-eval run") for _, command in report.commands)


def test_how_episodes_ended_adds_up_and_troubles_are_told() -> None:
    def stopped(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.copy()
        rows = frame.index[(frame["policy"] == "bad") & (frame["quality"] < 1)][:2]
        frame.loc[rows, "end_reason"] = EndReason.SAFETY_STOP.value
        frame.loc[rows, "end_detail"] = "force above\n 40 N"
        frame.loc[rows, "interventions"] = 1
        return frame

    report, summary = report_of(
        lambda p, _l, i: None if i == 0 else 1.0 if p == "good" else 0.3, change=stopped
    )
    for item, row in zip(report.outcomes, summary.policies, strict=True):
        assert item.total == row.coverage.expected
        assert item.counts["missing"] == row.coverage.expected - row.coverage.scored
    bad = report.outcomes[1]
    assert bad.failed == {"failure": 12, "safety stop": 2}
    assert bad.interventions == 2
    assert [(t.policy, t.end, t.n) for t in report.troubles] == [
        ("good", "fault", 2), ("bad", "fault", 2), ("bad", "safety stop", 2),
    ]  # fmt: skip
    assert report.troubles[2].detail == "force above 40 N"
    page = render(report, [])
    assert "12 (12 failure" not in page
    assert "(12 failure, 2 safety stop)" in page
    assert "2 attempts ended by" in page


def test_equal_numbers_have_the_interval_that_their_number_allows() -> None:
    report, _ = report_of(lambda p, _l, i: 0.5 if p == "good" else 0.4, plan=plan_of(seeds=2))
    page = render(report, [])
    assert "[-]" not in page.split("application/octet-stream")[0]
    assert "0.08" in page.split("performance 0.50")[1][:40]
    full = render(report_of(noisy({"good": 0.8, "bad": 0.2}))[0], [])
    assert "[-]" not in full.split("application/octet-stream")[0]


@pytest.mark.filterwarnings("error")
def test_times_without_a_finite_sum_are_said_to_be_so() -> None:
    """Metrics refuse such times of today, but rows of an older log are described all the same."""
    plan = plan_of()
    frame = rows_of(plan, lambda _p, _l, _i: 0.5).assign(duration_s=1e308)
    assert dict(conditions(plan, frame, None))["Task time"] == "not finite in all"
    assert duration(float("inf")) == duration(float("nan")) == "not finite"


def test_episodes_of_unknown_length_are_said_to_be_left_out_of_the_line() -> None:
    def lost(frame: pd.DataFrame) -> pd.DataFrame:
        is_lost = (frame["policy"] == "bad") & (frame["seed"] < 1003)
        return frame.assign(duration_s=frame["duration_s"].mask(is_lost))

    report, _ = report_of(lambda _p, _l, i: 1.0 if i == 0 else 0.3, change=lost)
    assert report.lengths_note.startswith(
        "Lines and medians leave out 6 episodes of bad (4 failed), whose length is not recorded;"
    )
    assert report.lengths_note in render(report, [])
    assert report_of(lambda _p, _l, _i: 0.5)[0].lengths_note == ""


def test_commands_say_from_where_and_what_python_must_find() -> None:
    # These reports have fewer resamples than their plans ask for.
    settings = " Settings came from a file: give the same --config."
    report, _ = report_of(lambda _p, _l, _i: 0.5)
    assert report.commands_note == (
        "Give these commands in the folder that holds trial. Playing also needs the module x, which"
        " the plan names: unless installed or in that folder, PYTHONPATH must hold the folder that"
        f" it is in.{settings}"
    )
    assert report.commands_note in render(report, [])
    plan = plan_of()
    own = [
        plan.policies[0].model_copy(
            update={"factory": "robo_eval.agents.cartpole3d.balancer:Balancer"}
        )
    ]
    inside, _ = report_of(
        lambda _p, _l, _i: 0.5,
        plan=plan_of(("good",)).model_copy(update={"policies": tuple(own)}),
    )
    assert inside.commands_note == f"Give these commands in the folder that holds trial.{settings}"
    imported, _ = report_of(lambda _p, _l, _i: 0.5, plan=imported_plan())
    assert (
        imported.commands_note == f"Give these commands in the folder that holds trial.{settings}"
    )


@pytest.mark.parametrize("seed", range(10))
def test_every_claim_of_a_page_is_one_of_the_tests(seed: int) -> None:
    """Ten trials of three policies that differ by chance, or by more."""
    rng = np.random.default_rng(seed)
    rates = dict(zip(("a", "b", "c"), rng.uniform(0.2, 1.0, 3), strict=True))
    report, _ = report_of(
        lambda policy, _l, _i: float(rng.random() < rates[policy]),
        plan=plan_of(("a", "b", "c"), seeds=15),
    )
    page = render(report, []).split("application/octet-stream")[0]
    text = re.sub(r"<[^>]+>", " ", page)
    pairs = report.standings[0].found.pairs
    shown = {pair.text for pair in pairs if pair.winner is not None}
    claimed = set(re.findall(r"\b([abc] did (?:better|worse) than [abc])\b", text))
    assert claimed == shown
    winners = {
        name for name in rates if sum(v.startswith(f"{name} did better") for v in shown) == 2
    }
    best = set(re.findall(r"\b([abc]) did better than each of the others", text))
    assert best == winners
    assert ("It was not shown who does best" in text) is (not winners)
    for word in ("trend", "borderline", "significant"):
        assert word not in text.lower()
