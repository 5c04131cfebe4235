"""What `robo-eval metrics` prints: every number with interval and n, or why there is none."""

import pytest

from robo_eval.cli.output import interval, number
from robo_eval.cli.summary import print_summary, verification_problem
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.core.plan import PolicyPlan, TaskPlan, TrialPlan
from robo_eval.core.wording import counted
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.summary import summarise


def printed(capsys, *args, **more):
    print_summary(summarise(*args, **more))
    return capsys.readouterr().out


def unwrapped(text):
    return " ".join(text.split())


def test_ten_of_ten_is_no_certainty(frame, episode, capsys):
    text = printed(capsys, frame(*(episode(f"e{i}", seed=i) for i in range(10))))
    assert "1.00 [0.69, 1.00]" in text
    assert "10 of 10 scored" in text
    assert "mean [95 % interval]" in text


def test_the_interval_is_named_by_its_level(frame, episode, capsys):
    log = frame(*(episode(f"e{i}", seed=i) for i in range(10)))
    assert "mean [90 % interval]" in printed(capsys, log, config=MetricConfig(level=0.9))


def test_a_number_without_an_interval_says_why(frame, episode, capsys):
    text = printed(capsys, frame(*(episode(f"e{i}", 0.3, seed=i) for i in range(5))))
    assert "0.30 [0.14, 0.67]" in text  # equal values leave the doubt of their number
    one_seed = (episode(f"e{i}", 0.1 * i, level=i, seed=1) for i in range(3))
    assert "one seed, shared by all episodes" in printed(capsys, frame(*one_seed))


def test_nothing_scored_is_no_number(frame, episode, capsys):
    text = printed(capsys, frame(episode("a", None), episode("b", None)))
    assert "0 of 2 scored (2 fault)" in text
    assert "0.00" not in text


def test_a_zero_has_no_sign_and_a_missing_number_a_reason():
    assert [number(x) for x in (-0.001, 0.0, -0.2)] == ["0.00", "0.00", "-0.20"]
    assert interval(Estimate.missing(reason="no data", unit="ratio")) == "- (no data)"
    assert [counted(n, "item") for n in (0, 1, 2)] == ["0 items", "1 item", "2 items"]


def test_each_task_profile_and_side_has_a_table_of_its_own(frame, episode, capsys):
    plan = TrialPlan(
        name="t",
        tasks=[
            TaskPlan(levels=(0,), family="f"),
            TaskPlan(levels=(0,), family="f", kwargs={"balls": 0}),
            TaskPlan(levels=(0,), family="f", profile="compat"),
            TaskPlan(env="Acrobot-v1", quality_range=(-500, 0)),
        ],
        policies=[PolicyPlan(name="balancer")],
        episodes=1,
        sides=(Side.SIM, Side.TWIN),
    )
    bare = {"level": None, "difficulty": None, "profile": None, "task": "Acrobot-v1"}
    rows = [
        row
        for side in plan.sides
        for row in (
            episode(f"t0-l00-easy-balancer-s1-{side}", 0.11, family="f", side=side),
            episode(f"t1-l00-easy-balancer-s1-{side}", 0.22, family="f", side=side),
            episode(
                f"t2-l00-easy-balancer-s1-{side}", 0.33, family="f", side=side, profile="compat"
            ),
            episode(f"t3-balancer-s1-{side}", 0.44, family="Acrobot-v1", side=side, **bare),
        )
    ]
    text = printed(capsys, frame(*rows), plan)
    for title in ("f, paper, sim", "f {balls: 0}, paper, sim", "f, compat, twin"):
        assert f"performance by level ({title}), n = 1 episode a cell" in unwrapped(text)
    assert "performance by task, n = 1 episode a cell" in unwrapped(text)
    for value in ("0.11", "0.22", "0.33", "0.44"):
        assert text.count(f"{value} [0.0") == 2


def test_one_task_needs_no_name(frame, episode, capsys):
    text = printed(capsys, frame(episode("a", 0.5), episode("b", 0.6)))
    assert "performance by level, n = 2 episodes a cell" in unwrapped(text)


def test_an_effect_says_of_how_many_pairs_and_why_it_is_undecided(frame, episode, capsys):
    rows = [episode(f"c{i}", 0.9, seed=i) for i in range(3)]
    rows += [episode(f"m{i}", 0.8, seed=i, level=1, control_id=f"c{i}") for i in range(3)]
    text = printed(capsys, frame(*rows))
    (line,) = (line for line in text.splitlines() if "-0.10" in line)
    assert "-0.10 [-0.74, +0.68]" in line
    assert "3 pairs; undecided" in line


@pytest.mark.parametrize("path", ["runs/x", "a b"])
def test_a_log_that_does_not_verify_is_named_in_one_line(path):
    assert verification_problem(path, None) is None
    text = verification_problem(path, "row 3 (e) was changed")
    shown = "'a b'" if " " in path else path
    assert text == (
        f"the log does not verify: row 3 (e) was changed; run `robo-eval verify {shown}`"
    )
