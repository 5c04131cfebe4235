"""How a suite is written down, and what is refused."""

from __future__ import annotations

import pytest
import yaml

from robo_eval.core.errors import PlanError
from robo_eval.study.suite import parse_suite, read_suite


def test_every_combination_is_a_test_with_a_name_of_its_own(tiny):
    each = {"gravity": [9.8, 20.0], "length": [1, 2]}
    tiny["tasks"][0] |= {
        "name": "",
        "env": "Swing/Pole-v1",
        "each": each,
        "kwargs": {"g": 1},
        "returns": [0, 9],
    }
    suite = parse_suite(yaml.safe_dump(tiny), source="s.yaml")
    found = list(suite.tasks[0].combinations())
    assert [name for name, _ in found] == [
        "Pole-v1 gravity 9.8 length 1", "Pole-v1 gravity 9.8 length 2",
        "Pole-v1 gravity 20.0 length 1", "Pole-v1 gravity 20.0 length 2",
    ]  # fmt: skip
    assert found[1][1] == {"g": 1, "gravity": 9.8, "length": 2}


def test_a_name_alone_stands_for_an_agent(tiny):
    suite = parse_suite(yaml.safe_dump(tiny), source="s.yaml")
    assert [one.name for one in suite.tasks[0].experts] == ["balancer", "adaptive"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tasks": [{"each": {"level": [0]}}]}, "they make 1 test; a study compares 2 at least"),
        ({"tasks": []}, "they make 0 tests"),
        ({"tasks": [{"name": "one"}]}, "two tests are called 'one'"),
        ({"tasks": [{"name": "{lvel}"}]}, "{lvel} is not among the keys of `each`: level"),
        ({"policies": ["random"]}, "this is the plan of a trial; `robo-eval run` plays it"),
        ({"tasks": [{"kwargs": {"level": 3}}]}, "level is in kwargs as well"),
        ({"tasks": [{"each": {"level": []}}]}, "level must name at least one value"),
        ({"tasks": [{"returns": [1, 0]}]}, "returns: 1.0 must be below 0.0"),
        ({"tasks": [{"env": "CartPole-v1"}]}, "say which returns of CartPole-v1 count as"),
        ({"tasks": [{"wander": 1.5}]}, "wander"),
        ({"tasks": [{"expert": ["up"]}]}, "did you mean 'experts'?"),
        ({"tasks": [{"experts": []}]}, "experts: must name at least one"),
        ({"pool": {"policies": 0}}, "pool.policies"),
        ({"pool": {"policies": 3.5}}, "pool.policies: must be a whole number"),
        ({"pool": {"rate": float("nan")}}, "pool.rate"),
        ({"learner": {"hidden": [0]}}, "learner.hidden.0"),
        ({"learner": {"trainings": 0}}, "learner.trainings"),
        ({"version": 2}, "version"),
        ({"sede": 1}, "did you mean 'seed'?"),
    ],
)
def test_bad_suite(tiny, changes, said):
    tasks = [tiny["tasks"][0] | one for one in changes.get("tasks", [{}])]
    with pytest.raises(PlanError) as caught:
        parse_suite(yaml.safe_dump(tiny | changes | {"tasks": tasks}), source="s.yaml")
    message = str(caught.value)
    assert message.startswith("s.yaml: ")
    assert said in message
    assert "\n" not in message


def test_broken_or_missing_file(tmp_path):
    with pytest.raises(PlanError, match="no such suite file"):
        read_suite(tmp_path / "none.yaml")
    broken = tmp_path / "broken.yaml"
    broken.write_text("name: [")
    with pytest.raises(PlanError, match="not valid YAML at line"):
        read_suite(broken)
