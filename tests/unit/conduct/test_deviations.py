"""What is told of trials that were played otherwise than planned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.conduct.deviations import Beside, deviations_of, read_beside
from robo_eval.conduct.judging import second_sample
from robo_eval.conduct.steadiness import out_of_order, start_difference
from robo_eval.core.episode import Episode
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import TrialPlan, parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.log.evidence import Evidence, Pause, Rating
from robo_eval.log.planned_row import row_for
from robo_eval.metrics.deviation import KINDS, Deviation
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.stopped import series_of_table

DIGEST = "0" * 64
START = 1_772_000_000 * 10**9
TEXT = """
name: two policies on a twin
tasks: [{env: RoboEval/CartPole3D-v0, levels: [0, 9]}]
policies: [balancer, adaptive]
episodes: 4
sides: [twin]
retries: 1
"""


def plan_of(more: str = "", text: str = TEXT) -> TrialPlan:
    return parse_plan(text + more, source="plan")


def rows_of(plan: TrialPlan, side: Side = Side.TWIN) -> list[Episode]:
    """Every planned episode, played as planned, a minute each."""
    return [
        row_for(
            planned,
            plan,
            DIGEST,
            policy_digest=f"{planned.policy}" * 64,
            robot="gantry-twin",
            start_ns=START + place * 60 * 10**9,
            duration_s=4.0,
            exposure_s=4.0,
            ticks=200,
            episode_return=1.0,
            quality=1.0,
            success=True,
            end_reason=EndReason.SUCCESS,
            initial_state={"cart_position": [0.001 * planned.seed, 0.0]},
            initial_state_source="topic",
            software="robo-eval 1",
        )
        for place, planned in enumerate(schedule(plan, side))
    ]


def ended(row: Episode, reason: EndReason, detail: str | None = None) -> Episode:
    return replace(
        row, end_reason=reason, end_detail=detail, quality=None, success=None, episode_return=None
    )


def again(row: Episode, attempt: int = 2, later_s: float = 10_000.0) -> Episode:
    assert row.start_ns is not None
    return replace(
        row,
        episode_id=f"{row.episode_id}-a{attempt}",
        attempt=attempt,
        start_ns=row.start_ns + int(later_s * 1e9),
    )


def table_of(rows: Sequence[Episode], plan: TrialPlan) -> pd.DataFrame:
    cells = [
        {name: x.value if isinstance(x, Enum) else x for name, x in asdict(row).items()}
        for row in rows
    ]
    return episodes_frame(pd.DataFrame(cells, columns=list(Episode.__dataclass_fields__)), plan)


def found(rows: Sequence[Episode], plan: TrialPlan, **beside: Any) -> dict[str, Deviation]:
    table = table_of(rows, plan)
    series = series_of_table(table, plan)
    told = deviations_of(table, plan, DIGEST, beside=Beside(**beside), series=series)
    assert told is not None
    by_kind = {it.kind: it for it in told}
    assert len(by_kind) == len(told)
    return by_kind


def test_a_trial_played_as_planned_has_no_deviation() -> None:
    for more in (
        "",
        "order: interleaved",
        "control: true",
        "stopping: {compare: [adaptive, balancer]}",
    ):
        plan = plan_of(more)
        rows = rows_of(plan)
        if "stopping" in more:
            # The rule plays the seeds in order, whatever the order of the plan is.
            in_order = sorted(rows, key=lambda row: row.seed or 0)
            rows = [replace(row, start_ns=START + i) for i, row in enumerate(in_order)]
        assert found(rows, plan) == {}, more


def test_an_imported_trial_has_no_plan_to_depart_from() -> None:
    plan = plan_of(f"imported: {{file: lab.csv, sha256: '{DIGEST}', rows: 1}}")
    assert deviations_of(table_of([], plan), plan, DIGEST) is None


def test_what_was_never_attempted_is_counted_by_side_and_named() -> None:
    plan = plan_of()
    rows = rows_of(plan)
    told = found(rows[:10], plan)["not_attempted"]
    assert (told.count, told.side) == (6, "twin")
    assert told.episodes == tuple(row.episode_id for row in rows[10:15])
    assert told.first_ns is None


def test_a_simulated_half_waits_for_its_physical_half() -> None:
    plan = plan_of(text=TEXT.replace("[twin]", "[sim, twin]"))
    rows = rows_of(plan)
    partners = [
        replace(row, episode_id=row.episode_id[:-4] + "sim", side=Side.SIM, robot=None)
        for row in rows
    ]
    rows[3] = ended(rows[3], EndReason.LOST, "the guard died")
    told = found([*rows, *partners[:3], *partners[5:]], plan)
    assert told["not_attempted"].reasons == {"physical half without a score": 1}
    assert (told["not_attempted"].side, told["not_attempted"].count) == ("sim", 2)


def test_retries_say_what_they_came_after() -> None:
    plan = plan_of()
    rows = rows_of(plan)
    fault = "ValueError: no (policy.py:3, tick {})"
    more = [again(rows[0]), again(rows[1]), again(rows[1], 3), again(rows[2])]
    rows[0] = ended(rows[0], EndReason.FAULT, fault.format(5))
    rows[1] = ended(rows[1], EndReason.FAULT, fault.format(7))
    more[1] = ended(more[1], EndReason.LOST, "the recorder died")
    rows[2] = ended(rows[2], EndReason.VOID, "interrupted: stopped by SIGINT")
    told = found([*rows, *more], plan)
    assert told["retried"].count == 4
    assert told["retried"].reasons == {"after fault": 2, "after lost": 1, "after void": 1}
    assert told["retried"].text == ""
    assert told["fault"].reasons == {"ValueError: no": 2}
    assert told["fault"].episodes == (rows[0].episode_id, rows[1].episode_id)
    assert told["fault"].first_ns == rows[0].start_ns
    assert told["lost"].reasons == {"the recorder died": 1}
    assert told["void"].reasons == {"interrupted": 1}
    assert "void_unplanned" not in told
    often = ended(again(rows[1], 3), EndReason.LOST, "again")
    told = found([*rows, *more[:2], often, again(rows[1], 4), more[3]], plan)
    assert told["retried"].text == "", "what was lost on a twin is played again anyway"
    faults = [ended(again(rows[1], n), EndReason.FAULT, fault.format(n)) for n in (2, 3)]
    told = found([*rows, more[0], *faults, again(rows[1], 4), more[3]], plan)
    assert told["retried"].text == "1 tried more often than the plan's `retries` allows"


@pytest.mark.parametrize(
    ("end", "ticks", "never"),
    [
        (EndReason.FAILURE, 59, True),
        (EndReason.FAILURE, 60, True),
        (EndReason.FAILURE, 61, False),
        # The guard stopped the robot within the tick that had begun.
        (EndReason.SAFETY_STOP, 60, False),
        (EndReason.SAFETY_STOP, 59, True),
        (EndReason.SUCCESS, 200, False),
        (EndReason.FAILURE, None, False),
    ],
)
def test_an_injection_that_came_too_late_is_named(
    end: EndReason, ticks: int | None, never: bool
) -> None:
    plan = plan_of(
        "injections: [{fault: command_dropout, episode: 1, level: 0, policy: adaptive, tick: 60}]"
    )
    rows = rows_of(plan)
    name = "t0-l00-easy-adaptive-s1001-twin"
    (place,) = [i for i, row in enumerate(rows) if row.episode_id == name]
    rows[place] = replace(rows[place], end_reason=end, ticks=ticks, success=end == "success")
    told = found(rows, plan)
    assert ("injections" in told) == never
    if never:
        (found_one,) = (told["injections"],)
        assert (found_one.count, found_one.side, found_one.episodes) == (1, "twin", (name,))
        assert found_one.reasons == {"command_dropout was due at tick 60": 1}
    rows[place] = ended(rows[place], EndReason.FAULT, "no such camera")
    assert "injections" not in found(rows, plan), "a fault is counted as one"


def test_an_episode_of_two_authors_is_void_for_a_known_reason() -> None:
    plan = plan_of()
    rows = rows_of(plan)
    rows[4] = ended(
        rows[4], EndReason.VOID, "other_author: /bench/stray published on /bench/policy"
    )
    told = found(rows, plan)
    assert told["void"].reasons == {"other_author": 1}
    assert "void_unplanned" not in told


def test_a_void_reason_the_plan_does_not_name_is_a_finding_of_its_own() -> None:
    plan = plan_of()
    rows = rows_of(plan)
    rows[4] = ended(rows[4], EndReason.VOID, "the cat: walked in")
    rows[5] = ended(rows[5], EndReason.VOID)
    told = found(rows, plan)
    assert told["void"].reasons == {"no reason given": 1, "the cat": 1}
    assert told["void_unplanned"].count == 2
    assert "interrupted" in told["void_unplanned"].text
    from robo_eval.metrics.summary import summarise

    audit = [str(finding) for finding in summarise(table_of(rows, plan), plan).findings]
    assert any(rows[4].episode_id in text and "'the cat: walked in'" in text for text in audit)


def test_voids_by_a_late_computer_are_listed_apart_and_count_in_the_share() -> None:
    plan = plan_of("max_missed_ticks: 3")
    rows = rows_of(plan)
    detail = "late_computer: 7 control ticks were late, 3 are allowed"
    more = [again(rows[4])]
    rows[4] = ended(rows[4], EndReason.VOID, detail)
    told = found([*rows, *more], plan)
    assert (told["late_computer"].count, told["late_computer"].text) == (
        1,
        "the plan's max_missed_ticks is 3",
    )
    assert told["late_computer"].episodes == (rows[4].episode_id,)
    assert not {"void", "void_unplanned"} & told.keys()
    rows[5] = ended(rows[5], EndReason.VOID, "interrupted")
    told = found([*rows, *more], plan)
    assert (told["void"].count, told["void"].reasons) == (1, {"interrupted": 1})
    from robo_eval.metrics.summary import summarise

    summary = summarise(table_of([*rows, *more], plan), plan)
    assert not [str(finding) for finding in summary.findings if "void" in str(finding)]
    by_reason = [
        (one.case, one.estimate.value) for one in summary.numbers if one.name == "voids_twin"
    ]
    assert ("late_computer", 1.0) in by_reason
    (rate,) = [
        one
        for one in summary.numbers
        if one.name == "void_rate_twin" and one.policy == rows[4].policy
    ]
    assert "of 9 attempts" in rate.rests_on


def test_the_order_of_starts_is_compared_with_the_plan() -> None:
    plan = plan_of()
    rows = rows_of(plan)
    # The last one was played first, so that one episode would have to move.
    rows[-1] = replace(rows[-1], start_ns=START - 1)
    told = found(rows, plan)["order"]
    assert (told.count, told.episodes, told.side) == (1, (rows[-1].episode_id,), "twin")
    assert told.first_ns == pytest.approx(START - 1, abs=300)


def test_resuming_later_keeps_the_order_and_retries_have_no_place_in_it() -> None:
    plan = plan_of()
    rows = rows_of(plan)
    day = 86_400 * 10**9
    resumed = [
        replace(row, start_ns=(row.start_ns or 0) + day * (i > 6)) for i, row in enumerate(rows)
    ]
    void = ended(resumed[3], EndReason.VOID, "operator_error")
    retried = again(resumed[3], later_s=40_000.0)
    told = found([*resumed[:3], void, *resumed[4:], retried], plan)
    assert set(told) == {"void", "retried"}


def test_simulated_episodes_may_be_played_in_any_order() -> None:
    plan = plan_of(text=TEXT.replace("[twin]", "[sim]"))
    rows = [replace(row, robot=None) for row in rows_of(plan, Side.SIM)]
    backwards = [replace(row, start_ns=START - i) for i, row in enumerate(rows)]
    assert found(backwards, plan) == {}


def test_what_changed_in_mid_trial_is_told_with_when() -> None:
    plan = plan_of()
    rows = rows_of(plan)
    for i in range(10, 16):
        rows[i] = replace(rows[i], software="robo-eval 2", operator="ada", calibration="c1")
    rows[15] = replace(rows[15], robot="other", policy_digest="9" * 64)
    told = found(rows, plan)
    assert told["software"].text == "robo-eval 1 (10 attempts), then robo-eval 2 (6 attempts)"
    assert told["software"].count == 1
    assert told["software"].episodes[0] == rows[10].episode_id
    assert told["software"].first_ns == rows[10].start_ns
    assert told["operator"].text.startswith("none named (10 attempts), then ada")
    assert told["robot"].episodes == (rows[15].episode_id,)
    assert told["calibration"].side == "twin"
    assert told["policy"].text.startswith(f"{rows[15].policy}: ")


def test_levels_engine_and_numerics_that_changed_in_mid_trial_are_told() -> None:
    plan = plan_of(text=TEXT.replace("[twin]", "[sim]"))
    rows = [
        replace(row, robot=None, behaviour=f"b{row.level}", engine="bullet 1", numerics="numpy 1")
        for row in rows_of(plan, Side.SIM)
    ]
    lost = again(ended(rows[0], EndReason.LOST))
    assert set(found([replace(lost, engine=None, behaviour=None), *rows], plan)) == {
        "lost", "retried",
    }  # fmt: skip
    last = next(i for i in reversed(range(len(rows))) if rows[i].level == 9)
    rows[last] = replace(rows[last], behaviour="new", engine="bullet 2", numerics="numpy 2")
    told = found(rows, plan)
    assert set(told) == {"level", "engine", "numerics"}
    assert told["level"].text == "RoboEval/CartPole3D-v0 level 9 easy (paper)"
    assert (told["level"].count, told["level"].episodes) == (1, (rows[last].episode_id,))
    assert told["engine"].text == "bullet 1 (15 attempts), then bullet 2 (1 attempt)"


def test_starts_of_one_seed_are_compared_between_policies() -> None:
    plan = plan_of()
    rows = rows_of(plan)
    moved = rows[9]
    rows[9] = replace(moved, initial_state={"cart_position": [1.0, 0.0]})
    told = found(rows, plan)["starts"]
    assert told.count == 1
    assert "cart_position[0]" in told.text
    wide = {"RoboEval/CartPole3D-v0": {"cart_position": 0.5}}
    assert found(rows, plan, tolerances=wide) == {}
    # A start that was given to the last digit has no tolerance.
    given = [replace(row, initial_state_source="seed") for row in rows]
    assert found(given, plan, tolerances=wide)["starts"].count == 1
    # The simulated half of a pair starts where its physical half did.
    partner = [replace(row, initial_state_source="state") for row in rows]
    assert found(partner, plan) == {}


def test_rows_of_a_table_may_hold_states_as_text() -> None:
    plan = plan_of()
    table = table_of(rows_of(plan), plan)
    table["initial_state"] = [json.dumps(state) for state in table["initial_state"]]
    assert deviations_of(table, plan, DIGEST) == ()


def test_restored_rows_and_missing_verdicts_are_told() -> None:
    plan = plan_of("judging: {verdict: operator}")
    rows = rows_of(plan)
    rows[2] = replace(
        ended(rows[2], EndReason.LOST, "the run was cut off"), recovered=True, start_ns=0,
        robot=None, operator=None,
    )  # fmt: skip
    rows[3] = ended(rows[3], EndReason.NO_VERDICT, "the operator cannot say")
    rows[4] = ended(rows[4], EndReason.TIMEOUT)
    told = found(rows, plan)
    assert set(told) == {"lost", "recovered", "verdicts"}
    assert told["recovered"].first_ns is None
    assert set(told["verdicts"].episodes) == {rows[3].episode_id, rows[4].episode_id}
    assert told["verdicts"].reasons == {"no reason given": 1, "the operator cannot say": 1}


def test_second_ratings_are_due_once_an_episode_was_played() -> None:
    plan = plan_of("judging: {second_share: 0.5}")
    rows = [replace(row, operator="Ada") for row in rows_of(plan)]
    sample = second_sample(plan, DIGEST)
    assert len(sample) == 8
    due = sorted(sample)
    ratings = [
        Rating(line=2, episode_id=due[0], rater="Eve", success=True),
        Rating(line=3, episode_id=due[1], rater="ada", success=True),
    ]
    told = found(rows, plan, ratings=ratings)["ratings"]
    assert told.count == 7  # one's own run does not count
    assert (
        told.text
        == "1 of 8 that are due are there; 50 % of the episodes have a second rater by plan"
    )
    lost = [
        ended(row, EndReason.LOST, "gone") if row.episode_id in due[2:] else row for row in rows
    ]
    assert found(lost, plan, ratings=ratings)["ratings"].episodes == (due[1],)


def test_pauses_and_a_failed_preflight_are_told() -> None:
    plan = plan_of()
    rows = rows_of(plan)
    pauses = [
        Pause(line=3, side="twin", time_ns=START + 9, duration_s=300.0),
        Pause(line=2, side="twin", time_ns=START, duration_s=60.0, before_episode_id="e1"),
    ]
    told = found(rows, plan, pauses=pauses, preflight_problem="joint x did not move")
    assert (told["pauses"].count, told["pauses"].episodes) == (2, ("e1",))
    assert told["pauses"].text == "6 min in all, the longest 5 min"
    assert told["preflight"].text == "joint x did not move"


def test_an_attempt_of_no_planned_episode_is_told() -> None:
    plan = plan_of()
    rows = rows_of(plan)
    foreign = replace(rows[0], episode_id="something-else")
    assert found([*rows, foreign], plan)["unplanned"].episodes == ("something-else",)


def test_what_the_stopping_rule_left_out_is_no_deviation() -> None:
    plan = plan_of("stopping: {compare: [adaptive, balancer]}", TEXT.replace("4", "60"))
    rows = [
        row if row.policy == "adaptive" else replace(
            row, end_reason=EndReason.FAILURE, success=False, quality=0.0
        )
        for row in rows_of(plan)
    ]  # fmt: skip
    in_order = sorted(rows, key=lambda row: row.seed or 0)
    played = [replace(row, start_ns=START + i) for i, row in enumerate(in_order[:80])]
    assert found(played, plan) == {}
    # As long as it has not ended the series, all of the plan is due.
    assert found(played[:8], plan)["not_attempted"].count == 232


def test_files_that_cannot_be_read_say_nothing(tmp_path: Any) -> None:
    assert read_beside(tmp_path, Evidence()) == Beside()
    (tmp_path / "preflight.json").write_text('{"passed": false, "problem": "it moved"}')
    (tmp_path / "robot.yaml").write_text(
        "tasks: {A-v0: {initial_state: {tolerance: {cart_position: 0.1}}}, B-v0: nothing}"
    )
    known = read_beside(tmp_path, Evidence())
    assert known.preflight_problem == "it moved"
    assert known.tolerances == {"A-v0": {"cart_position": 0.1}}
    (tmp_path / "preflight.json").write_text("[")
    (tmp_path / "robot.yaml").write_bytes(b"\xff: [")
    assert read_beside(tmp_path, Evidence()) == Beside()


def test_a_tolerance_is_a_distance() -> None:
    one, other = {"p": [0.0, 0.0], "q": 1.0}, {"p": [3.0, 4.0], "q": 2.0}
    assert start_difference(one, other, {"p": 5.0}) is None
    assert start_difference(one, other, {"p": 4.9}) == ("p", [0.0, 0.0], [3.0, 4.0])
    assert start_difference(one, other, {"tilt": 0.1}) is None
    assert start_difference(one, other, {}) == ("p[0]", 0.0, 3.0)


@given(st.permutations(range(30)))
def test_the_rest_ascends_once_what_moved_is_taken_out(values: list[int]) -> None:
    moved = out_of_order(np.array(values))
    rest = [value for index, value in enumerate(values) if index not in set(moved.tolist())]
    assert rest == sorted(rest)
    # A move of one episode leaves all others where they are.
    assert len(moved) <= len(values) - 1
    assert (len(moved) == 0) == (values == sorted(values))


ENDS = [None, EndReason.FAULT, EndReason.LOST, EndReason.VOID, EndReason.NO_VERDICT]


@given(st.data())
def test_the_order_of_rows_changes_nothing(data: st.DataObject) -> None:
    plan = plan_of("judging: {second_share: 0.3}")
    rows = rows_of(plan)[: data.draw(st.integers(1, 16))]
    more = []
    for i, row in enumerate(rows):
        end = data.draw(st.sampled_from(ENDS))
        start = data.draw(st.sampled_from([row.start_ns, START, None]))
        state = data.draw(st.sampled_from([row.initial_state, {}, {"cart_position": [i, 0.0]}]))
        who = data.draw(st.sampled_from([None, "ada", "eve"]))
        row = replace(row, start_ns=start, initial_state=state, operator=who)
        rows[i] = (
            row if end is None else ended(row, end, data.draw(st.sampled_from([None, "x: y"])))
        )
        if end is EndReason.VOID and start is not None:
            more.append(again(row))
    rows += more
    shuffled = data.draw(st.permutations(rows))
    one = deviations_of(table_of(rows, plan), plan, DIGEST)
    other = deviations_of(table_of(shuffled, plan), plan, DIGEST)
    assert one == other
    assert one is not None
    ranks = [list(KINDS).index(it.kind) for it in one]
    assert ranks == sorted(ranks)
    json.dumps([it.as_dict() for it in one], allow_nan=False)
    assert all(it.count >= 1 for it in one)
