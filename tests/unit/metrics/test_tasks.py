"""Tasks of one plan that differ in their settings are never averaged."""

import json

import pandas as pd
import pytest

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Arm
from robo_eval.core.plan import ImportPlan, PolicyPlan, TaskPlan, TrialPlan
from robo_eval.metrics.effects import novelty_effects, policy_differences
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.performance import cells, policies
from robo_eval.metrics.scoring import rescored_frame
from robo_eval.metrics.summary import summarise
from robo_eval.metrics.tasks import task_label, task_variants

ENV = "RoboEval/CartPole3D-v0"


def plan_of(*tasks, **more):
    return TrialPlan(name="t", tasks=tasks, policies=[PolicyPlan(name="balancer")], **more)


def task(levels=(0,), **more):
    return TaskPlan(levels=levels, **more)


def test_equal_settings_need_no_telling_apart():
    assert task_variants(plan_of(task((0,)), task((1,)))) == ("", "")
    paper_and_compat = plan_of(task(), task(profile="compat"))
    assert task_variants(paper_and_compat) == ("", "")
    assert task_variants(plan_of(task(kwargs={"balls": 0}), task(family="few"))) == ("", "")


def test_who_tells_success_makes_a_task_another_one():
    told = plan_of(task(), task((1,), success="is_success"))
    assert task_variants(told) == ("", '{success: "is_success"}')


def test_what_differs_is_the_variant():
    plan = plan_of(
        task(),
        task(kwargs={"balls": 0, "reveal": True}),
        task(kwargs={"balls": 2, "reveal": True}),
        task((1,), kwargs={"balls": None}),
        task((2,), max_ticks=50),
    )
    assert task_variants(plan) == (
        "",
        "{balls: 0, reveal: true}",
        "{balls: 2, reveal: true}",
        "{balls: null}",
        "{max_ticks: 50}",
    )
    assert task_label(ENV, "{balls: 0}") == "RoboEval/CartPole3D-v0 {balls: 0}"
    assert task_label("balancing", "") == "balancing"


def test_one_family_of_two_environments_names_them():
    plan = plan_of(task(family="f"), TaskPlan(env="Acrobot-v1", family="f"))
    assert task_variants(plan) == (ENV, "Acrobot-v1")


def test_a_variant_too_long_to_read_is_the_number_of_the_task():
    start = {"start": list(range(100))}
    plan = plan_of(task(), task(kwargs=start), task((1,), kwargs=start))
    assert task_variants(plan) == ("", "{tasks.1}", "{tasks.1}")


def two_tasks(frame, episode, family="balancing", control=False):
    plan = plan_of(
        task((0, 2), family=family),
        task((0, 2), family=family, kwargs={"balls": 0}),
        episodes=3,
        control=control,
    )
    rows = [
        episode(
            f"t{index}-l{level:02d}-easy-balancer-s{seed}-sim",
            round(base - 0.05 * seed - (0.1 + 0.2 * index) * (level > 0), 3),
            level=level,
            seed=seed,
            family=family,
            control_id=f"t{index}-l00-easy-balancer-s{seed}-sim" if level else None,
        )
        for index, base in enumerate((0.9, 0.6))
        for level in (0, 2)
        for seed in range(3)
    ]
    return frame(*rows), plan


def test_cells_of_tasks_that_differ_in_keywords_stay_apart(frame, episode):
    log, plan = two_tasks(frame, episode)
    found = {(c.label, c.level): c for c in cells(log, plan)}
    assert {key: cell.performance.value for key, cell in found.items()} == pytest.approx(
        {
            ("balancing", 0): 0.85,
            ("balancing", 2): 0.75,
            ("balancing {balls: 0}", 0): 0.55,
            ("balancing {balls: 0}", 2): 0.25,
        }
    )
    assert all(cell.coverage.text == "3 of 3 scored" for cell in found.values())
    assert found["balancing {balls: 0}", 2].task_variant == "{balls: 0}"
    (policy,) = policies(log, plan)
    assert policy.n_conditions == 4
    assert policy.performance.value == pytest.approx(0.6)
    assert policy.coverage.text == "12 of 12 scored"


def test_effects_of_tasks_that_differ_in_keywords_stay_apart(frame, episode):
    log, plan = two_tasks(frame, episode, family="", control=True)
    effects = novelty_effects(log, plan)
    for found in (effects.cells, effects.levels):
        assert {effect.label: effect.difference.value for effect in found} == pytest.approx(
            {ENV: -0.1, f"{ENV} {{balls: 0}}": -0.3}
        )
        assert all((effect.n_pairs, effect.n_expected) == (3, 3) for effect in found)
    (overall,) = effects.policies
    assert (overall.label, overall.task_variant) == (None, None)
    assert overall.difference.value == pytest.approx(-0.2)
    # Six controls of three seeds, which start alike in both tasks.
    assert (overall.n_pairs, overall.difference.n) == (6, 3)


def test_policies_are_compared_task_by_task(frame, episode):
    log, plan = two_tasks(frame, episode)
    better = log.assign(
        policy="adaptive",
        episode_id=log["episode_id"].str.replace("balancer", "adaptive"),
        quality=log["quality"] + 0.05,
        control_id=None,
    )
    table = rescored_frame(pd.concat([log, better], ignore_index=True), plan)
    by = ("side", "task_variant")
    found = policy_differences(table, "adaptive", "balancer", by=by)
    assert [(e.task_variant, e.n_pairs) for e in found] == [("", 6), ("{balls: 0}", 6)]
    assert all(e.difference.value == pytest.approx(0.05) for e in found)


def test_the_summary_of_two_tasks_is_json(frame, episode):
    log, plan = two_tasks(frame, episode)
    data = json.loads(json.dumps(summarise(log, plan).as_dict(), allow_nan=False))
    assert [cell["label"] for cell in data["cells"]] == [
        *["balancing"] * 2,
        *["balancing {balls: 0}"] * 2,
    ]


def test_a_table_that_says_its_variants_is_believed(frame, episode):
    log, plan = two_tasks(frame, episode)
    table = episodes_frame(log, plan)
    assert table["task_variant"].tolist() == [*[""] * 6, *["{balls: 0}"] * 6]
    assert len(cells(table)) == 4
    assert len(cells(table, plan)) == 4


def test_controls_belong_to_the_task_their_id_names(frame, episode):
    plan = plan_of(task((2,)), task((2,), kwargs={"balls": 0}))
    controls = [
        episode(f"control-t{i}-l00-easy-balancer-s1-sim", arm=Arm.CONTROL) for i in range(2)
    ]
    assert episodes_frame(frame(*controls), plan)["task_variant"].tolist() == ["", "{balls: 0}"]


def test_a_row_that_could_be_of_either_task_is_refused(frame, episode):
    plan = plan_of(task(), task(kwargs={"balls": 0}))
    with pytest.raises(InputError, match="episode e: 2 tasks of the plan play 'RoboEval/Cart"):
        cells(frame(episode("e")), plan)


def test_ids_of_an_imported_trial_mean_nothing(frame, episode):
    source = ImportPlan(file="x.csv", sha256="0" * 64, rows=2)
    plan = plan_of(task((0,)), task((1,)), imported=source)
    log = frame(episode("t1-x", 0.5), episode("t0-x", 0.5, level=1))
    assert episodes_frame(log, plan)["task_variant"].tolist() == ["", ""]
    two = frame(episode("a"), episode("b", task="Acrobot-v1"))
    assert episodes_frame(two)["task_variant"].tolist() == [ENV, "Acrobot-v1"]
