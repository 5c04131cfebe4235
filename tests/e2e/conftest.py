"""Runs the command line as users do: as a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from robo_eval.core.kinds import Profile
from robo_eval.log.importer import import_csv
from robo_eval.log.store import EpisodeStore

SMALL_PLAN = """
name: small
tasks:
  - env: RoboEval/CartPole3D-v0
    levels: [0, 1]
    difficulties: [easy]
policies: [random, balancer]
episodes: 3
traces: first
"""
SUITE = """
version: 1
name: two levels
tasks:
  - env: RoboEval/CartPole3D-v0
    name: level {level}
    each: {level: [0, 9]}
    experts: [balancer]
    observed: 12
expert_episodes: 1
entropy_episodes: 1
pool: {policies: 10, examples: 200, steps: 20, episodes: 1}
learner: {examples: 200, steps: 20, episodes: 1, trainings: 1, alone: 1}
"""
PAIRED_MAP = """
columns:
  episode_id: id
  pair_id: pair
  side: side
  policy: policy
  seed: seed
  success: {column: ok, values: {"True": true, "False": false}}
  start_ns: {column: start, unit: iso8601}
  exposure_s: {column: hours, unit: h}
  duration_s: {column: hours, unit: h}
  robot: robot
  family: family
constants: {task: handling}
"""


@dataclass(frozen=True)
class Finished:
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def calls_in(commands: Any) -> Callable[[Path], Any]:
    """Makes what calls the command line in a folder, and asks for an exit code."""

    def make(folder: Path) -> Any:
        def call(*arguments: str, code: int = 0) -> Any:
            done = commands(*arguments, folder=folder, limit_s=300)
            assert done.code == code, done.err
            return done

        call.folder = folder  # type: ignore[attr-defined]
        return call

    return make


@pytest.fixture
def paired_lab(tmp_path: Path) -> Callable[..., Path]:
    """Makes a lab's trial: pairs of a robot, an hour each, and its simulation, of two families.

    Its table and its map, `lab.csv` and `map.yaml`, lie beside the trial.
    """

    def make(
        count: int,
        *,
        fails: Callable[[str, int], bool] = lambda _side, _number: False,
        map_text: str = PAIRED_MAP,
    ) -> Path:
        lines = ["id,pair,side,policy,seed,ok,start,hours,robot,family,jerk"]
        for i in range(count):
            start = f"2026-03-{1 + i // 24:02d}T{i % 24:02d}:00:00+00:00"
            for side, own in (("real", "1,arm-1"), ("sim", "0,")):
                cells = (f"{side}-{i}", f"p{i}", side, "ours", i, not fails(side, i), start, own)
                jerk = 4 + i / 10 if side == "real" else ""
                lines.append(",".join(map(str, (*cells, ("pick", "place")[i % 2], jerk))))
        (tmp_path / "lab.csv").write_text("\n".join(lines) + "\n")
        (tmp_path / "map.yaml").write_text(map_text)
        import_csv(tmp_path / "lab.csv", tmp_path / "map.yaml", tmp_path / "lab")
        return tmp_path / "lab"

    return make


@pytest.fixture
def environment(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """The environment commands run in: plain output, modules found in the test's folder."""

    def build(**extra: str) -> dict[str, str]:
        modules = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
        plain = {"NO_COLOR": "1", "TERM": "dumb", "PYTHONPATH": modules}
        return {**os.environ, **plain, **extra}

    return build


@pytest.fixture
def killed_run(
    tmp_path: Path, environment: Callable[..., dict[str, str]]
) -> Callable[[Path, Path], None]:
    """Play a plan on one worker, and kill the run as soon as its log holds an episode."""

    def kill(plan: Path, trial: Path) -> None:
        run = subprocess.Popen(
            [sys.executable, "-m", "robo_eval", "run", plan, "-o", trial, "-j", "1", "--json",
             "--no-report"],
            cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 300
        while not (trial / "plan.yaml").exists() or not _holds_an_episode(trial):
            assert run.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
        run.wait()

    return kill


def _holds_an_episode(trial: Path) -> bool:
    with EpisodeStore(trial, durable=False) as store:
        return bool(list(store.episodes()))


@pytest.fixture
def cli(tmp_path: Path, environment: Callable[..., dict[str, str]]) -> Callable[..., Finished]:
    """Run `robo-eval` in a temporary folder that is also on the import path."""

    def call(*args: object, **extra: str) -> Finished:
        done = subprocess.run(
            [sys.executable, "-m", "robo_eval", *map(str, args)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(**extra),
            timeout=800,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that everybody may enter, for what the commands print and the like."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.fixture
def quick_cli(
    commands: Any,
    outside: Path,
    tmp_path: Path,
    environment: Callable[..., dict[str, str]],
) -> Callable[..., Finished]:
    """Run `robo-eval` as `cli` does, in a process that has imported what it needs before.

    That takes a fraction of the time. Whether a verb finds its imports by itself is for tests with
    `cli`: each verb needs one of them as well.
    """

    def call(*args: object, stdin: str = "", folder: Path = tmp_path, **job: Any) -> Finished:
        (outside / "stdin").write_text(stdin)
        streams = {name: str(outside / name) for name in ("stdin", "stdout", "stderr")}
        job = {
            "arguments": [str(argument) for argument in args],
            "folder": str(folder),
            "environment": environment() | job.pop("environment", {}),
            **streams,
            **job,
        }
        for name in ("stdout", "stderr"):
            (outside / name).touch()
            (outside / name).chmod(0o666)
        code = commands.play(job)
        return Finished(code, *((outside / name).read_text() for name in ("stdout", "stderr")))

    return call


@pytest.fixture
def small_plan(tmp_path: Path) -> Path:
    """A plan of twelve quick episodes."""
    path = tmp_path / "small.yaml"
    path.write_text(SMALL_PLAN)
    return path


@pytest.fixture
def lighter_cart() -> Callable[[], contextlib.AbstractContextManager[None]]:
    """Within what it returns, level 1 of CartPole3D is one with a lighter cart."""

    @contextlib.contextmanager
    def changed() -> Iterator[None]:
        from robo_eval_sim import environment
        from robo_eval_sim.novelty import Fixed, load_level, same

        table = same({"cart_mass": Fixed(4.0, "kg")})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(load_level(1)), "tables", dict.fromkeys(Profile, table))
            environment._behaviour.cache_clear()
            yield
        environment._behaviour.cache_clear()

    return changed
