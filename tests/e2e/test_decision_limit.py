"""A policy that never answers is ended with its process, and Ctrl-C is heard all the same."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore
from robo_eval.log.verify import verify_trial
from robo_eval_sim.runner import run_simulated

PLAN = """
name: hanging
tasks: [{{levels: [0]}}]
policies: [balancer, {{name: odd, factory: "hangers:{maker}", kwargs: {{folder: {folder}}}}}]
episodes: {episodes}
order: blocked
traces: none
decision_timeout_s: {limit}
"""

# Every one plays three ticks first, and says by a file that it has begun to hang.
HANGERS = """
import ctypes
import multiprocessing
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path


class Hangs:
    name, digest = "odd", "7" * 64

    def __init__(self, folder):
        self.folder, self.ticks = Path(folder), 0

    def reset(self, *, seed=None):
        self.ticks = 0

    def act(self, observation):
        self.ticks += 1
        if self.ticks > 3:
            (self.folder / "hangs").touch()
            self.hang()
        return 0


class sleeps(Hangs):
    def hang(self):
        while True:
            time.sleep(0.5)


class holds_the_interpreter(Hangs):
    def hang(self):
        ctypes.PyDLL(None).pause()


class computes_in_c(Hangs):
    def hang(self):
        re.match(r"(a+)+$", "a" * 64 + "b")


class blocks_signals(Hangs):
    def hang(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        time.sleep(1e6)


class catches_everything(Hangs):
    def hang(self):
        while True:
            try:
                time.sleep(1e6)
            except BaseException:
                pass


class has_a_family(Hangs):
    def hang(self):
        threading.Thread(target=time.sleep, args=(1e6,)).start()
        own = subprocess.Popen(["sleep", "1000000"], start_new_session=True)
        child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(1e6,))
        child.start()
        (self.folder / "pids").write_text(f"{own.pid} {child.pid}")
        child.join()


class reset_hangs(Hangs):
    def reset(self, *, seed=None):
        (self.folder / "hangs").touch()
        time.sleep(1e6)


def factory_hangs(folder):
    time.sleep(1e6)


class dies(Hangs):
    def hang(self):
        os._exit(0)


class dies_in_reset(Hangs):
    def reset(self, *, seed=None):
        os._exit(0)


class raises(Hangs):
    def hang(self):
        raise OSError("no such camera")


class raises_ctrl_c(Hangs):
    def hang(self):
        raise KeyboardInterrupt


class answers_nonsense(Hangs):
    def act(self, observation):
        return "left"
"""


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Makes a plan with one of the policies above, which are on the import path."""
    (tmp_path / "hangers.py").write_text(HANGERS)
    monkeypatch.syspath_prepend(tmp_path)

    def make(maker, episodes=2, limit=0.5):
        return PLAN.format(maker=maker, folder=tmp_path, episodes=episodes, limit=limit)

    return make


def played(folder):
    with EpisodeStore(folder, durable=False) as store:
        return list(store.episodes())


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("maker", "said"),
    [
        ("sleeps", "the policy gave no action within 0.5 s (tick 3)"),
        pytest.param(
            "holds_the_interpreter", "the policy gave no action within 0.5 s (tick 3)", marks=SLOW
        ),
        pytest.param(
            "computes_in_c", "the policy gave no action within 0.5 s (tick 3)", marks=SLOW
        ),
        pytest.param(
            "blocks_signals", "the policy gave no action within 0.5 s (tick 3)", marks=SLOW
        ),
        pytest.param(
            "catches_everything", "the policy gave no action within 0.5 s (tick 3)", marks=SLOW
        ),
        ("has_a_family", "the policy gave no action within 0.5 s (tick 3)"),
        ("reset_hangs", "the policy was not reset within 0.5 s (tick 0)"),
    ],
)
def test_a_policy_that_never_answers_is_a_fault_of_its_own_and_the_run_goes_on(
    tmp_path, plan, maker, said
):
    trial = TrialDirectory.create(tmp_path / "t", parse_plan(plan(maker), source="plan"))
    result = run_simulated(trial, jobs=1)
    assert (result.planned, result.played, result.unscored) == (4, 4, 2)
    rows = {
        name: [r for r in played(trial.path) if r.policy == name] for name in ("odd", "balancer")
    }
    assert all(row.end_reason.is_scored and row.fault_by is None for row in rows["balancer"])
    assert [(r.end_reason, r.fault_by, r.end_detail) for r in rows["odd"]] == [
        ("fault", "policy", said)
    ] * 2
    assert all(row.policy_digest == "7" * 64 for row in rows["odd"])
    assert all(row.duration_s == row.ticks * 0.02 for row in rows["odd"])
    made = [(r.behaviour, r.task_version, r.engine, r.numerics) for r in played(trial.path)]
    assert len(set(made)) == 1
    assert all(made[0])
    assert verify_trial(trial.path).ok
    if maker == "has_a_family":
        assert not any(map(is_running, (tmp_path / "pids").read_text().split()))


@pytest.mark.parametrize("maker", ["dies", "dies_in_reset"])
def test_the_row_of_a_process_that_died_says_on_what_it_played(tmp_path, plan, maker):
    text = plan(maker, limit=60)  # so that dying is never late
    trial = TrialDirectory.create(tmp_path / "t", parse_plan(text, source="plan"))
    assert run_simulated(trial, jobs=1).unscored == 2
    rows = played(trial.path)
    assert [row.end_reason for row in rows if row.policy == "odd"] == ["lost"] * 2
    assert len({(r.behaviour, r.task_version, r.engine, r.numerics) for r in rows}) == 1
    assert all((rows[0].behaviour, rows[0].task_version, rows[0].engine, rows[0].numerics))


@pytest.mark.slow
def test_two_workers_lose_only_the_episodes_that_hang(tmp_path, plan):
    text = plan("sleeps", episodes=8)
    trial = TrialDirectory.create(tmp_path / "t", parse_plan(text, source="plan"))
    assert run_simulated(trial, jobs=2).unscored == 8
    ended = [(row.policy, row.fault_by) for row in played(trial.path)]
    assert ended.count(("odd", "policy")) == ended.count(("balancer", None)) == 8


@pytest.mark.parametrize(
    ("maker", "by", "said"),
    [
        ("raises", "policy", "OSError: no such camera"),
        ("raises_ctrl_c", "policy", "KeyboardInterrupt"),
        ("answers_nonsense", "policy", "a whole number from 0 to 4 is needed, given 'left'"),
    ],
)
def test_what_a_policy_raises_or_answers_wrongly_is_its_own_fault(tmp_path, plan, maker, by, said):
    trial = TrialDirectory.create(tmp_path / "t", parse_plan(plan(maker), source="plan"))
    run_simulated(trial, jobs=1)
    odd = [row for row in played(trial.path) if row.policy == "odd"]
    assert {(row.end_reason, row.fault_by) for row in odd} == {("fault", by)}
    assert all(said in row.end_detail for row in odd)


def test_a_factory_that_never_returns_is_refused(tmp_path, plan, monkeypatch):
    from robo_eval.agents import confined
    from robo_eval_sim.runner import check_plan

    monkeypatch.setattr(confined, "_MAKING", (0.5, 1.0))
    with pytest.raises(ValueError, match=r"hangers:factory_hangs': did not return within 0.5 s"):
        check_plan(parse_plan(plan("factory_hangs"), source="plan"))


def test_time_in_which_a_policy_was_stopped_does_not_count(tmp_path, plan):
    from robo_eval.core.confined import Confined, wait_for

    process = Confined(_echo, forks=True)
    try:
        pid = process._process.pid
        os.kill(pid, signal.SIGSTOP)
        process.tell("hello")
        looks = []

        def check():
            looks.append(process.is_stopped)
            if len(looks) == 20:  # a second, which is longer than the limit
                os.kill(pid, signal.SIGCONT)

        assert wait_for(process, 0.5, check)
        assert process.pipe.recv() == "hello"
        assert looks.count(True) >= 19
    finally:
        process.end()


def _echo(hears, speaks):
    speaks.send(hears.recv())


@pytest.mark.parametrize("value", ["0", "-1", ".inf", ".nan", "100000", "soon"])
def test_a_limit_that_is_none_is_refused(value):
    with pytest.raises(ValueError, match="decision_timeout_s"):
        parse_plan(
            f"name: x\ntasks: [{{levels: [0]}}]\npolicies: [random]\ndecision_timeout_s: {value}",
            source="plan",
        )


# Ctrl-C ----------------------------------------------------------------------------------------


class Command:
    """A run in a session of its own, as in a terminal."""

    def __init__(self, folder, environment, text, jobs):
        (folder / "plan.yaml").write_text(text)
        self.trial = folder / "trial"
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "robo_eval", "run", "plan.yaml", "--out", "trial"),
                *("--no-report", "--jobs", str(jobs)),
            ],
            cwd=folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.lines = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line)

    def until(self, is_so):
        deadline = time.monotonic() + 60
        while not is_so():
            assert time.monotonic() < deadline, self.lines
            assert self.process.poll() is None, self.lines
            time.sleep(0.02)

    def press(self, number, group):
        (os.killpg if group else os.kill)(self.process.pid, number)

    def end(self):
        self.process.wait(60)
        self._reader.join()
        return self.process.returncode, "".join(self.lines)


@pytest.fixture
def begin(tmp_path, environment):
    begun = []

    def start(text, jobs):
        begun.append(Command(tmp_path, environment, text, jobs))
        return begun[-1]

    yield start
    for command in begun:
        if command.process.poll() is None:
            command.process.kill()
            command.end()


SECOND = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Every signal, both numbers of workers, and both ways to be told; all of them together take long.
QUICK = ((signal.SIGINT, True, 1), (signal.SIGTERM, False, 2), (signal.SIGHUP, True, 2))


@pytest.mark.parametrize(
    ("second", "group", "jobs"),
    [
        pytest.param(
            *case,
            id=f"{case[0].name} to the {'group' if case[1] else 'parent'}, {case[2]} at work",
            marks=[] if case in QUICK else [pytest.mark.slow],
        )
        for case in itertools.product(SECOND, (True, False), (1, 2))
    ],
)
def test_ctrl_c_twice_ends_a_run_whose_policy_hangs(tmp_path, plan, begin, jobs, group, second):
    command = begin(plan("blocks_signals", episodes=10, limit=3600), jobs)
    command.until((tmp_path / "hangs").exists)
    command.press(signal.SIGINT, group)
    said = "stopping after this episode; once more to stop now\n"
    command.until(lambda: said in command.lines)
    command.press(second, group)
    code, err = command.end()
    assert code == 3
    assert f"stopped by {second.name} after" in err
    assert "go on with: robo-eval resume trial" in err
    assert "Traceback" not in err
    assert all(row.end_reason.is_scored for row in played(command.trial))
    assert verify_trial(command.trial).ok


@pytest.mark.parametrize(
    ("group", "jobs"),
    [
        pytest.param(True, 2, id="to the group"),
        pytest.param(False, 1, id="to the parent"),
        pytest.param(True, 1, id="to the group, one at work", marks=pytest.mark.slow),
        pytest.param(False, 2, id="to the parent, two at work", marks=pytest.mark.slow),
    ],
)
def test_the_first_ctrl_c_lets_episodes_end(tmp_path, begin, jobs, group):
    text = "name: x\ntasks: [{levels: [0]}]\npolicies: [balancer]\nepisodes: 500\ntraces: all\n"
    command = begin(text, jobs)
    command.until(lambda: (command.trial / "episodes.db").exists() and played(command.trial))
    command.press(signal.SIGINT, group)
    code, err = command.end()
    rows = played(command.trial)
    assert code == 3
    assert err.count("stopping after this episode; once more to stop now") == 1
    assert f"stopped by SIGINT after {len(rows)} of 500 episodes" in err
    # Every episode that was begun has its row.
    assert {path.stem for path in (command.trial / "traces").iterdir()} == {
        row.episode_id for row in rows
    }


# Traces that are gone --------------------------------------------------------------------------


def _restored(tmp_path, damage):
    text = "name: x\ntasks: [{levels: [0]}]\npolicies: [random]\nepisodes: 2\ntraces: all\n"
    trial = TrialDirectory.create(tmp_path / "t", parse_plan(text, source="plan"))
    run_simulated(trial, jobs=1)
    before = {path: path.read_bytes() for path in trial.traces_dir.iterdir()}
    rows = played(trial.path)
    damage(min(before))
    assert not verify_trial(trial.path).ok
    said = []
    assert run_simulated(trial, jobs=1, say=said.append).played == 0
    assert played(trial.path) == rows
    return trial, before, said


@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:500]),
        lambda path: path.write_bytes(path.read_bytes() + b"x"),
    ],
    ids=["missing", "empty", "cut off", "longer"],
)
def test_a_trace_that_is_gone_is_made_again_from_its_seed(tmp_path, damage):
    trial, before, said = _restored(tmp_path, damage)
    assert {path: path.read_bytes() for path in trial.traces_dir.iterdir()} == before
    assert verify_trial(trial.path).ok
    assert said == [
        "traces that were missing or damaged: 1, made again from the seeds, as they were"
    ]


def test_a_trace_that_would_differ_stays_missing_and_is_named(tmp_path, monkeypatch):
    import robo_eval_sim.play as play

    def damage(path):
        path.unlink()
        # As if a library had changed in between.
        score = play.write_trace
        monkeypatch.setattr(
            play, "write_trace", lambda *given, **more: score(*given, **{**more, "events": []})
        )

    trial, before, said = _restored(tmp_path, damage)
    assert len(list(trial.traces_dir.iterdir())) == len(before) - 1
    (line,) = said
    assert line.startswith(f"traces/{min(before).name}: is missing or damaged and stays so")


def test_an_episode_of_a_robot_is_never_played_again(tmp_path):
    from dataclasses import replace

    from robo_eval.core.kinds import Side

    text = "name: x\ntasks: [{levels: [0]}]\npolicies: [random]\nepisodes: 1\ntraces: all\n"
    own = TrialDirectory.create(tmp_path / "own", parse_plan(text, source="plan"))
    run_simulated(own, jobs=1)
    text += "sides: [sim, real]\n"
    trial = TrialDirectory.create(tmp_path / "t", parse_plan(text, source="plan"))
    (row,) = played(own.path)
    episode_id = row.episode_id.replace("sim", "real")
    gone = replace(
        row,
        episode_id=episode_id,
        plan_digest=trial.plan_digest,
        side=Side.REAL,
        pair_id="p",
        trace_uri=f"traces/{episode_id}",
    )
    with EpisodeStore(trial.path, durable=True) as store:
        store.append([gone])
    said = []
    run_simulated(trial, jobs=1, say=said.append)
    assert not (trial.path / gone.trace_uri).exists()
    (line,) = said
    assert line == (
        f"{gone.trace_uri}: is missing or damaged and stays so: only simulated episodes of the plan"
        " are played again"
    )
