"""Which runs can be compared, and what is said of those that cannot."""

import pandas as pd
import pytest

from robo_eval.core.errors import InputError
from robo_eval.core.plan import TrialPlan
from robo_eval.metrics.compatible import check_levels, incompatibilities, incompatible_rows
from robo_eval.metrics.frame import episodes_frame

TASK = {"env": "Push-v0", "levels": [0, 1], "difficulties": ["easy", "hard"], "kwargs": {"n": 1}}


def plan(*, task=None, **fields):
    tasks = fields.pop("tasks", [{**TASK, **(task or {})}])
    return TrialPlan.model_validate(
        {"name": "x", "tasks": tasks, "policies": ["random"], "episodes": 3, **fields}
    )


MATTERS = {
    "env": ({"task": {"env": "Pull-v0"}}, 'tasks.0.env: "Push-v0" and "Pull-v0"'),
    "family": ({"task": {"family": "push"}}, 'tasks.0.family: "Push-v0" and "push"'),
    "levels": ({"task": {"levels": [0, 2]}}, "tasks.0.levels: [0, 1] and [0, 2]"),
    "no levels": ({"task": {"levels": None}}, "tasks.0.levels: [0, 1] and none"),
    "difficulties": (
        {"task": {"difficulties": ["easy"]}},
        'tasks.0.difficulties: ["easy", "hard"] and ["easy"]',
    ),
    "profile": ({"task": {"profile": "compat"}}, 'tasks.0.profile: "paper" and "compat"'),
    "kwargs": ({"task": {"kwargs": {"n": 2}}}, 'tasks.0.kwargs: {"n": 1} and {"n": 2}'),
    "quality": ({"task": {"quality_range": [0, 5]}}, "tasks.0.quality_range: [0, 1] and [0, 5]"),
    "success": ({"task": {"success_quality": 0.5}}, "tasks.0.success_quality: 1 and 0.5"),
    "ticks": ({"task": {"max_ticks": 9}}, "tasks.0.max_ticks: none and 9"),
    "seeds": ({"seeds": {"first": 5}}, "seeds.first: 1000 and 5"),
    "sides": ({"sides": ["sim", "real"]}, 'sides: ["sim"] and ["real", "sim"]'),
    "voids": ({"void_reasons": ["rain"]}, "void_reasons: ["),
    "coverage": ({"metrics": {"min_coverage": 0.5}}, "metrics.min_coverage: 0.95 and 0.5"),
    "sections": (
        {"tasks": [TASK, {**TASK, "env": "Pull-v0"}]},
        "tasks: 1 and 2 sections that do not name the same conditions",
    ),
}


@pytest.mark.parametrize("name", MATTERS)
def test_a_field_that_matters_is_named_with_both_values(name):
    change, text = MATTERS[name]
    (found,) = incompatibilities(plan(), plan(**change))
    assert found.startswith(text)


def test_how_late_a_computer_may_be_matters_where_it_can_be_late():
    late = {"max_missed_ticks": 7}
    assert incompatibilities(plan(), plan(**late)) == []
    (found,) = incompatibilities(plan(sides=["twin"]), plan(sides=["twin"], **late))
    assert found.startswith("max_missed_ticks: ")


TRIALS = {"count": 3, "episodes": 8, "onset": [2, 3]}


def of_trials(**changed):
    """A plan of trials; `count` of None for one of single episodes."""
    rules = {**TRIALS, **changed}
    base = plan(task={"levels": [1]}).model_dump()
    own = {"tasks": base["tasks"], "policies": ["random", "balancer"], "name": "x"}
    return TrialPlan.model_validate({**own, **({"trials": rules} if rules["count"] else {})})


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("episodes", 9, "8 and 9"),
        ("onset", 3, "[2, 3] and [3, 3]"),
        ("onset_tick", 40, "none and 40"),
        ("share", 0.5, "1.0 and 0.5"),
        ("condition", "given", '"system" and "given"'),
    ],
)
def test_trials_of_another_kind_are_another_test(name, value, text):
    found = incompatibilities(of_trials(), of_trials(**{name: value}))
    assert found == [f"trials.{name}: {text}"]


def test_trials_and_single_episodes_are_not_compared_and_more_trials_are():
    alone = incompatibilities(of_trials(), of_trials(count=None))
    assert "trials.episodes: 8 and none" in alone
    assert all(text.startswith("trials.") for text in alone)
    more = {"count": 5, "controls": 2, "window": 4, "frozen": "random", "informed": "balancer"}
    assert incompatibilities(of_trials(), of_trials(**more)) == []


def test_every_field_that_differs_is_named():
    other = plan(task={"levels": [0], "success_quality": 0.9}, seeds={"first": 1})
    found = incompatibilities(plan(), other)
    assert [text.partition(":")[0] for text in found] == [
        "tasks.0.success_quality", "tasks.0.levels", "seeds.first",
    ]  # fmt: skip


SAME = {
    "words": {"name": "y", "description": "z"},
    "order": {"order": "blocked", "order_seed": 7},
    "policies": {"policies": ["balancer"]},
    "what is kept": {"traces": "none", "retries": 2},
    "length": {"episodes": 50},
    "control": {"control": True},
    "order of levels": {"task": {"levels": [1, 0], "difficulties": ["hard", "easy"]}},
    "spelling": {"task": {"kwargs": {"n": 1.0}}},
    "family that is the environment": {"task": {"family": "Push-v0"}},
    "sections": {"tasks": [{**TASK, "levels": [1]}, {**TASK, "levels": [0]}]},
    "resamples": {"metrics": {"resamples": 500}},
}


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_matter_is_ignored(name):
    assert incompatibilities(plan(), plan(**SAME[name])) == []
    assert incompatibilities(plan(**SAME[name]), plan()) == []


def test_difficulties_without_levels_do_not_matter():
    tasks = [{"env": "Push-v0"}], [{"env": "Push-v0", "difficulties": ["hard"]}]
    assert incompatibilities(plan(tasks=tasks[0]), plan(tasks=tasks[1])) == []


def test_an_import_planned_no_seeds():
    imported = {"file": "x.csv", "sha256": "0" * 64, "rows": 3}
    assert incompatibilities(plan(), plan(seeds={"first": 1}, imported=imported)) == []


def rows(**columns):
    row = {
        "episode_id": "e", "side": "real", "task": "Push-v0", "policy": "a", "quality": 1.0,
        "success": True, "end_reason": "success", "robot": "arm_1",
    }  # fmt: skip
    return episodes_frame(pd.DataFrame([{**row, **columns}]))


def test_rows_name_robots_simulators_and_scores():
    assert incompatible_rows(rows(), rows()) == []
    assert incompatible_rows(rows(), rows(robot="arm_2")) == ["robot (real): arm_1 and arm_2"]
    assert incompatible_rows(rows(), rows(robot=None)) == ["robot (real): arm_1 and none"]
    assert incompatible_rows(rows(), rows(score_version=2)) == ["score_version: 1 and 2"]
    old, new = (rows(side="sim", robot=None, calibration=name) for name in (None, "bench"))
    assert incompatible_rows(old, new) == ["calibration (sim): none and bench"]
    # Another side says nothing, and neither does an episode without a score.
    assert incompatible_rows(rows(), rows(side="twin", robot="arm_2")) == []
    lost = rows(score_version=2, quality=None, success=None, end_reason="lost")
    assert incompatible_rows(rows(), lost) == []


@pytest.mark.parametrize(
    ("column", "one", "other"),
    [
        ("difficulty", "easy", "hard"),
        ("profile", "paper", "compat"),
        ("task", "Push-v0", "Pull-v0"),
        ("calibration", "march", "april"),
    ],
)
def test_rows_without_a_condition_in_common_name_the_field(column, one, other):
    found = incompatible_rows(rows(**{column: one}), rows(**{column: other}))
    assert found == [f"{column} (real): {one} and {other}"]


# Levels that changed ------------------------------------------------------------------------------


def of_level(trial, behaviour, **columns):
    level = {"side": "sim", "level": 3, "difficulty": "easy", "profile": "paper", "robot": None}
    return rows(**{**level, "behaviour": behaviour, **columns}).assign(trial=trial)


def test_a_level_that_changed_is_refused_with_both_sides_and_the_remedy():
    table = pd.concat(
        [of_level("old", "a" * 64, engine="bullet 1"), of_level("new", "b" * 64, level=3)]
    )
    with pytest.raises(InputError) as refused:
        check_levels(table, across_versions=False)
    assert str(refused.value) == (
        "Push-v0 level 3 easy (paper) changed between episodes: behaviour aaaaaaaaaaaa (bullet 1)"
        " in old, bbbbbbbbbbbb in new; play the older episodes again, or mix them all the same by"
        " --across-versions"
    )
    (warning,) = check_levels(table, across_versions=True)
    assert warning.startswith("Push-v0 level 3 easy (paper) changed between episodes: behaviour ")


def test_several_levels_and_a_task_without_levels_are_named():
    none = {"level": None, "difficulty": None, "profile": None}
    table = pd.concat(
        [
            *(of_level("x", b * 64, level=n) for n in (3, 4) for b in "ab"),
            *(of_level("x", None, task_version=v, task="Pull-v1", **none) for v in ("v1", "v2")),
        ]
    )
    said = r"level 3 .* in x, b+ in x, as did Push-v0 level 4 easy \(paper\), Pull-v1; play"
    with pytest.raises(InputError, match=said):
        check_levels(table, across_versions=False)
    with pytest.raises(InputError, match=r"Pull-v1 changed .*: task_version v1 in x, v2 in x"):
        check_levels(table[table["task"] == "Pull-v1"], across_versions=False)


LIKE = {
    "same": ("a", {}),
    "no digest": (None, {}),
    "another level": ("b", {"level": 4}),
    "another difficulty": ("b", {"difficulty": "hard"}),
    "another profile": ("b", {"profile": "compat"}),
    "another task": ("b", {"task": "Pull-v0"}),
    "another engine": ("a", {"engine": "bullet 2", "numerics": "numpy 9"}),
    "no score": ("b", {"quality": None, "success": None, "end_reason": "fault"}),
}


@pytest.mark.parametrize("name", LIKE)
def test_levels_that_did_not_change_are_mixed_without_a_word(name):
    behaviour, columns = LIKE[name]
    table = pd.concat([of_level("old", "a"), of_level("new", behaviour, **columns)])
    assert check_levels(table, across_versions=False) == ()


def test_imports_may_hold_other_conditions_of_tasks_that_are_scored_alike():
    imported = {"file": "x.csv", "sha256": "0" * 64, "rows": 3}
    one = plan(tasks=[{"env": "a"}, {"env": "b"}], imported=imported)
    other = plan(tasks=[{"env": "b"}, {"env": "c"}, {"env": "d"}], imported=imported)
    assert incompatibilities(one, other) == []
    strict = plan(tasks=[{"env": "b", "success_quality": 0.8}], imported=imported)
    assert incompatibilities(one, strict) == ["b: success_quality: 1 and 0.8"]
    twin = plan(tasks=[{"env": "a"}], imported=imported, sides=["twin"])
    assert "sides" in incompatibilities(one, twin)[0]
