"""Each policy meets each task before the first episode: what cannot work is refused there."""

from dataclasses import replace

import pytest

from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore
from robo_eval_sim.runner import check_plan, run_simulated

BENCH = """
import os
import sys
import time

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

SIZES = {"near": 2, "far": 3}


class Bench(gymnasium.Env):
    "Five ticks; takes whatever it is given, as many environments do."

    observation_space = Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, action_mode="near", reward=0.2):
        if action_mode not in SIZES:
            raise ValueError(f"action_mode: {action_mode!r} is none of {list(SIZES)}")
        self.action_space = Box(-1.0, 1.0, (SIZES[action_mode],), np.float32)
        self.reward = reward

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.tick = 0
        return self.look(), {}

    def look(self):
        return self.np_random.uniform(-1.0, 1.0, 2)  # float64 under a space of float32

    def info(self):
        return {}

    def step(self, action):
        self.tick += 1
        return self.look(), self.reward, self.tick == 5, False, self.info()


class Switch(Bench):
    def __init__(self):
        super().__init__()
        self.action_space = Discrete(2)


class Strict(Switch):
    def step(self, action):
        if action not in (0, 1):
            raise RuntimeError("no such switch")
        return super().step(action)


class Array(Bench):
    def __init__(self, size=1):
        super().__init__(reward=np.full(size, 0.2))


class Old(Bench):
    def step(self, action):
        observation, reward, terminated, _, info = super().step(action)
        return observation, reward, terminated, info


class OldReset(Bench):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


class Breaks(Bench):
    def step(self, action):
        raise OSError("no such motor")


class Nan(Bench):
    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, float("nan") if self.tick == 3 else reward, *rest


class Endless(Bench):
    def step(self, action):
        return self.look(), 0.2, False, False, {}


class Tells(Bench):
    told = "is_success"

    def __init__(self, says=None):
        super().__init__(reward=0.0)
        self.says = says
        self.observation_space = Dict(seen=Box(-1.0, 1.0, (2,), np.float32))

    def look(self):
        return {"seen": np.zeros(2, np.float32)}

    def info(self):
        lifted = self.tick == 5 if self.says is None else self.says
        return {self.told: lifted}


class Prints(Bench):
    def step(self, action):
        print("step")
        return super().step(action)


for kind in Bench.__subclasses__() + [Bench, Strict]:
    gymnasium.register(f"Bench/{kind.__name__}-v0", entry_point=kind)
gymnasium.register("Bench/Limited-v0", entry_point=Endless, max_episode_steps=30)


class Policy:
    name, digest = "policy", "5" * 64

    def __init__(self, action):
        self.action, self.seen = action, 0

    def reset(self, *, seed=None):
        self.seed, self.seen = seed, 0

    def act(self, observation):
        self.seen += 1
        return self.action(self, observation) if callable(self.action) else self.action


def says(action):
    return Policy(action)


def raises(seeds=0):
    first = []

    def act(self, observation):
        first.append(self.seed)
        if not seeds or len(set(first)) <= seeds:
            raise IndexError("index 24 is out of bounds")
        return np.zeros(2, np.float32)

    return Policy(act)


def remembers():
    "Never forgets how often it was asked."
    policy = Policy(lambda self, observation: np.full(2, min(1.0, len(asked) / 100), np.float32))
    asked, act = [], policy.act

    def counted(observation):
        asked.append(1)
        return act(observation)

    policy.act = counted
    return policy


def hangs():
    return Policy(lambda self, observation: time.sleep(1e6))


def dies():
    return Policy(lambda self, observation: os._exit(0))


def ends():
    return Policy(lambda self, observation: sys.exit("enough"))
"""


@pytest.fixture(autouse=True)
def bench(tmp_path, monkeypatch):
    """The module above, on the import path."""
    (tmp_path / "bench.py").write_text(BENCH)
    monkeypatch.syspath_prepend(tmp_path)


def plan_of(*policies, env="Bench-v0", task="", more=""):
    """A plan of three episodes; a policy is given as `factory(kwargs)`, with further keys."""
    text = f"name: x\ntasks: [{{env: 'bench:Bench/{env}', quality_range: [0, 1]{task}}}]\n"
    text += f"policies: [{', '.join(policies)}]\nepisodes: 3\ntraces: none\n{more}"
    return parse_plan(text, source="plan")


def made_by(maker, kwargs="", more="", name="p"):
    return f"{{name: {name}, factory: 'bench:{maker}', kwargs: {{{kwargs}}}{more}}}"


STILL = "{name: still, factory: 'bench:says', kwargs: {action: [0.0, 0.0]}}"


def played(tmp_path, plan, name="t"):
    trial = TrialDirectory.create(tmp_path / name, plan)
    run_simulated(trial, jobs=1)
    with EpisodeStore(trial.path, durable=False) as store:
        return list(store.episodes())


def refusal(*policies, **how):
    with pytest.raises(ValueError, match=r"^(policies|tasks)\.\d") as raised:
        check_plan(plan_of(*policies, **how))
    return str(raised.value)


@pytest.mark.parametrize(
    ("policy", "env", "parts"),
    [
        (made_by("says", "action: [0, 0, 0]"), "Bench-v0", ["3 numbers", "2 numbers would do"]),
        (made_by("says", "action: left"), "Bench-v0", ["'left'", "2 numbers"]),
        (made_by("says", "action: {a: 1}"), "Bench-v0", ["{'a': 1}", "2 numbers"]),
        (made_by("says", "action: [0, 0]"), "Switch-v0", ["2 numbers", "number from 0 to 1"]),
        (made_by("says", "action: 2"), "Switch-v0", ["is 2", "number from 0 to 1"]),
        (made_by("says", "action: 0.5"), "Switch-v0", ["is 0.5", "number from 0 to 1"]),
        (made_by("says", "action: null"), "Switch-v0", ["None", "number from 0 to 1"]),
        (made_by("says", "action: [.nan, 0]"), "Bench-v0", ["nan", "2 numbers"]),
        (made_by("says", "action: [0, .inf]"), "Bench-v0", ["inf", "2 numbers"]),
        (made_by("raises"), "Bench-v0", ["IndexError: index 24", "given 2 numbers"]),
        (made_by("raises"), "Tells-v0", ["IndexError: index 24", "given one of Dict"]),
        (made_by("ends"), "Bench-v0", ["SystemExit: enough", "2 numbers"]),
        (made_by("dies"), "Bench-v0", ["the process that asked it ended"]),
    ],
)
def test_a_policy_of_another_task_or_mode_is_refused(policy, env, parts):
    """By who, where, what was given and what would do."""
    still = made_by("says", "action: 1", name="still") if env == "Switch-v0" else STILL
    text = refusal(still, policy, env=env)
    assert text.startswith("policies.1: 'p' cannot act on tasks.0")
    assert f"Bench/{env}" in text
    for part in parts:
        assert part in text
    assert "\n" not in text


def test_what_the_environment_says_of_a_number_it_refuses_is_told():
    text = refusal(made_by("says", "action: [1]"), env="Strict-v0")
    assert "no such switch" in text
    assert "a whole number from 0 to 1 would do" in text


def test_the_arm_says_in_which_mode_a_policy_has_to_act():
    other = made_by("says", "action: [0, 0, 0, 0, 0, 0, 0.08]")
    text = f"name: x\ntasks: [{{env: RoboEval/PickPlace-v0}}]\npolicies: [arm-still, {other}]\n"
    with pytest.raises(ValueError, match=r"^policies\.1: 'p' cannot act on tasks\.0") as raised:
        check_plan(parse_plan(text, source="plan"))
    said = str(raised.value)
    assert "7 numbers" in said
    assert "8 numbers would do" in said
    assert "action_mode" in said
    agreed = parse_plan(text.replace("0.08]}", "0.08]}, action_mode: ee_delta"), source="plan")
    assert check_plan(agreed) == []


def test_policies_of_two_modes_play_one_task(tmp_path):
    far = made_by("says", "action: [0, 0, 0]", more=", action_mode: far")
    plan = plan_of(STILL, far)
    assert check_plan(plan) == []
    rows = played(tmp_path, plan)
    assert {(row.policy, row.end_reason) for row in rows} == {
        ("still", "success"),
        ("p", "success"),
    }
    # The keyword of a task holds for policies that say nothing.
    other = plan_of(made_by("says", "action: [0, 0, 0]"), task=", kwargs: {action_mode: far}")
    assert check_plan(other) == []


@pytest.mark.parametrize(
    ("env", "mode", "said"),
    [("Bench-v0", "wide", "is none of"), ("Switch-v0", "far", "has no action modes; remove")],
)
def test_a_mode_that_an_environment_lacks_is_refused_where_it_is_written(env, mode, said):
    text = refusal(STILL, made_by("raises", more=f", action_mode: {mode}"), env=env)
    assert text.startswith("policies.1.action_mode: ")
    assert said in text


@pytest.mark.parametrize(
    "action", ["[0.0, 0.0]", "[0, 0]", "[7.5, 0.0]", "[[0.1], [0.2]]"],
)  # fmt: skip
def test_what_an_environment_takes_is_not_refused(tmp_path, action):
    """Other types, bounds and shapes: many environments convert and clip."""
    plan = plan_of(made_by("says", f"action: {action}"))
    assert check_plan(plan) == []
    assert [row.end_reason for row in played(tmp_path, plan)] == ["success"] * 3


@pytest.mark.parametrize(
    ("env", "task", "parts"),
    [
        ("Old-v0", "", ["step(", "five values", "terminated, truncated"]),
        ("OldReset-v0", "", ["reset(", "two values: observation and info"]),
        ("Breaks-v0", "", ["step(", "OSError: no such motor"]),
        ("Array-v0", ", kwargs: {size: 2}", ["the reward is array([0.2, 0.2])", "finite number"]),
        ("Bench-v0", ", kwargs: {reward: null}", ["the reward is None", "finite number"]),
        ("Bench-v0", ", kwargs: {reward: .nan}", ["the reward is nan", "finite number"]),
    ],
)
def test_an_environment_that_no_policy_can_play_is_refused(env, task, parts):
    text = refusal(STILL, env=env, task=task)
    assert text.startswith(f"tasks.0.env: bench:Bench/{env}: ")
    for part in parts:
        assert part in text


@pytest.mark.parametrize("action", ["[0, 0]", "[7.5, 0]", "[[0.1], [0.2]]"])
@pytest.mark.parametrize("task", [", kwargs: {reward: null}", ", kwargs: {reward: [0.2, 0.2]}"])
def test_a_reward_that_is_none_is_the_environments_whatever_the_action(action, task):
    """Also where the action is none of its space, and it takes it all the same."""
    text = refusal(made_by("says", f"action: {action}"), task=task)
    assert text.startswith("tasks.0.env: bench:Bench/Bench-v0: step(")
    assert "reward" in text


def test_what_fails_from_some_starts_only_is_a_fault_of_those(tmp_path):
    plan = plan_of(made_by("raises", "seeds: 1"))
    assert check_plan(plan) == []
    ends = [(row.end_reason, row.fault_by) for row in played(tmp_path, plan)]
    assert sorted(ends) == [("fault", "policy"), ("success", None), ("success", None)]


def test_a_policy_that_does_not_answer_is_refused_after_its_time():
    with pytest.raises(ValueError, match=r"policies\.0: 'p' cannot act .* no action within 0.2 s"):
        check_plan(plan_of(made_by("hangs"), more="decision_timeout_s: 0.2\n"))


def test_results_are_the_same_with_a_probe_and_without(tmp_path):
    """Even of a policy that never forgets: it was asked elsewhere."""
    plan = plan_of(made_by("remembers"), STILL, more="order: blocked\n")
    before = played(tmp_path, plan, "before")
    check_plan(plan)
    after = played(tmp_path, plan, "after")
    same = {"start_ns": 0, "duration_s": 0.0}
    assert [replace(row, **same) for row in after] == [replace(row, **same) for row in before]


def test_a_reward_of_one_number_in_an_array_counts(tmp_path):
    rows = played(tmp_path, plan_of(STILL, env="Array-v0"))
    assert [(row.end_reason, row.episode_return) for row in rows] == [("success", 1.0)] * 3


def test_a_reward_that_is_no_number_is_a_fault_of_the_setup_by_its_name(tmp_path):
    for row in played(tmp_path, plan_of(STILL, env="Nan-v0")):
        assert (row.end_reason, row.fault_by, row.success) == ("fault", "setup", None)
        assert "the reward is nan" in row.end_detail
        assert "tick 2" in row.end_detail


def test_an_environment_without_end_is_given_up_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr("robo_eval_sim.play._TICK_CAP", 20)
    for row in played(tmp_path, plan_of(STILL, env="Endless-v0")):
        assert (row.end_reason, row.fault_by, row.success) == ("fault", "setup", None)
        assert "give the task `max_ticks`" in row.end_detail
    limited = plan_of(STILL, env="Endless-v0", task=", max_ticks: 4")
    assert [row.end_reason for row in played(tmp_path, limited, "limited")] == ["timeout"] * 3
    own = plan_of(STILL, env="Limited-v0")
    assert [row.ticks for row in played(tmp_path, own, "own")] == [30] * 3


@pytest.mark.parametrize(
    ("says", "end"), [("null", "success"), ("false", "failure"), ("[1.0]", "success")]
)
def test_success_is_what_the_environment_tells_where_the_plan_says_so(tmp_path, says, end):
    task = f", success: is_success, success_quality: 0.75, kwargs: {{says: {says}}}"
    plan = plan_of(STILL, env="Tells-v0", task=task)
    assert check_plan(plan) == []
    rows = played(tmp_path, plan)
    assert [(row.end_reason, row.success, row.quality) for row in rows] == [
        (end, end == "success", 0.0)
    ] * 3


@pytest.mark.parametrize(
    ("key", "says", "said"),
    [
        ("is_done", "null", "the last info lacks 'is_done', which `success` of the task names; it"),
        ("is_success", "much", "info['is_success'] is 'much'; `success` needs true or false"),
        ("is_success", "0.5", "info['is_success'] is 0.5; `success` needs true or false"),
    ],
)
def test_a_success_that_is_not_told_is_a_fault_and_no_failure(tmp_path, key, says, said):
    task = f", success: {key}, kwargs: {{says: {says}}}"
    for row in played(tmp_path, plan_of(STILL, env="Tells-v0", task=task)):
        assert (row.end_reason, row.fault_by, row.success) == ("fault", "setup", None)
        assert said in row.end_detail


def test_a_plan_that_leaves_aside_what_an_environment_tells_is_told_so():
    (remark,) = check_plan(plan_of(STILL, made_by("says", "action: [0, 0]"), env="Tells-v0"))
    assert remark.startswith("tasks.0.env: bench:Bench/Tells-v0 tells success by info")
    assert "`success: is_success`" in remark


def test_what_an_environment_prints_is_not_among_the_numbers(tmp_path, capfd):
    plan = plan_of(STILL, env="Prints-v0")
    check_plan(plan)
    played(tmp_path, plan)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err.count("step") == 16


def test_a_success_told_in_simulation_is_not_for_robots():
    with pytest.raises(ValueError, match=r"tasks.0.success: is told in simulation alone"):
        plan_of(STILL, task=", success: is_success", more="sides: [sim, twin]\n")
