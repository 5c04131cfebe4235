"""What the command line shows of a trial with a person at the robot; without ROS."""

from __future__ import annotations

import csv
import io
import os
import pty
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from robo_eval.cli.blind import blinding_until_complete, coded, coded_errors, print_coded
from robo_eval.cli.pause import pause
from robo_eval.cli.physical import _need_person, _terminal, named_operator
from robo_eval.cli.summary import summary_of
from robo_eval.core.blinding import Blinding
from robo_eval.core.errors import CheckFailedError, InputError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import JudgingPlan, locked_text, parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.notes import note
from robo_eval.log.pausing import is_paused
from robo_eval.log.planned_row import row_for
from robo_eval.log.store import EpisodeStore

PLAN = """
name: blind
tasks: [{levels: [0]}]
policies: [balancer, random]
episodes: 2
sides: [sim, twin]
blind: true
judging: {verdict: operator, milestones: [up]}
metrics: {resamples: 100}
"""


@pytest.fixture
def trial(tmp_path: Path) -> TrialDirectory:
    return TrialDirectory.create(tmp_path / "balancer", parse_plan(PLAN, source="plan.yaml"))


def play(trial: TrialDirectory, *ends: EndReason) -> None:
    planned = schedule(trial.plan, Side.TWIN)
    with trial.lock(), EpisodeStore(trial.path, durable=False) as store:
        for episode, end in zip(planned[len(store.ids()) :], ends, strict=False):
            success = (end is EndReason.SUCCESS) if end.is_scored else None
            row = row_for(
                episode, trial.plan, trial.plan_digest, policy_digest="p", start_ns=0,
                duration_s=1.0, ticks=1, episode_return=None, success=success,
                quality=None if success is None else 0.5, end_reason=end, software="x",
                robot="twin-1",
            )  # fmt: skip
            store.append([row])
        trial.write_manifest(status="interrupted", store=store)


def test_names_are_told_when_every_episode_is_played(trial, capsys):
    assert sorted(blinding_until_complete(trial).codes.values()) == ["A", "B"]
    play(trial, EndReason.SUCCESS, EndReason.FAILURE, EndReason.NO_VERDICT)
    blinding = blinding_until_complete(trial)
    assert blinding.codes
    print_coded(summary_of(trial), blinding)
    shown = capsys.readouterr().out
    assert "balancer" not in shown
    assert "random" not in shown
    assert "no names" not in shown
    play(trial, EndReason.SUCCESS)
    assert blinding_until_complete(trial) == Blinding({})


def test_errors_name_no_policy_but_the_path_of_the_trial(trial):
    where = str(trial.path)
    with pytest.raises(CheckFailedError) as caught, coded_errors(trial):
        raise CheckFailedError(f"{where}/traces/t0-balancer-s1: torn, says random; {where}")
    text = str(caught.value)
    assert text.count(where) == 2
    assert "balancer-s1" not in text
    assert "random" not in text
    assert coded("random", trial, Blinding({})) == "random"


def test_a_trial_is_paused_and_goes_on(trial, tmp_path, capsys):
    pause(trial.path)
    assert is_paused(trial.path)
    pause(trial.path)
    pause(trial.path, off=True)
    assert not is_paused(trial.path)
    pause(trial.path, off=True, json=True)
    shown = capsys.readouterr().out
    assert "waits before" in shown
    assert "waits already" in shown
    assert '"changed": false' in shown
    simulated = parse_plan("name: s\ntasks: [{levels: [0]}]\npolicies: [random]", source="p")
    other = TrialDirectory.create(tmp_path / "sim", simulated)
    with pytest.raises(InputError, match="nothing can wait"):
        pause(other.path)


def test_a_verdict_wants_a_name(trial):
    with pytest.raises(InputError, match="--operator NAME"):
        named_operator(trial.plan, None, auto=True)
    assert named_operator(trial.plan, "  Kim ", auto=True) == "Kim"
    for name in ("", "  ", "x" * 101, "a\nb"):
        with pytest.raises(InputError, match="a name of at most"):
            named_operator(trial.plan, name, auto=True)
    by_task = trial.plan.model_copy(update={"judging": JudgingPlan()})
    assert named_operator(by_task, None, auto=False) is None


def test_what_is_noted_of_a_person_has_columns_and_no_others(trial):
    note(trial.path, "verdicts", episode_id="e", blind=True, milestones='{"a, b": "yes"}')
    (line,) = csv.DictReader((trial.path / "verdicts.csv").open(newline=""))
    assert (line["episode_id"], line["blind"], line["verdict"]) == ("e", "true", "")
    assert line["milestones"] == '{"a, b": "yes"}'
    with pytest.raises(KeyError):
        note(trial.path, "pauses", why="tea")


def test_a_plan_s_judging_is_locked_and_a_milestone_is_there_once():
    plan = parse_plan(PLAN, source="p")
    assert "verdict: operator" in locked_text(plan)
    assert plan.judging.asks(Side.REAL)
    assert not plan.judging.asks(Side.SIM)
    with pytest.raises(InputError, match="'up' is there twice"):
        parse_plan(PLAN.replace("[up]", "[up, up]"), source="p")


def test_who_sits_at_a_terminal_changes_nothing_where_the_task_judges(trial, monkeypatch):
    primary, secondary = pty.openpty()
    plan = trial.plan
    by_task = plan.model_copy(update={"judging": JudgingPlan(milestones=("up",))})
    twin: Any = SimpleNamespace(body="twin", side=Side.TWIN, name="t")
    robot: Any = SimpleNamespace(body="physical", side=Side.REAL, name="r")
    with os.fdopen(secondary) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert _terminal(by_task, twin, None, auto=False) is None
        assert _terminal(plan, twin, None, auto=True) is None
        assert _terminal(plan, twin, None, auto=False) is not None
        assert _terminal(by_task, robot, None, auto=False) is not None
        with pytest.raises(InputError, match="--auto: a person must set up"):
            _need_person(robot, auto=True)
    os.close(primary)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert _terminal(plan, twin, None, auto=False) is None
    with pytest.raises(InputError, match="run this in a terminal"):
        _need_person(robot, auto=False)
    _need_person(twin, auto=False)
