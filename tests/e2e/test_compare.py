"""Comparing policies from the command line: one trial, several, and those that cannot be."""

import json
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from robo_eval.analysis.comparison import compare_trials
from robo_eval.core.errors import InputError
from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval_sim.runner import run_simulated

PLAN = """
name: {name}
tasks: [{{levels: {levels}}}]
policies: {policies}
episodes: {episodes}
seeds: {{first: {first}}}
traces: none
"""

CRASHING = """
class Crashing:
    '''Crashes in its first 13 episodes, at their second action.'''

    name = "crashing"
    digest = "0" * 64
    episodes = 0

    def reset(self, *, seed=None):
        Crashing.episodes += 1
        self.asked = 0

    def act(self, observation):
        self.asked += 1
        if Crashing.episodes <= 13 and self.asked > 1:
            raise RuntimeError("lost its nerve")
        return 0


def make():
    return Crashing()
"""


def play(folder: Path, policies: str, *, levels="[0]", episodes=8, first=1000) -> Path:
    text = PLAN.format(
        name=folder.name, policies=policies, levels=levels, episodes=episodes, first=first
    )
    trial = TrialDirectory.create(folder, parse_plan(text, source="plan"))
    run_simulated(trial, jobs=1)
    return folder


@pytest.fixture(scope="session")
def trials(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("compared")
    return {
        "two": play(folder / "two", "[balancer, random]"),
        "one": play(folder / "one", "[nothing]"),
        "again": play(folder / "again", "[balancer]", episodes=6),
        "levels": play(folder / "levels", "[nothing]", levels="[0, 1]", first=7, episodes=1),
    }


def test_policies_of_one_trial(cli, trials):
    result = cli("compare", trials["two"])
    assert result.code == 0, result.err
    assert "two, sim: share of strict successes [95 % interval]" in result.out
    assert re.search(r"balancer - random\s+1\.00 \[0\.\d\d, 1\.00\]\s+8 pairs\s+0\.008", result.out)
    assert "balancer did better than" in result.out
    assert re.search(r"balancer\s+1\s+a\s+1\.00", result.out)
    assert re.search(r"random\s+2\s+b\s+0\.00", result.out)


def test_help_has_an_example(quick_cli):
    result = quick_cli("compare", "--help")
    assert result.code == 0
    assert "robo-eval compare runs/demo/sim" in result.out


def test_policies_of_several_trials(quick_cli, trials):
    result = quick_cli("compare", trials["two"], trials["one"], "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert found["verified"] is True
    (side,) = found["sides"]
    assert [own["policy"] for own in side["policies"]] == ["balancer", "random", "nothing"]
    assert [own["letters"] for own in side["policies"]] == ["a", "b", "b"]
    tie = side["pairs"][-1]
    assert (tie["first"], tie["second"]) == ("random", "nothing")
    assert (tie["verdict"], tie["winner"], tie["p_holm"]) == ("undecided", None, 1.0)
    # Holm among three: 8 pairs can reach 0.05 / 3 if 7 of them differ.
    assert tie["least_deciding"] == 6
    assert "no difference shown" in tie["text"]


def test_a_name_that_two_trials_share_gets_that_of_its_directory(quick_cli, trials):
    result = quick_cli("compare", trials["two"], trials["again"])
    assert result.code == 0, result.err
    assert "two/balancer - again/balancer" in result.out
    assert "6 pairs" in result.out  # of the six seeds that both played
    assert "left out: up to 2 episodes" in result.out


def test_other_tests_are_refused_and_every_field_is_named(quick_cli, trials):
    result = quick_cli("compare", trials["two"], trials["levels"])
    assert result.code == 2
    assert result.out == ""
    assert "tasks.0.levels: [0] and [0, 1]" in result.err
    assert "seeds.first: 1000 and 7" in result.err
    assert str(trials["levels"]) in result.err


def test_nothing_to_compare_is_refused(quick_cli, trials):
    single = quick_cli("compare", trials["one"])
    assert single.code == 2
    assert "'nothing' is its only policy" in single.err
    nowhere = quick_cli("compare", trials["one"], "nowhere")
    assert nowhere.code == 2
    assert "nowhere: no such trial directory" in nowhere.err
    opened = TrialDirectory.open(trials["one"])
    with pytest.raises(InputError, match="named twice"):
        compare_trials([opened, opened])


def test_levels_that_changed_are_mixed_only_when_asked(quick_cli, tmp_path, lighter_cart):
    heavy = play(tmp_path / "heavy", "[nothing]", levels="[0, 1]", episodes=2)
    with lighter_cart():
        trials = heavy, play(tmp_path / "light", "[random]", levels="[0, 1]", episodes=2)
    refused = quick_cli("compare", *trials)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.count("\n") == 1
    said = r"CartPole3D-v0 level 1 easy \(paper\) changed between episodes: behaviour \w{12} \(pyb"
    assert re.search(said, refused.err)
    assert "level 0" not in refused.err
    assert str(trials[0]) in refused.err
    assert str(trials[1]) in refused.err
    assert "--across-versions" in refused.err
    told = quick_cli("compare", *trials, "--across-versions", "--json")
    assert told.code == 0, told.err
    (warning,) = [text for text in json.loads(told.out)["warnings"] if "level 1" in text]
    assert "--across-versions asks for" in warning
    told = quick_cli("acc", trials[1])
    assert "warning: level 1 easy (paper): played as levels that behave otherwise" in told.out
    assert "warning" not in quick_cli("acc", trials[0]).out


@pytest.mark.slow
def test_a_policy_that_crashed_neither_wins_nor_loses(quick_cli, tmp_path):
    (tmp_path / "crashing_policy.py").write_text(CRASHING)
    (tmp_path / "plan.yaml").write_text(
        "name: crash\ntasks: [{levels: [0]}]\nepisodes: 20\ntraces: none\n"
        "policies: [balancer, {name: mine, factory: 'crashing_policy:make'}]\n"
    )
    quick_cli("run", "plan.yaml", "--out", "trial", "--no-report", "--jobs", "1")
    result = quick_cli("compare", "trial")
    assert result.code == 1
    assert "mine: 7 of 20 scored (13 fault)" in result.err
    assert "no verdict: mine: 7 of 20 scored (13 fault)" in result.out
    assert "better" not in result.out
    assert re.search(r"mine\s+-\s+-\s+0\.00 .*0\.00, 0\.65", result.out)
    told = quick_cli("metrics", "trial")
    assert told.code == 1
    assert re.search(r"mine\s+sim\s+7 of 20 scored .* 0\.00 \[0\.00, 0\.41\]\s+too few", told.out)


def test_a_log_that_was_changed_is_said_so(quick_cli, trials, tmp_path):
    shutil.copytree(trials["two"], tmp_path / "changed")
    with sqlite3.connect(tmp_path / "changed/episodes.db") as database:
        database.execute("update episodes set ticks = 199 where sequence = 3")
    result = quick_cli("compare", "changed", "--json")
    assert result.code == 1
    assert "the log does not verify" in result.err
    assert json.loads(result.out)["verified"] is False
