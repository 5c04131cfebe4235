"""`robo-eval aiq` from a suite file to numbers, as users run it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.e2e.conftest import SUITE


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "suite.yaml"
    path.write_text(SUITE)
    return path


@pytest.mark.slow
def test_run_show_agree(cli, quick_cli, suite, tmp_path):
    out = tmp_path / "study"
    run = cli("aiq", "run", suite, "--out", out, "--workers", 1)
    assert run.code == 0, run.err
    assert "two levels: complexity by the rule default (10 policies)" in run.out
    assert "warning: 10 policies" in run.out
    assert f"results: {out / 'study.json'}" in run.out
    assert f"page: {out / 'report.html'}" in run.out
    again = quick_cli("aiq", "run", suite, "--out", out, "--estimate", "--json")
    assert json.loads(again.out) == {"pieces": 0, "known": 9, "core_seconds": 0}
    shown = json.loads(quick_cli("aiq", "show", out, "--json").out)
    written = json.loads((out / "study.json").read_text())
    assert shown == written
    assert shown["policies"] == 10
    page = quick_cli("aiq", "report", out, "--out", tmp_path / "other.html", "--json")
    assert json.loads(page.out) == {"page": str(tmp_path / "other.html")}
    assert (tmp_path / "other.html").read_bytes() == (out / "report.html").read_bytes()
    agreed = quick_cli("aiq", "agree", out, out).out
    assert agreed.count("correlation") == 2
    assert "warning: both studies have seed" in agreed
    # With one pair there is nothing to rank, which is not a number.
    found = json.loads(quick_cli("aiq", "agree", out, out, "--json").out)
    assert found["dissimilarity"] == {"spearman": None, "pearson": None, "n": 1}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "none.yaml", "--out", "o"), "none.yaml: no such suite file"),
        (("run", "suite.yaml", "--out", "o", "--workers", "0"), "'--workers': 0"),
        (("run", "suite.yaml", "--out", "suite.yaml"), "suite.yaml"),
        (("run", "suite.yaml", "--out", "o", "--ray", "127.0.0.1:1"), "cannot be reached"),
        (("run", "suite.yaml", "--out", "o", "--ray", "here"), "an address is `auto` or host:port"),
        (("show", "o"), "o: no study; `robo-eval aiq run SUITE.yaml --out o` makes one"),
        (("agree", "o", "p"), "o: no study"),
        (("report", "o"), "o: no study"),
    ],
)
def test_bad_input(quick_cli, suite, tmp_path, arguments, said):
    done = quick_cli("aiq", *arguments)
    assert done.code == 2
    assert said in done.err
    assert done.err.startswith("robo-eval: ")
    assert done.err.count("\n") == 1
    assert not (tmp_path / "o" / "study.json").exists()


def group_of(leader: int) -> list[int]:
    """Live processes of a process group."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[2]) == leader and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def working(leader: int) -> int:
    """Workers of a run that have got on with their work."""
    times = []
    for one in psutil.Process(leader).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if any("spawn_main" in word for word in one.cmdline()):
                times.append(one.cpu_times().user)
    return sum(seconds > 2.0 for seconds in times)


def wait_for(condition: Callable[[], bool], seconds: float = 240.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.mark.slow
def test_workers_end_with_a_run_that_is_killed(tmp_path):
    path = tmp_path / "suite.yaml"
    path.write_text(SUITE.replace("steps: 20", "steps: 20000"))
    command = [sys.executable, "-m", "robo_eval", "aiq", "run", path, "--out", tmp_path / "out"]
    run = subprocess.Popen(
        [*map(str, command), "--workers", "2"],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: working(run.pid) >= 2)
        assert run.poll() is None
        run.kill()
        run.wait()
        wait_for(lambda: not group_of(run.pid))
    finally:
        if left := group_of(run.pid):
            os.killpg(run.pid, signal.SIGKILL)
        assert not left
