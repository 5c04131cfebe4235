"""A trial is played in order by one policy with its memory, and is in the log whole or not."""

import textwrap
from dataclasses import replace

import pytest

from robo_eval.analysis.trial import acc_of, analyse_trial
from robo_eval.core.errors import PlanError
from robo_eval.core.kinds import EndReason, FaultBy
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore
from robo_eval.log.verify import verify_trial
from robo_eval.report.build import build_report
from robo_eval_sim.runner import check_plan, run_simulated

WORLD = """
import os
import time
import gymnasium
import numpy as np


class Buttons(gymnasium.Env):
    '''One of three buttons pays; which one is what novelty shifts. What it paid last is seen.'''

    metadata = {"render_modes": [], "render_fps": 10}
    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,))
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, novelty=None, onset=None):
        self._shift = int((novelty or {}).get("shift", 0))
        self._onset = onset or 0
        self.novelty = {
            "name": "shift" if novelty else "none", "begins": self._onset, "drawn": {"force": 2.0}
        }

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._tick = 0
        return np.ones(1), {}

    def step(self, action):
        right = self._shift if self._tick >= self._onset else 0
        reward = 0.2 * float(action == right)
        self._tick += 1
        return np.full(1, reward * 5.0), reward, self._tick == 5, False, {}


gymnasium.register("Buttons-v0", entry_point=Buttons, disable_env_checker=True)


class Learner:
    '''Tries the next button where one does not pay, and remembers over episodes.'''

    name, digest = "learner", "learner-1"

    def __init__(self, does=""):
        self.does, self.button, self.changes, self.told, self.trials = does, 0, 0, [], 0

    def begin_trial(self):
        self.trials += 1
        if self.does == "begins no trial":
            raise RuntimeError("not today")

    def begin_episode(self, info):
        if self.does == "begins no episode":
            raise RuntimeError("not today")
        self.told.append(info)
        if self.does == "rewrites":
            info["novelty"]["drawn"]["force"], info["novelty"]["more"] = [object()], float("nan")

    def reset(self, *, seed=None):
        pass

    def act(self, observation):
        assert self.trials == 1 and self.told  # nobody asks it before a trial has begun
        if observation[0] == 0.0:
            self.button = (self.button + 1) % 3
            self.changes += 1
            if self.does == "hangs":
                time.sleep(1e6)
            if self.does == "dies" or (self.does == "dies once" and not os.path.exists("died")):
                open("died", "w").close()
                os._exit(3)
            if self.does == "raises":
                raise ValueError("no more")
        return self.button

    def declare(self):
        if self.does == "lies":
            return {"probability": 1.5}
        if self.does == "says nothing":
            time.sleep(1e6)
        if self.does == "needs more":
            raise ValueError("too few")
        told = self.told[-1]
        said = f"{self.trials} {len(self.told)} {told['novelty_indicator']} {told.get('novelty')}"
        return {"probability": min(1.0, self.changes / 2), "entity": said[:100]}


class Stubborn:
    name, digest = "stubborn", "stubborn-1"

    def reset(self, *, seed=None):
        pass

    def act(self, observation):
        return 0
"""
TIME = {"start_ns": 0, "duration_s": 0.0, "numerics": None}


@pytest.fixture(autouse=True)
def world(tmp_path, monkeypatch):
    (tmp_path / "buttons.py").write_text(WORLD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield
    import sys

    import gymnasium

    sys.modules.pop("buttons", None)
    gymnasium.registry.pop("Buttons-v0", None)


def plan_of(
    trials="count: 3, episodes: 5, onset: [1, 3], controls: 1", *, does="", more="", shifts="[1, 2]"
):
    return parse_plan(
        textwrap.dedent(f"""
        name: x
        tasks: [{{env: "buttons:Buttons-v0", axes: {{shift: {shifts}}}}}]
        policies:
          - {{name: learner, factory: "buttons:Learner", kwargs: {{does: "{does}"}}}}
          - {{name: stubborn, factory: "buttons:Stubborn"}}
        traces: none
        trials: {{{trials}}}
        """)
        + more,
        source="plan.yaml",
    )


def rows_of(folder):
    with EpisodeStore(folder, durable=False) as store:
        return list(store.episodes())


def play(plan, folder, **how):
    run_simulated(TrialDirectory.create(folder, plan), **{"jobs": 1, **how})
    return {row.episode_id: replace(row, **TIME) for row in rows_of(folder)}


def test_each_trial_is_played_by_one_policy_as_it_was_made(tmp_path):
    rows = play(plan_of(), tmp_path / "t")
    assert len(rows) == 2 * (2 * 3 + 1) * 5
    for row in rows.values():
        place = row.novelty["trial"]
        if row.policy == "stubborn":
            assert "declared" not in place
            assert row.quality == (0.0 if place["is_novel"] else 1.0)
            continue
        said = place["declared"]["entity"].split()
        assert said[:2] == ["1", str(place["episode"] + 1)]  # one trial, and all its episodes
        if place["is_novel"]:
            learns = place["episode"] == place["onset"]
            shift = row.novelty["axes"]["shift"]
            assert row.quality == pytest.approx(1.0 - 0.2 * shift if learns else 1.0)


def test_more_workers_and_an_interrupted_run_leave_the_same_log(tmp_path):
    plan = plan_of()
    whole = play(plan, tmp_path / "whole")
    assert play(plan, tmp_path / "two", jobs=2) == whole

    def stop(_done, _planned, _row):
        raise RuntimeError("stop here")

    trial = TrialDirectory.create(tmp_path / "cut", plan)
    with pytest.raises(RuntimeError, match="stop here"):
        run_simulated(trial, jobs=1, on_progress=stop)
    begun = rows_of(trial.path)
    assert 0 < len(begun) < len(whole)
    assert len(begun) % 5 == 0  # whole trials only
    run_simulated(trial, jobs=1)
    again = rows_of(trial.path)
    assert len(again) == len(whole)
    assert {row.episode_id: replace(row, **TIME) for row in again} == whole


def test_a_policy_that_hangs_ends_its_trial_and_no_other(tmp_path):
    plan = plan_of(
        "count: 1, episodes: 4, onset: 1",
        does="hangs",
        more="decision_timeout_s: 2.0\n",
        shifts="[1]",
    )
    rows = play(plan, tmp_path / "t").values()
    by_trial = {}
    for row in rows:
        place = row.novelty["trial"]
        by_trial.setdefault((row.policy, place["cell"]), {})[place["episode"]] = row
    for (policy, _), own in by_trial.items():
        assert sorted(own) == [0, 1, 2, 3]
        faults = [own[place].fault_by for place in range(4)]
        assert faults == ([None] * 4 if policy == "stubborn" else [None] + [FaultBy.POLICY] * 3)
    last = by_trial["learner", "t0-shift_1"][3]
    assert "its trial ended in episode 1: the policy gave no action" in last.end_detail


def test_where_the_process_dies_the_rest_of_the_trial_is_lost(tmp_path):
    plan = plan_of("count: 1, episodes: 4, onset: 1", does="dies", shifts="[1]")
    rows = play(plan, tmp_path / "t")
    ends = {
        row.novelty["trial"]["episode"]: (row.end_reason, row.fault_by)
        for row in rows.values()
        if row.policy == "learner"
    }
    assert ends == {0: (EndReason.SUCCESS, None)} | dict.fromkeys((1, 2, 3), (EndReason.LOST, None))


def test_a_trial_that_lost_an_episode_is_played_again_whole_when_the_run_goes_on(tmp_path):
    plan = plan_of("count: 2, episodes: 4, onset: 1, controls: 1", does="dies once", shifts="[1]")
    trial = TrialDirectory.create(tmp_path / "t", plan.model_copy(update={"traces": "all"}))
    assert run_simulated(trial, jobs=1).unscored == 3
    before = rows_of(trial.path)
    lost = [row for row in before if row.end_reason is EndReason.LOST]
    assert "resume" in lost[0].end_detail
    again = run_simulated(trial, jobs=1)
    assert (again.played, again.unscored) == (4, 0)
    rows = rows_of(trial.path)
    assert rows[: len(before)] == before  # the log keeps both
    new = rows[len(before) :]
    cell = lost[0].novelty["trial"]["cell"]
    assert [row.attempt for row in new] == [2] * 4
    assert [row.episode_id.endswith("-a2") for row in new] == [True] * 4
    assert {(row.policy, row.novelty["trial"]["cell"]) for row in new} == {("learner", cell)}
    assert new[0].novelty["trial"]["declared"]["entity"].split()[:2] == ["1", "1"]  # a new agent
    assert run_simulated(trial, jobs=1).played == 0
    summary = analyse_trial(trial)
    learner = next(body for body in summary.bodies if body.policy == "learner")
    assert (len(learner.trials.played), learner.trials.n_left_out) == (3, 0)
    own = next(row for row in summary.policies if row.policy == "learner").coverage
    assert (own.scored, own.planned, own.attempts) == (12, 12, 16)
    assert [found.kind for found in summary.deviations] == ["retried", "lost"]
    assert not verify_trial(trial.path).problems
    # What was left of the second attempt is put back with the memory it had.
    (trial.path / new[3].trace_uri).unlink()
    run_simulated(trial, jobs=1)
    assert not verify_trial(trial.path).problems


@pytest.mark.parametrize(
    ("does", "said", "faults"), [("lies", "probability", 4), ("raises", "no more", 1)]
)
def test_what_a_policy_does_wrong_is_its_fault(tmp_path, does, said, faults):
    rows = play(plan_of("count: 1, episodes: 4, onset: 3", does=does), tmp_path / "t").values()
    own = [row for row in rows if row.fault_by is FaultBy.POLICY]
    assert len(own) == 2 * faults  # of each magnitude
    assert all(said in row.end_detail and row.quality is None for row in own)


def test_an_onset_is_told_where_it_is_given_and_novelty_to_the_informed_alone(tmp_path):
    rows = play(
        plan_of("count: 1, episodes: 3, onset: 1, condition: given, informed: learner"),
        tmp_path / "t",
    )
    said = {
        row.novelty["trial"]["episode"]: row.novelty["trial"]["declared"]["entity"].split(" ", 3)[
            2:
        ]
        for row in rows.values()
        if row.policy == "learner" and row.novelty["trial"]["cell"] == "t0-shift_2"
    }
    assert [said[place][0] for place in range(3)] == ["False", "True", "True"]
    assert "'none'" in said[0][1]
    assert "'shift'" in said[1][1]
    hidden = play(plan_of("count: 1, episodes: 3, onset: 1"), tmp_path / "hidden")
    told = [row.novelty["trial"].get("declared", {}).get("entity", "") for row in hidden.values()]
    assert {one.split(" ", 2)[2] for one in told if one} == {"None None"}


LISTENER = """
import json


class Listener:
    '''Says what it was ever given, as text.'''

    name, digest = "listener", "listener-1"

    def __init__(self):
        self.given = []

    def begin_trial(self, *given):
        self.given.append(repr(given))

    def begin_episode(self, info):
        self.given.append(repr(info))

    def reset(self, **given):
        self.given.append(repr(sorted(given)))

    def act(self, observation):
        self.given.append(type(observation).__name__)
        return 0

    def declare(self):
        told = " ".join(dict.fromkeys(self.given))
        return {"probability": 0.0, "entity": told[:100], "change": str("truth" in told)}
"""


@pytest.mark.parametrize("informed", ["", ", informed: listener"])
def test_the_row_has_the_truth_in_words_and_no_policy_is_told_it_but_the_informed(
    tmp_path, informed
):
    (tmp_path / "listening.py").write_text(LISTENER)
    plan = parse_plan(
        textwrap.dedent(f"""
        name: x
        tasks: [{{levels: [1, 5], difficulties: [hard], kwargs: {{reveal: true}}}}]
        policies: [{{name: listener, factory: "listening:Listener"}}]
        traces: none
        trials: {{count: 1, episodes: 2, onset: 1, controls: 1{informed}}}
        """),
        source="plan.yaml",
    )
    rows = list(play(plan, tmp_path / "t").values())
    truths = {row.level: row.novelty.get("truth") for row in rows}
    assert truths == {
        0: None,
        1: {"entity": "cart", "attribute": "mass", "change": "increase"},
        5: {"entity": "block", "attribute": "force", "change": "away block"},
    }
    for row in rows:
        said = row.novelty["trial"]["declared"]
        has_seen_it = bool(informed) and row.level > 0
        assert said["change"] == str(has_seen_it)
        if not informed:
            assert said["entity"] == "() {'novelty_indicator': None} ['seed'] ndarray"


def test_what_the_informed_does_to_what_it_is_told_is_its_own(tmp_path):
    rows = play(
        plan_of("count: 1, episodes: 3, onset: 1, informed: learner", does="rewrites"),
        tmp_path / "t",
    )
    assert all(row.novelty["drawn"] == {"force": 2.0} for row in rows.values())
    assert not any("more" in row.novelty or row.fault_by for row in rows.values())


def test_novelty_begins_inside_the_first_novel_episode_alone(tmp_path):
    rows = play(plan_of("count: 1, episodes: 4, onset: 1, onset_tick: 3"), tmp_path / "t")
    own = sorted(
        (row.novelty["trial"]["episode"], row.novelty["begins"], row.quality)
        for row in rows.values()
        if row.policy == "stubborn" and row.novelty["trial"]["cell"] == "t0-shift_1"
    )
    assert own == [(0, 0, 1.0), (1, 3, pytest.approx(0.6)), (2, 0, 0.0), (3, 0, 0.0)]


def test_what_never_began_is_told_by_the_report_and_by_acc(tmp_path):
    plan = parse_plan(
        "name: x\ntasks: [{levels: [9], difficulties: [easy]}]\npolicies: [nothing, balancer]\n"
        "traces: none\ntrials: {count: 1, episodes: 2, onset: 1, onset_tick: 190}",
        source="plan",
    )
    trial = TrialDirectory.create(tmp_path / "t", plan)
    run_simulated(trial, jobs=1)
    page = build_report(trial).read_text()
    assert "before their novelty began: nothing 1 at level 9. Here" in page
    assert any(
        one.startswith("nothing: ") and "1 at level 9" in one for one in acc_of(trial).warnings
    )


def test_a_lost_trace_of_a_trial_is_made_again_with_the_memory_it_had(tmp_path):
    plan = plan_of("count: 1, episodes: 4, onset: 1").model_copy(update={"traces": "all"})
    trial = TrialDirectory.create(tmp_path / "t", plan)
    run_simulated(trial, jobs=1)
    before = rows_of(trial.path)
    row = next(r for r in before if r.policy == "learner" and r.novelty["trial"]["episode"] == 3)
    content = (trial.path / row.trace_uri).read_bytes()
    (trial.path / row.trace_uri).unlink()
    told = []
    run_simulated(trial, jobs=1, say=told.append)
    assert (trial.path / row.trace_uri).read_bytes() == content
    assert rows_of(trial.path) == before
    assert len(told) == 1
    assert "damaged: 1," in told[0]


def test_a_share_of_the_episodes_after_the_first_novel_one_is_novel():
    plan = plan_of("count: 5, episodes: 12, onset: 1, share: 0.5")
    for number in range(5):
        drawn = plan.trials.drawn("t0", number, seed=7)
        novel = [place.is_novel for place in drawn]
        assert novel[:2] == [False, True]
        assert sum(novel) == 1 + 5
    assert (
        len({tuple(p.is_novel for p in plan.trials.drawn("t0", n, seed=7)) for n in range(5)}) > 1
    )


def test_every_policy_plays_the_same_trials():
    planned = schedule(plan_of(), plan_of().sides[0])
    kinds = [
        {(p.trial, p.seed, p.condition) for p in planned if p.policy == policy} for policy in (0, 1)
    ]
    assert kinds[0] == kinds[1]
    ids = [p.base_id for p in planned]
    assert len(set(ids)) == len(ids)
    order = [(p.series, p.trial.episode) for p in planned]
    assert [place for _, place in order] == list(range(5)) * (len(order) // 5)


def test_a_policy_is_checked_as_a_trial_begins():
    assert check_plan(plan_of("count: 1, episodes: 3, onset: 0, informed: learner")) == []


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("lies", r"policies\.0: 'learner': declare\(\): probability: .* given 1\.5"),
        ("says nothing", "the policy did not declare within 0.5 s; if it needs longer, raise"),
    ],
)
def test_a_policy_whose_declarations_cannot_be_used_is_refused(does, said):
    plan = plan_of("count: 1, episodes: 3, onset: 1", does=does, more="decision_timeout_s: 0.5\n")
    with pytest.raises(PlanError, match=said):
        check_plan(plan)


@pytest.mark.parametrize("method", ["begin_trial", "begin_episode"])
def test_a_policy_that_cannot_begin_is_refused_by_the_name_of_the_method(method):
    plan = plan_of(does=method.replace("_", "s no "))
    with pytest.raises(PlanError, match=rf"policies\.0: 'learner'.*{method}\(\) raised") as caught:
        check_plan(plan)
    assert str(caught.value).endswith(f"{method}() raised RuntimeError: not today")


def test_a_policy_that_cannot_declare_after_one_action_is_told_and_plays():
    told = check_plan(plan_of("count: 1, episodes: 3, onset: 1", does="needs more"))
    assert len(told) == 1
    assert "policies.0: 'learner': declare() raised ValueError: too few" in told[0]


def test_a_level_that_cannot_begin_inside_an_episode_is_refused():
    plan = parse_plan(
        "name: x\ntasks: [{levels: [3]}]\npolicies: [nothing]\n"
        "trials: {count: 1, episodes: 3, onset: 1, onset_tick: 20}",
        source="plan",
    )
    with pytest.raises(PlanError, match=r"trials\.onset_tick: .* cannot begin"):
        check_plan(plan)
