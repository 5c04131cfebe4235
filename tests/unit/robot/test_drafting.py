"""Drafts of incidents while a run lasts: at once, once, and that nothing happened if so."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import robo_eval_twin
from robo_eval.core.errors import InputError, InterruptedRunError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import PlannedEpisode, schedule
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.planned_row import row_for
from robo_eval.log.store import EpisodeStore
from robo_eval_incidents import open_log
from robo_eval_incidents.kinds import Nil
from robo_eval_incidents.record import Record
from robo_eval_incidents.words import Category, Engagement, Severity
from robo_eval_robot.attempt import Attempt
from robo_eval_robot.config import RobotConfig, read_robot
from robo_eval_robot.noting import Drafts, Notebook

PLAN = """
name: run
tasks: [{env: RoboEval/CartPole3D-v0, kwargs: {balls: 0}, levels: [0], family: balancing}]
policies: [balancer]
episodes: 3
sides: [sim, twin]
"""


class Report:
    """What the guard says; as `robo_eval_robot.link.Trip`, which needs ROS to be imported."""

    def __init__(self, code: str, episode_id: str, stamp_ns: int) -> None:
        self.code = code
        self.text = f"Because of {code}."
        self.stamp_ns = stamp_ns
        self.values = {"episode_id": episode_id, "value": "0.4", "limit": "0.1", "unit": "s"}


class Run:
    """A trial on the built-in twin, of which nothing moves."""

    def __init__(self, folder: Path) -> None:
        self.trial = TrialDirectory.create(folder, parse_plan(PLAN, source="plan"))
        twin = Path(robo_eval_twin.__file__).with_name("gantry_twin.yaml")
        self.config: RobotConfig = read_robot(twin)
        self.planned = schedule(self.trial.plan, Side.TWIN)

    def drafts(self) -> Drafts:
        return Drafts(self.trial, self.config)

    def notebook(self, drafts: Drafts) -> Notebook:
        return Notebook(self.trial.path, self.trial.plan, self.planned, Side.TWIN, drafts)

    def log(self, drafts: Drafts | None, planned: PlannedEpisode, **changed: Any) -> None:
        """Commit the row of an episode, and draft of it unless the run was killed before."""
        fields: dict[str, Any] = {
            "policy_digest": "1" * 64, "robot": self.config.name,
            "start_ns": time.time_ns() - 10 * 10**9, "duration_s": 4.0,
            "ticks": 200, "episode_return": 1.0, "quality": 1.0,
            "success": True, "end_reason": EndReason.SUCCESS, "software": "robo-eval 1",
        }  # fmt: skip
        row = row_for(planned, self.trial.plan, self.trial.plan_digest, **(fields | changed))
        with EpisodeStore(self.trial.path, durable=False) as store:
            store.append([row])
        if drafts is not None:
            drafts.logged(row)

    def records(self) -> list[Record]:
        with open_log(self.trial.path, read_only=True) as log:
            return list(log.records())

    def kinds(self) -> list[str]:
        return [record.kind for record in self.records()]


STOPPED = {"end_reason": EndReason.SAFETY_STOP, "end_detail": "guard: estop", "success": False}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "trial")


def test_the_log_is_there_from_the_start(run: Run) -> None:
    with run.drafts():
        assert (run.trial.path / "incidents.db").is_file()


def test_a_stop_is_drafted_before_the_episode_is_logged(run: Run) -> None:
    first = run.planned[0]
    with run.drafts() as drafts:
        trips = (Report("estop", first.episode_id, time.time_ns()),)
        attempt = Attempt(end_reason=EndReason.SAFETY_STOP, trips=trips)
        run.notebook(drafts).attempt(first, attempt)
        with open_log(run.trial.path, read_only=True) as log:
            (incident,) = log.incidents()
        run.log(drafts, first, **STOPPED)
    assert run.kinds() == ["opened", "report"]
    report = incident.report
    assert (report.category, report.side) == (Category.EMERGENCY_STOP, Side.TWIN)
    assert (report.policy, report.task) == ("balancer", "balancing")
    assert (report.robot, report.engagement) == (run.config.name, Engagement.AUTONOMOUS)


def test_a_late_report_raises_the_draft_of_its_stop(run: Run) -> None:
    first = run.planned[0]
    now_ns = time.time_ns()
    with run.drafts() as drafts:
        notebook = run.notebook(drafts)
        notebook.trips([Report("estop", first.episode_id, now_ns)])
        late = Report("no_standstill", first.episode_id, now_ns + 10**9)
        notebook.trips([late])
    with open_log(run.trial.path, read_only=True) as log:
        (incident,) = log.incidents()
    assert incident.severity is Severity.CRITICAL
    assert "no_standstill" in incident.report.description


def test_a_stop_between_two_episodes_is_an_incident_of_none(run: Run) -> None:
    with run.drafts() as drafts:
        run.notebook(drafts).trips([Report("estop", "", time.time_ns())])
    with open_log(run.trial.path, read_only=True) as log:
        (incident,) = log.incidents()
    assert incident.report.episode_id is None
    assert incident.report.engagement is Engagement.UNKNOWN


@pytest.mark.parametrize("error", [None, InterruptedRunError("stopped by SIGINT")])
def test_a_run_in_which_nothing_happened_says_so(run: Run, error: Exception | None) -> None:
    begun_ns = time.time_ns()
    drafts = run.drafts()
    drafts.__enter__()
    run.log(drafts, run.planned[0], start_ns=time.time_ns())
    drafts.__exit__(type(error) if error else None, error, None)
    nil = run.records()[-1].body
    assert isinstance(nil, Nil)
    assert (nil.robot, nil.side) == (run.config.name, Side.TWIN)
    assert begun_ns <= nil.start_ns < nil.end_ns <= time.time_ns()


def test_a_run_that_broke_off_or_played_nothing_says_nothing(run: Run) -> None:
    drafts = run.drafts()
    drafts.__enter__()
    run.log(drafts, run.planned[0])
    drafts.__exit__(InputError, InputError("the disk is full"), None)
    assert run.kinds() == []
    other = Run(run.trial.path.parent / "other")
    with other.drafts():
        pass
    assert other.kinds() == []


def test_a_killed_run_is_spoken_for_by_the_next(run: Run) -> None:
    run.log(None, run.planned[0])
    begun_ns = time.time_ns()
    with run.drafts():
        pass
    nil = run.records()[-1].body
    assert isinstance(nil, Nil)
    assert nil.start_ns < begun_ns
    with run.drafts():
        pass
    assert run.kinds() == ["opened", "nil"]


def test_what_a_killed_run_did_not_draft_is_drafted_once_by_the_next(run: Run) -> None:
    run.log(None, run.planned[0], **STOPPED)
    for planned in run.planned[1:]:
        with run.drafts() as drafts:
            run.log(drafts, planned)
    assert run.kinds() == ["opened", "report", "nil", "nil"]


def test_a_table_of_incidents_beside_the_log_is_refused_before_anything_moves(run: Run) -> None:
    (run.trial.path / "incidents.csv").write_text("incident_id,severity\n")
    with pytest.raises(InputError, match="robo-eval incidents import"):
        run.drafts()


def test_a_clock_that_was_set_back_makes_no_time_of_less_than_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch, make_clock: Callable[[], None]
) -> None:
    with run.drafts() as drafts:
        run.log(drafts, run.planned[0])
        make_clock()
    nil = run.records()[-1].body
    assert isinstance(nil, Nil)
    assert nil.end_ns > nil.start_ns


@pytest.fixture
def make_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Sets the wall clock back by an hour, as far as drafts see it."""
    real = time.time_ns

    def back() -> None:
        monkeypatch.setattr("robo_eval_robot.noting.time.time_ns", lambda: real() - 3600 * 10**9)

    return back
