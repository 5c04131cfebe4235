"""The shipped difficulty of the items, and how it is made."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from robo_eval.agents import agent_names, load_policy, make_agent
from robo_eval.analysis import panel
from robo_eval.analysis.panel import items
from robo_eval.analysis.panel.controllers import PanelController
from robo_eval.core.errors import InputError, UnknownNameError
from robo_eval.core.plan import SeedPlan, TaskPlan, TrialPlan, parse_plan
from robo_eval.core.policy import Policy

MAKER = Path(__file__).parents[3] / "benchmarks" / "make_panel.py"
PLAN = parse_plan(panel.plan_text(), source="plan.yaml")


@pytest.mark.parametrize("profile", ["paper", "compat"])
def test_there_is_one_difficulty_for_each_of_51_items(profile):
    table = panel.item_difficulty(profile)
    assert list(table.columns) == list(items.COLUMNS)
    cells = set(zip(table["level"], table["difficulty"], strict=True))
    assert cells == {(n, d) for n in range(17) for d in ("easy", "medium", "hard")}
    assert len(table) == 51
    assert (table["item_difficulty"] + table["mean_performance"]).round(9).eq(1.0).all()
    assert (table["low"] <= table["mean_performance"]).all()
    assert (table["mean_performance"] <= table["high"]).all()
    assert table["n"].eq(len(panel.members()) * PLAN.episodes).all()
    assert PLAN.episodes >= 20


def test_difficulties_are_spread_widely_enough_to_draw_a_curve():
    table = panel.item_difficulty("paper")
    assert table["item_difficulty"].max() - table["item_difficulty"].min() > 0.4
    assert table["item_difficulty"].round(6).nunique() >= 40


def test_the_members_span_weak_to_strong():
    means = sorted(member.mean_performance for member in panel.members())
    assert 8 <= len(means) <= 12
    assert means[0] < 0.25
    assert means[-1] > 0.7


def test_unknown_profile_names_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'paper'"):
        panel.item_difficulty("papers")


def test_no_agent_that_can_be_named_is_in_the_panel():
    names = {member.name for member in panel.members()}
    assert not names & set(agent_names())
    panel.check_outsiders(make_agent(name).digest for name in agent_names())


def test_a_member_is_not_measured_by_the_panel():
    member = panel.members()[0]
    with pytest.raises(InputError, match=f"{member.name}: a member of the panel"):
        panel.item_difficulty("paper", agents=["0" * 64, member.digest])


@pytest.mark.parametrize(
    "kwargs",
    [
        {"rate_gain": 0.35},
        {"rate_gain": 0.35, "noise": 0},
        {"rate_gain": 0.35, "noise": 0.0, "lapse": 0, "velocity_gain": 0, "repeat": 1.0},
        {"rate_gain": 3.5e-1, "delay": 0, "position_gain": 0},
    ],
)
def test_a_member_is_known_however_its_parameters_are_written(kwargs):
    digest = load_policy("p", PLAN.policies[0].factory, kwargs).digest
    assert panel.members_among([digest, "0" * 64]) == {digest: "panel-firm"}
    with pytest.raises(InputError, match="panel-firm: a member of the panel"):
        panel.check_outsiders([digest])


def test_a_controller_with_parameters_of_its_own_is_no_member():
    other = load_policy("p", PLAN.policies[0].factory, {"rate_gain": 0.36})
    assert panel.members_among([other.digest]) == {}
    assert panel.members_among(make_agent(name).digest for name in agent_names()) == {}


def test_the_panel_s_own_tasks_are_like_its_items():
    assert [panel.unlike_items(task) for task in PLAN.tasks] == [[], []]
    other = PLAN.tasks[0].model_copy(update={"kwargs": {"balls": 3}, "max_ticks": 50})
    assert panel.unlike_items(other) == [
        "kwargs.balls 3, the panel had none",
        "max_ticks 50, the panel had 200",
    ]
    # Beyond the end of every episode a limit changes nothing.
    assert panel.unlike_items(PLAN.tasks[0].model_copy(update={"max_ticks": 200})) == []
    assert panel.unlike_items(TaskPlan(env="Acrobot-v1", quality_range=(-500, 0))) == []


def test_the_plan_makes_the_members_the_data_come_from():
    made = {p.name: load_policy(p.name, p.factory, p.kwargs) for p in PLAN.policies}
    assert all(isinstance(policy, Policy) for policy in made.values())
    recorded = {member.name: member.digest for member in panel.members()}
    assert {name: policy.digest for name, policy in made.items()} == recorded, (
        "the members changed: run benchmarks/make_panel.py"
    )


def test_the_panels_seeds_are_nobody_elses():
    used = range(PLAN.seeds.first, PLAN.seeds.first + PLAN.episodes)
    # Far from the default of plans, from tuning (below 10,000) and from reports (from 100,000).
    assert min(used) > 10_000_000 > SeedPlan().first


def test_provenance_says_what_the_data_were_made_with():
    found = panel.provenance()
    assert found.software.startswith("robo-eval ")
    assert {"numpy", "pybullet"} <= found.versions.keys()
    assert len(found.plan_digest) == 64


def test_the_panel_was_measured_on_the_installed_levels():
    pytest.importorskip("pybullet", reason="needs the extra: pip install 'robo-eval-stack[sim]'")
    gymnasium = pytest.importorskip("gymnasium")
    stale = []
    for item in items._data()["items"]:
        level, difficulty, profile = (item[name] for name in ("level", "difficulty", "profile"))
        env = gymnasium.make(panel.TASK, level=level, difficulty=difficulty, profile=profile)
        if env.unwrapped.behaviour != item["behaviour"]:
            stale.append(f"level {level} {difficulty} ({profile})")
        env.close()
    assert not stale, f"these levels changed: run benchmarks/make_panel.py; {stale}"


def level_rows(**changes):
    (item,) = (
        i
        for i in items._data()["items"]
        if (i["profile"], i["level"], i["difficulty"]) == ("paper", 3, "hard")
    )
    row = {"task": panel.TASK, "profile": "paper", "level": 3, "difficulty": "hard"}
    return pd.DataFrame([{**row, "behaviour": item["behaviour"]}, {**row, **changes}])


@pytest.mark.parametrize(
    "changes",
    [
        {"behaviour": None},
        {"behaviour": "0" * 64, "task": "Other-v0"},
        {"behaviour": "0" * 64, "level": 99},
        {"behaviour": "0" * 64, "level": None, "difficulty": None, "profile": None},
    ],
)
def test_rows_that_do_not_say_otherwise_are_no_reason_to_warn(changes):
    assert panel.warnings(level_rows(**changes)) == ()


def test_rows_of_another_behaviour_than_the_panel_s_are_named():
    (said,) = panel.warnings(level_rows(behaviour="0" * 64))
    assert said.startswith("level 3 hard (paper): played as levels that behave otherwise")
    assert f"pybullet {panel.provenance().versions['pybullet']}" in said


def test_the_simulator_still_gives_the_recorded_results():
    pytest.importorskip("pybullet", reason="needs the extra: pip install 'robo-eval-stack[sim]'")
    gymnasium = pytest.importorskip("gymnasium")
    from robo_eval.core.schedule import policy_seed

    probe = items._data()["probe"]
    plan = next(p for p in PLAN.policies if p.name == probe["policy"])
    agent = load_policy(plan.name, plan.factory, plan.kwargs)
    changed = []
    for profile, level, difficulty, recorded in probe["results"]:
        env = gymnasium.make(panel.TASK, level=level, difficulty=difficulty, profile=profile)
        observation, _ = env.reset(seed=probe["seed"])
        agent.reset(seed=policy_seed(probe["seed"]))
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(agent.act(observation))
            total, over = total + reward, terminated or truncated
        env.close()
        if total != pytest.approx(recorded, abs=1e-4):
            changed.append((profile, level, difficulty, recorded, total))
    assert not changed, f"the levels changed: run benchmarks/make_panel.py; {changed}"


def played(*, drop=None, quality=lambda policy, level, seed: 0.5, digest="d"):
    rows = [
        {
            "profile": "paper",
            "level": level,
            "difficulty": "easy",
            "policy": policy,
            "policy_digest": f"{digest}-{policy}",
            "seed": seed,
            "quality": quality(policy, level, seed),
            "software": "robo-eval 0",
            "behaviour": f"b{level}",
        }
        for level in (0, 1)
        for policy in ("weak", "strong")
        for seed in range(20)
        if (policy, level, seed) != drop
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def maker():
    """The program that writes the shipped data."""
    spec = importlib.util.spec_from_file_location("make_panel", MAKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def summarised(maker):
    return lambda frame: maker.summarise_panel(frame, plan_digest="p", versions={})


def test_the_mean_is_over_members_and_seeds_and_the_interval_over_seeds(summarised):
    # The members differ by 0.8 and the seeds by at most 0.1: only the latter widen the interval.
    frame = played(quality=lambda p, n, s: 0.1 + 0.8 * (p == "strong") + 0.1 * (s % 2) * (n == 1))
    calm, noisy = summarised(frame)["items"]
    assert calm["mean_performance"] == calm["low"] == calm["high"] == 0.5
    assert noisy["mean_performance"] == pytest.approx(0.55)
    assert 0.01 < noisy["high"] - noisy["low"] < 0.1
    assert calm["n"] == 40
    assert (calm["behaviour"], noisy["behaviour"]) == ("b0", "b1")


def test_members_carry_their_digest_and_mean_and_the_probe_is_who_varies_most(summarised):
    data = summarised(played(quality=lambda p, n, s: 0.75 if p == "strong" else 0.5 * (s % 2)))
    assert data["members"] == [
        {"name": "strong", "digest": "d-strong", "mean_performance": 0.75},
        {"name": "weak", "digest": "d-weak", "mean_performance": 0.25},
    ]
    assert (data["probe"]["policy"], data["probe"]["seed"]) == ("weak", 0)
    assert data["probe"]["results"] == [["paper", 0, "easy", 0.0], ["paper", 1, "easy", 0.0]]


def test_what_is_incomplete_is_refused(summarised):
    with pytest.raises(InputError, match="paper level 1 easy: episodes are missing"):
        summarised(played(drop=("weak", 1, 7)))
    unscored = played()
    unscored.loc[3, "quality"] = None
    with pytest.raises(InputError, match="an episode has no score"):
        summarised(unscored)
    other = played(digest="e")
    mixed = pd.concat([played(), other[other["level"] == 0].assign(level=5)])
    with pytest.raises(InputError, match="played with 2 digests"):
        summarised(mixed)
    for behaviour, said in ((None, "none"), ("b2", "b2")):
        changed = played()
        changed.loc[3, "behaviour"] = behaviour
        with pytest.raises(InputError, match=f"level 0 easy: .* behaviours b0, {said}; run"):
            summarised(changed)


def test_the_file_form_loses_nothing(maker, summarised):
    data = summarised(played())
    assert json.loads(maker.as_text(data)) == data
    assert json.loads(maker.as_text(items._data())) == items._data()
    least, most = maker.spread(items._data(), "paper")
    assert least < most


def controlled(**more):
    agent = PanelController(**{"dead_band": 0.0, **more})
    agent.reset(seed=4)
    return agent


def leaning(x=0.0, y=0.0):
    seen = np.zeros(12)
    seen[4:8] = -y / 2, x / 2, 0.0, 1.0
    return seen


def test_controllers_push_under_the_lean_after_their_delay_and_hold_it():
    assert controlled().act(leaning(x=0.1)) == 1
    assert controlled().act(leaning(y=-0.1)) == 4
    assert controlled(dead_band=0.2).act(leaning(x=0.1)) == 0
    late = controlled(delay=2)
    assert [late.act(leaning(x=s)) for s in (0.1, -0.1, -0.1, -0.1)] == [0, 0, 1, 2]
    slow = controlled(repeat=3)
    assert [slow.act(leaning(x=s)) for s in (0.1, -0.1, -0.1, -0.1)] == [1, 1, 1, 2]


def test_noise_and_lapses_repeat_with_the_seed():
    agent = controlled(noise=0.2, lapse=0.5)
    first = [agent.act(leaning(x=0.01)) for _ in range(60)]
    agent.reset(seed=4)
    assert [agent.act(leaning(x=0.01)) for _ in range(60)] == first
    agent.reset(seed=5)
    assert [agent.act(leaning(x=0.01)) for _ in range(60)] != first
    assert len(set(first)) == 5


def test_a_trial_with_a_member_rates_the_others_only(tmp_path):
    pytest.importorskip("pybullet", reason="needs the extra: pip install 'robo-eval-stack[sim]'")
    from robo_eval.analysis.trial import acc_of
    from robo_eval.log.directory import TrialDirectory
    from robo_eval_sim.runner import run_simulated

    head = {"name": "with a member", "episodes": 2, "traces": "none"}
    tasks = [{"levels": [0, 1, 9], "difficulties": ["easy", "hard"]}]
    member = PLAN.policies[0].model_dump()
    disguised = {**member, "name": "mine", "kwargs": {**member["kwargs"], "noise": 0, "lapse": 0}}
    plan = TrialPlan.model_validate(
        {**head, "tasks": tasks, "policies": ["random", "nothing", member, disguised]}
    )
    trial = TrialDirectory.create(tmp_path / "trial", plan)
    run_simulated(trial, jobs=1)
    table = acc_of(trial)
    assert [row.policy for row in table.rows] == ["nothing", "random"]
    assert table.left_out == (
        "mine (panel-firm, a member of the panel)",
        "panel-firm (a member of the panel)",
    )
    assert table.warnings == ()
    assert table.panel_members == {"mine": "panel-firm", "panel-firm": "panel-firm"}
    assert table.as_dict()["panel_members"] == dict(table.panel_members)
