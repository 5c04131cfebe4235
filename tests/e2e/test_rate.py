"""A second rater at a terminal, and with answers given elsewhere."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from robo_eval.cli.app import app
from robo_eval.conduct.judging import second_sample
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.evidence import Rating
from robo_eval.log.evidence_read import read_evidence
from robo_eval.log.planned_row import row_for
from robo_eval.log.store import EpisodeStore

PLAN = """
name: judged
tasks: [{levels: [9], env: RoboEval/CartPole3D-v0}]
policies: [balancer, adaptive]
episodes: 4
sides: [twin]
judging: {second_share: 0.5, milestones: [upright for a second]}
"""


@pytest.fixture
def judged(tmp_path: Path) -> TrialDirectory:
    """A trial whose operator is Ada, with a recording of every episode."""
    trial = TrialDirectory.create(tmp_path / "judged", parse_plan(PLAN, source="plan"))
    rows = []
    for i, planned in enumerate(schedule(trial.plan, Side.TWIN)):
        bag = trial.traces_dir / planned.episode_id
        bag.mkdir()
        (bag / f"{planned.episode_id}_0.mcap").write_bytes(b"")
        rows.append(
            row_for(
                planned, trial.plan, trial.plan_digest, policy_digest="1" * 64,
                start_ns=1_772_000_000 * 10**9 + i * 10**10, duration_s=4.0, exposure_s=4.0,
                ticks=200, episode_return=1.0, quality=1.0, success=True,
                end_reason=EndReason.SUCCESS, operator="Ada", software="robo-eval 1",
                trace_uri=f"traces/{planned.episode_id}",
            )
        )  # fmt: skip
    with EpisodeStore(trial.path, durable=False) as store:
        store.append(rows)
        trial.write_manifest(status="complete", store=store)
    return trial


def ratings(trial: TrialDirectory) -> tuple[Rating, ...]:
    return read_evidence(trial.path).ratings or ()


def call(*args: object) -> Any:
    """The command in this process, without a terminal."""
    return CliRunner().invoke(app, [str(arg) for arg in args])


class Terminal:
    """`robo-eval` with a terminal of its own."""

    def __init__(self, environment: dict[str, str], folder: Path, *args: str) -> None:
        self._screen, inner = pty.openpty()
        self.text = ""
        self._seen = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "robo_eval", *args],
            stdin=inner, stdout=inner, stderr=inner, cwd=folder, env=environment,
            start_new_session=True, preexec_fn=_own_terminal,
        )  # fmt: skip
        os.close(inner)

    def wait_for(self, text: str, seconds: float = 240.0) -> None:
        """Until a text is shown after the one that was waited for before."""
        deadline = time.monotonic() + seconds
        while (at := self.text.find(text, self._seen)) < 0:
            left = deadline - time.monotonic()
            assert select.select([self._screen], [], [], max(left, 0.0))[0], (
                f"no {text!r} in {self.text!r}"
            )
            try:
                found = os.read(self._screen, 4096).decode()
            except OSError:
                found = ""
            assert found, f"ended without {text!r}: {self.text!r}"
            self.text += found
        self._seen = at + len(text)

    def type(self, keys: str) -> None:
        os.write(self._screen, keys.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C until it is heard.

        Python does not hear it between the moment a prompt is written and the moment the line is
        read: the handler has then run, and reading waits for a key.
        """
        for _ in range(12):
            self.type("\x03")
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                continue
            return

    def end(self) -> int:
        while True:
            try:
                found = os.read(self._screen, 4096).decode()
            except OSError:
                break
            if not found:
                break
            self.text += found
        code = self._process.wait(timeout=240)
        os.close(self._screen)
        return code

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def _own_terminal() -> None:
    import fcntl
    import signal
    import termios

    # A test run in the background of a shell ignores Ctrl-C, and so would what it starts.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def terminal(tmp_path: Path, environment: Callable[..., dict[str, str]]) -> Any:
    opened: list[Terminal] = []

    def start(*args: str) -> Terminal:
        opened.append(Terminal(environment(), tmp_path, *args))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_a_rater_stops_and_goes_on_and_never_sees_who_played(
    judged: TrialDirectory, terminal: Any
) -> None:
    first = terminal("rate", "judged", "--rater", "Eve")
    first.wait_for("1 of 4")
    first.wait_for("success? [y/n/?] ")
    first.type("maybe\n")
    first.wait_for("y for yes")
    first.type("y\n")
    first.wait_for("upright for a second? [y/n/?] ")
    first.type("?\n")
    first.wait_for("2 of 4")
    first.wait_for("success? [y/n/?] ")
    first.type("n\n")
    first.wait_for("upright for a second? [y/n/?] ")
    first.interrupt()  # in the middle of an episode
    assert first.end() == 3, first.text
    assert "stopped after 1 of 4 verdicts, which are kept" in first.text
    (kept,) = ratings(judged)
    assert (kept.rater, kept.success, kept.blind, kept.side) == ("Eve", True, True, "twin")
    assert kept.milestones == {"upright for a second": None}
    assert kept.time_ns is not None

    second = terminal("rate", "judged", "--rater", "eve")
    second.wait_for("1 of 3")
    for _ in range(3):
        second.wait_for("success? [y/n/?] ")
        second.type("n\n")
        second.wait_for("upright for a second? [y/n/?] ")
        second.type("y\n")
    assert second.end() == 0, second.text
    assert "3 verdicts of eve kept, 0 left to judge" in second.text
    shown = first.text + second.text
    assert not any(word in shown for word in ("balancer", "adaptive", "success:", "t0-l09"))
    assert "RoboEval/CartPole3D-v0, level 9, easy, seed 100" in shown
    assert "recording judged/judging/" in shown
    sample = second_sample(judged.plan, judged.plan_digest)
    assert {rating.episode_id for rating in ratings(judged)} == sample
    assert len(list((judged.path / "judging").iterdir())) == 4


def test_answers_given_elsewhere_are_taken_all_or_none(
    judged: TrialDirectory, tmp_path: Path
) -> None:
    listed = call("rate", judged.path, "--rater", "Eve", "--json")
    assert listed.exit_code == 0, listed.output
    left = json.loads(listed.stdout)["left"]
    assert len(left) == 4
    assert all(Path(path).exists() for case in left for path in case["recordings"])
    assert "balancer" not in listed.stdout
    answers = [{"code": case["code"], "success": i > 0} for i, case in enumerate(left)]
    answers[0]["milestones"] = {"upright for a second": False}
    answers[3]["success"] = None
    file = tmp_path / "answers.json"
    file.write_text(json.dumps([*answers, {"code": "nobody", "success": True}]))
    done = call("rate", judged.path, "--rater", "Eve", "--from", file)
    assert "answer 5: unknown episode 'nobody'" in str(done.exception)
    assert ratings(judged) == ()
    file.write_text(json.dumps(answers))
    done = call("rate", judged.path, "--rater", "Eve", "--from", file, "--json")
    assert (done.exit_code, json.loads(done.stdout)["left"]) == (0, [])
    assert [rating.success for rating in ratings(judged)] == [False, True, True, None]
    assert ratings(judged)[0].milestones == {"upright for a second": False}
    assert all(rating.blind for rating in ratings(judged))
    again = call("rate", judged.path, "--rater", "Eve", "--from", file)
    assert "4 were judged before" in again.stdout
    assert len(ratings(judged)) == 4
    printed = call("metrics", judged.path)
    assert "second rater Eve: kappa" in printed.stdout
    assert "second ratings" not in printed.stdout
    assert "deviations from the plan: none" in printed.stdout


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--rater", "Eve"], "standard input is not a terminal; give answers by --from FILE"),
        (["--rater", " "], "--rater is empty"),
        (["--rater", "ada"], "'ada' ran every episode there is to judge"),
        (["--rater", "Eve", "--from", "{}/gone.csv"], "gone.csv: no such file of answers"),
        (["--rater", "Eve", "--from", "{}/bad.csv"], "bad.csv: unknown column 'sucess'"),
        (["--rater", "Eve", "--from", "{}/own.csv"], "own.csv: line 2, success: 'ok' must be true"),
    ],
)
def test_what_cannot_be_kept_is_refused_in_one_line(
    judged: TrialDirectory, tmp_path: Path, args: list[str], text: str
) -> None:
    (tmp_path / "bad.csv").write_text("code,sucess\nA,yes\n")
    (tmp_path / "own.csv").write_text("code,success\nA,ok\n")
    done = call("rate", judged.path, *(arg.format(tmp_path) for arg in args))
    assert isinstance(done.exception, InputError)
    assert text in str(done.exception)
    assert "\n" not in str(done.exception)
    assert not (judged.path / "ratings.csv").exists()


def test_answers_as_csv_by_episode_are_not_blind(judged: TrialDirectory, tmp_path: Path) -> None:
    names = sorted(row.episode_id for row in schedule(judged.plan, Side.TWIN))
    lines = ["episode_id,success,blind", f"{names[0]},yes,", f"{names[1]},?,true"]
    (tmp_path / "answers.csv").write_text("\n".join(lines) + "\n")
    done = call("rate", judged.path, "--rater", "Eve", "--all", "--from", tmp_path / "answers.csv")
    assert done.exit_code == 0, done.exception
    assert "2 verdicts of Eve kept, 6 left to judge" in done.stdout
    assert [(it.success, it.blind) for it in ratings(judged)] == [(True, False), (None, True)]
    printed = call("metrics", judged.path, "--json")
    kinds = {it["kind"]: it for it in json.loads(printed.stdout)["deviations"]}
    sample = second_sample(judged.plan, judged.plan_digest)
    assert kinds["ratings"]["count"] == 4 - len(sample & set(names[:2]))
