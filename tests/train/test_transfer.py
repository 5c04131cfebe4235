"""The example that trains in three simulators and plays on a stand-in."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import yaml

from robo_eval.core.plan import Way, read_plan
from robo_eval.log.directory import TrialDirectory

pytest.importorskip("stable_baselines3", reason='needs pip install "robo-eval-stack[train]"')
EXAMPLES = Path(__file__).parents[2] / "examples"
STAND_IN = EXAMPLES / "plans/gantry.yaml"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(EXAMPLES)
    import train_calibrated

    return train_calibrated


def test_what_was_trained_plays_on_the_stand_in(
    tmp_path: Path, write_snapshot: Callable[..., Path]
) -> None:
    snapshot = write_snapshot(tmp_path / "made.yaml", keywords={"balls": 0})
    sizes = ["--steps", "256", "--trainings", "1", "--episodes", "1", "--jobs", "1"]
    done = subprocess.run(
        [sys.executable, EXAMPLES / "train_calibrated.py", snapshot, STAND_IN, *sizes],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    cost, *told = done.stdout.splitlines()
    assert cost.startswith("3 trainings of 256 ticks, 3 episodes: about 0.0 minutes on 1 cores")
    assert sum("(fewer than 3 clusters say nothing" in line for line in told) == 6
    trial = TrialDirectory.open(tmp_path / "runs/learners/trial")
    rows = trial.frame()
    assert set(rows["policy"]) == {"nominal-0", "calibrated-0", "randomised-0"}
    assert rows["policy_digest"].nunique() == 3, "each was trained by itself"
    assert trial.plan.tasks == read_plan(STAND_IN).tasks


def test_a_training_counts_once_and_the_better_simulator_is_named(
    example: Any, tmp_path: Path, commands: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    agents = {
        f"{simulator}-{index}": f"robo_eval.agents.cartpole3d.{agent}"
        for simulator, agent in (
            ("calibrated", "balancer:Balancer"),
            ("nominal", "nothing:Nothing"),
            ("randomised", "balancer:Balancer"),
        )
        for index in range(4)
    }
    plan = {
        "name": "a stand-in",
        "tasks": [{"levels": [0], "kwargs": {"balls": 0}}],
        "policies": [{"name": name, "factory": agent} for name, agent in agents.items()],
        "episodes": 3,
        "traces": "none",
    }
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    done = commands(
        "run", "plan.yaml", "--out", "trial", "--no-report", "--jobs", "1", folder=tmp_path
    )
    assert done.code == 0, done.err
    example.tell(TrialDirectory.open(tmp_path / "trial"))
    told = capsys.readouterr().out
    assert re.search(r"^ calibrated: 1\.000 \[0\.\d+, 1\.000\] n=4$", told, re.MULTILINE)
    assert re.search(r"^ nominal: 0\.000 \[0\.000, 0\.\d+\] n=4$", told, re.MULTILINE)
    assert re.search(
        r"calibrated - nominal: 1\.000 .+ n=4, calibrated transfers better$", told, re.MULTILINE
    )
    assert re.search(
        r"calibrated - randomised: 0\.000 .+ n=4, no difference shown$", told, re.MULTILINE
    )


def test_a_simulator_has_the_constants_of_its_episode(example: Any) -> None:
    ranges = {name: (low, high) for name, low, high in example.RANGES}

    def starts(way: Way) -> tuple[list[dict[str, float]], list[Any]]:
        """Constants and first observations of a seed and the two episodes after it."""
        played: list[dict[str, float]] = []

        def make(constants: Any = None) -> Any:
            played.append(constants)
            return gymnasium.make("RoboEval/CartPole3D-v0", balls=0, constants=constants)

        env = example.Simulator(make, way)
        return played, [env.reset(seed=seed)[0] for seed in (5, None, None)]

    (_, *nominal), seen = starts(Way())
    assert nominal == [{}] * 3
    assert len({start.tobytes() for start in seen}) == 3
    # A mass acts on the hidden tick alone: the starts are those of the same seeds.
    (_, *calibrated), other = starts(Way(constants=(("cart_mass_kg", 1.3),)))
    assert calibrated == [{"cart_mass_kg": 1.3}] * 3
    np.testing.assert_allclose(seen, other, atol=0.01)
    (_, *drawn), _ = starts(Way(ranges=example.RANGES))
    for name, (low, high) in ranges.items():
        values = {constants[name] for constants in drawn}
        assert len(values) == 3
        assert all(low <= value <= high for value in values)


def test_what_is_hidden_lies_within_the_ranges_that_are_randomised(example: Any) -> None:
    hidden = read_plan(STAND_IN).tasks[0].kwargs["constants"]
    assert {name for name, *_ in example.RANGES} == set(hidden)
    assert all(low < hidden[name] < high for name, low, high in example.RANGES)


def test_a_snapshot_of_another_task_is_refused_before_anything_is_trained(
    example: Any,
    tmp_path: Path,
    write_snapshot: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = {"task": "RoboEval/PickPlace-v0", "constants": {}, "noise": {}}
    snapshot, out = write_snapshot(tmp_path / "arm.yaml", **other), tmp_path / "learners"
    given = ["train_calibrated.py", str(snapshot), str(STAND_IN), "--out", str(out)]
    for more, words in (
        ((), ("arm.yaml", "gantry.yaml", "it is of task RoboEval/PickPlace-v0")),
        (("--trainings", "0"), ("--trainings", "1 or more")),
    ):
        monkeypatch.setattr(sys, "argv", [*given, *more])
        with pytest.raises(SystemExit) as ended:
            example.main()
        assert ended.value.code == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert all(word in said for word in words)
    assert not out.exists()
