import itertools

import pytest

from robo_eval.core.errors import InputError, UnknownNameError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import JudgingPlan, PolicyPlan, TaskPlan, TrialPlan
from robo_eval.log.evidence import Evidence
from robo_eval.metrics import scoring
from robo_eval.metrics.attribution import attribute
from robo_eval.metrics.coverage import coverage_of
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.scoring import (
    is_good_enough,
    quality_of,
    rescore,
    rescored_frame,
    score_end,
    score_row,
)
from robo_eval.metrics.tables import main_rows

ENV = "RoboEval/CartPole3D-v0"


def _plan(*tasks):
    return TrialPlan(
        name="t", tasks=tasks or (TaskPlan(levels=(0,)),), policies=[PolicyPlan(name="a")]
    )


@pytest.mark.parametrize("n", [7, 49, 200, 1000, 100_000])
def test_a_full_episode_has_quality_one_whatever_the_additions_lost(n):
    total = 0.0
    for _ in range(n):
        total += 1 / n
    assert quality_of(total, (0.0, 1.0)) == 1.0
    assert quality_of(total - 1 / n, (0.0, 1.0)) == pytest.approx(1 - 1 / n)
    assert not is_good_enough(quality_of(total - 1 / n, (0.0, 1.0)), 1.0)


def test_quality_is_interpolated_and_clipped():
    assert quality_of(-150.0, (-200.0, -100.0)) == 0.5
    assert quality_of(-250.0, (-200.0, -100.0)) == 0.0
    assert quality_of(3.0, (-200.0, -100.0)) == 1.0


def test_a_threshold_that_is_no_decimal_number_can_be_met():
    assert is_good_enough(quality_of(1 / 3, (0.0, 1.0)), 1 / 3)
    assert not is_good_enough(quality_of(1 / 3 - 1e-6, (0.0, 1.0)), 1 / 3)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_return_that_is_no_number_is_refused(value):
    with pytest.raises(InputError, match="needs a finite number"):
        quality_of(value, (0.0, 1.0))


def _end(quality=1.0, terminated=False, truncated=True, **more):
    return score_end(
        terminated=terminated, truncated=truncated, quality=quality, success_quality=1.0, **more
    )


def test_end_reason_of_each_kind_of_end():
    assert _end() is EndReason.SUCCESS
    assert _end(terminated=True, truncated=False) is EndReason.SUCCESS
    assert _end(0.5) is EndReason.TIMEOUT
    assert _end(0.5, terminated=True, truncated=False) is EndReason.FAILURE
    assert _end(0.5, terminated=True, truncated=True) is EndReason.FAILURE


@pytest.mark.parametrize("stop", ["safety_stop", "out_of_bounds", "operator_stop"])
def test_a_stop_is_never_a_success(stop):
    assert _end(info={"end_reason": stop}) is EndReason(stop)
    assert _end(truncated=False, info={"end_reason": EndReason(stop)}) is EndReason(stop)


def test_an_assisted_episode_is_never_a_success():
    assert _end(interventions=1) is EndReason.TIMEOUT
    assert _end(interventions=1, terminated=True) is EndReason.FAILURE


def test_an_environment_cannot_talk_a_failure_into_a_success():
    assert _end(0.2, info={"end_reason": "success", "is_success": True}) is EndReason.TIMEOUT


def test_wrong_declarations_are_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'safety_stop'"):
        _end(info={"end_reason": "safety-stop"})
    with pytest.raises(InputError, match="'fault', which has no score"):
        _end(info={"end_reason": "fault"})
    with pytest.raises(InputError, match="neither terminated nor truncated"):
        _end(truncated=False)


def test_scoring_a_logged_row_repeats_what_the_runner_said():
    task = TaskPlan(levels=(0,), success_quality=0.9)
    for terminated, total in itertools.product((True, False), (0.2, 0.95)):
        first = score_end(
            terminated=terminated,
            truncated=not terminated,
            quality=quality_of(total, task.quality_range),
            success_quality=0.9,
        )
        again = score_row(
            episode_return=total, ticks=10, end_reason=first, interventions=0, task=task
        )
        assert (again.end_reason, again.success) == (first, first is EndReason.SUCCESS)


def test_a_success_that_no_longer_is_one_says_which_clock_ended_it_if_it_can():
    def again(ticks, max_ticks):
        task = TaskPlan(levels=(0,), max_ticks=max_ticks)
        return score_row(
            episode_return=0.9,
            ticks=ticks,
            end_reason=EndReason.SUCCESS,
            interventions=0,
            task=task,
        ).end_reason

    assert again(50, 50) is EndReason.TIMEOUT
    assert again(49, 50) is EndReason.FAILURE
    assert again(50, None) is EndReason.FAILURE


def test_old_and_new_scores_stand_side_by_side(frame, episode):
    old = frame(
        episode("a", 0.5, episode_return=1.0000000000000007, score_version=0),
        episode("b", None, episode_return=None, score_version=0),
        episode("c", 0.4),
    )
    scores = rescore(old, _plan())
    assert list(zip(scores["episode_id"], scores["score_version"], strict=True)) == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
        ("b", 1),
        ("c", 1),
    ]
    assert scores["quality"].tolist() == [0.5, 1.0, None, None, 0.4]
    assert scores["success"].tolist() == [False, True, None, None, False]
    assert scores["end_reason"].tolist() == ["failure", "success", "fault", "fault", "failure"]
    assert scores["reason"].tolist() == [None, None, *["ended by fault"] * 2, None]


def test_a_new_version_of_the_rules_changes_the_table_and_not_the_log(frame, episode, monkeypatch):
    log = frame(episode("a", 0.5, episode_return=1.0), episode("b", 0.7, episode_return=None))
    before = log.copy(deep=True)
    monkeypatch.setattr(scoring, "SCORE_VERSION", 2)
    new = rescored_frame(log, _plan())
    assert new["quality"].tolist() == [1.0, 0.7]
    assert new["success"].tolist() == [True, False]
    # Nothing to score again from: the other lab's score stays, and says so by its version.
    assert new["score_version"].tolist() == [2, 1]
    assert log.equals(before)


def test_the_task_a_row_was_played_under_is_found(frame, episode):
    plan = _plan(TaskPlan(levels=(1,), success_quality=0.5), TaskPlan(levels=(2,)))
    rows = frame(
        episode("x", 0.7, level=1, score_version=0),
        episode("y", 0.7, level=2, score_version=0),
        episode("control-t0-l00-easy-a-s1-sim", 0.7, score_version=0),
        episode("control-t1-l00-easy-a-s1-sim", 0.7, score_version=0),
    )
    assert rescored_frame(rows, plan)["success"].tolist() == [True, False, True, False]
    with pytest.raises(InputError, match="episode foreign: 2 tasks of the plan play"):
        rescored_frame(frame(episode("foreign", 0.7, score_version=0)), plan)
    with pytest.raises(InputError, match="task 'Other-v0' is not in the plan"):
        rescored_frame(frame(episode("x", 0.7, score_version=0, task="Other-v0")), plan)


@pytest.mark.parametrize("unknown", [None, float("nan")])
def test_a_row_of_unknown_length_is_scored_by_its_return(frame, episode, monkeypatch, unknown):
    log = frame(episode("a", 0.5, episode_return=1.0), episode("b", 1.0, episode_return=0.7))
    log["ticks"] = [unknown, unknown]
    log["duration_s"] = [unknown, unknown]
    monkeypatch.setattr(scoring, "SCORE_VERSION", 2)
    limited = _plan(TaskPlan(levels=(0,), max_ticks=50))
    new = rescored_frame(log, limited)
    assert new["quality"].tolist() == [1.0, 0.7]
    # Whether the clock ended it is not known, so it is no timeout.
    assert new["end_reason"].tolist() == ["success", "failure"]
    assert rescore(log, limited)["quality"].tolist() == [0.5, 1.0, 1.0, 0.7]


def test_a_verdict_of_a_person_is_not_scored_again(frame, episode):
    judging = JudgingPlan(verdict="operator")
    plan = _plan().model_copy(update={"judging": judging, "sides": (Side.SIM, Side.TWIN)})
    twin = {"side": Side.TWIN, "robot": "twin-1", "score_version": 0}
    rows = frame(
        episode("yes", 0.4, **twin, success=True, end_reason=EndReason.SUCCESS),
        episode("no", 1.0, **twin, success=False, end_reason=EndReason.FAILURE),
        episode("none", None, **twin, end_reason=EndReason.NO_VERDICT, episode_return=1.0),
        episode("sim", 0.4, score_version=0, success=True, end_reason=EndReason.SUCCESS),
    )
    new = rescored_frame(rows, plan).set_index("episode_id")
    assert new["success"].to_dict() == {"yes": True, "no": False, "none": None, "sim": False}
    assert new.loc[["yes", "no"], "quality"].tolist() == [0.4, 1.0]
    assert new["end_reason"].tolist() == ["success", "failure", "no_verdict", "failure"]
    # Where the task scores, a success below its target is a finding; a person's is not.
    found = attribute(Evidence(), episodes_frame(rows), plan).findings
    assert [finding.where for finding in found if "success_quality" in finding.text] == [
        "episodes: sim"
    ]


def test_what_an_environment_told_is_not_scored_again(frame, episode):
    plan = _plan(TaskPlan(levels=(0,), success="is_success", success_quality=0.9))
    old = {"score_version": 0}
    rows = frame(
        episode("yes", 0.4, **old, success=True, end_reason=EndReason.SUCCESS),
        episode("no", 1.0, **old, success=False, end_reason=EndReason.FAILURE),
    )
    new = rescored_frame(rows, plan).set_index("episode_id")
    assert new["success"].to_dict() == {"yes": True, "no": False}
    assert new["end_reason"].tolist() == ["success", "failure"]
    assert new["quality"].tolist() == [0.4, 1.0]
    assert not [
        finding
        for finding in attribute(Evidence(), episodes_frame(rows), plan).findings
        if "success_quality" in finding.text
    ]


def test_what_an_environment_tells_counts_but_for_help_and_stops():
    given = {"terminated": True, "truncated": False, "quality": 0.0, "success_quality": 0.5}
    told = {**given, "info": {"lifted": True}, "success": "lifted"}
    assert score_end(**told) is EndReason.SUCCESS
    assert score_end(**told, interventions=1) is EndReason.FAILURE
    stopped = {"lifted": True, "end_reason": "safety_stop"}
    assert score_end(**{**told, "info": stopped}) is EndReason.SAFETY_STOP
    fell = {"lifted": False}
    assert score_end(**{**told, "info": fell, "quality": 1.0}) is EndReason.FAILURE


def test_a_missing_verdict_is_missing_in_the_coverage(frame, episode):
    twin = {"side": Side.TWIN, "robot": "twin-1"}
    rows = frame(
        episode("a", 1.0, **twin), episode("b", None, **twin, end_reason=EndReason.NO_VERDICT)
    )
    coverage = coverage_of(main_rows(episodes_frame(rows)), planned=2)
    assert coverage.text == "1 of 2 scored (1 no verdict)"
    assert not coverage.is_sufficient
