"""The tests of a suite: sets of different numbers of classes are learned by one learner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from robo_eval.core.errors import InputError
from robo_eval.core.plan import PolicyPlan
from robo_eval.study.entries import loaded, tests_of
from robo_eval.study.measure import lesson, policy
from robo_eval.study.suite import PoolSection, Suite, parse_suite, read_suite

SUITES = Path(__file__).parents[3] / "examples/suites"
FEW = {"set": "digits", "name": "few", "classes": [3, 8]}
MORE = {"set": "digits", "name": "more", "classes": [3, 8, 5]}


def suite_of(**parts: Any) -> Suite:
    text = yaml.safe_dump({"version": 1, "name": "made", **parts})
    return parse_suite(text, source="made")


def test_a_set_of_fewer_classes_has_outputs_that_are_never_right() -> None:
    few, more, all_of_them = tests_of(suite_of(sets=[FEW, MORE, {"set": "digits"}]))
    assert [one.build().outputs for one in (few, more, all_of_them)] == [10, 10, 10]
    alone, _ = tests_of(suite_of(sets=[FEW, {**FEW, "name": "again"}]))
    assert alone.build().outputs == 2
    # A network of more outputs is another network, and one of as many is the same.
    assert few.identity != alone.identity
    assert "outputs" not in alone.identity
    assert "outputs" not in all_of_them.identity
    built = few.build()
    assert set(built.examples(500, seed=1).actions) == {0, 1}
    plan = PoolSection(examples=500, steps=400, episodes=50, layers=0)
    size, reached = policy(lesson(built, 500, seed=1), plan, 0, seed=1)
    assert size == (64 + 1) * 10
    assert reached > 0.8


def test_a_set_beside_a_task_that_shows_something_else_is_refused_by_name() -> None:
    task = {"env": "CartPole-v1", "experts": ["random"], "observed": 4, "returns": [0, 1]}
    with pytest.raises(InputError, match="shows 4 numbers and takes 2 actions, few 64 and 2"):
        tests_of(suite_of(tasks=[task], sets=[FEW]))


# Without the extra [train] the suite of deep Q-learning is refused; tests/train builds it.
BUILT = sorted(path for path in SUITES.glob("*.yaml") if path.stem != "trainers_dqn")


@pytest.mark.parametrize("path", BUILT, ids=lambda path: path.stem)
def test_suites_of_the_examples_can_be_built(path: Path) -> None:
    suite = read_suite(path)
    tests = tests_of(suite)
    assert len(tests) == sum(1 for task in suite.tasks for _ in task.combinations()) + len(
        suite.sets
    )
    assert len({one.build().outputs for one in tests}) == 1
    is_small = path.stem == "small" or path.stem.startswith("trainers_")
    assert suite.pool.policies >= 100 or is_small


@pytest.mark.parametrize("name", ["force", "gravity", "length"])
def test_each_cartpole_has_the_regulator_that_knows_it(name: str) -> None:
    tests = tests_of(read_suite(SUITES / f"cartpole_{name}.yaml"))
    assert 5 <= len(tests) <= 7
    for test in tests:
        (expert,) = test.experts
        assert expert.kwargs == test.kwargs  # type: ignore[union-attr]
        assert test.name == f"{name} {next(iter(expert.kwargs.values()))}"


def test_a_suite_takes_no_action_mode_of_a_policy() -> None:
    with pytest.raises(InputError, match=r"action_mode: is a key of plans; in a suite"):
        loaded(PolicyPlan(name="arm-still", action_mode="ee_delta"))
