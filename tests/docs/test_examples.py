"""Every program in examples/ runs as a reader would start it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
# Training takes minutes and an extra of its own: tests/train runs that one, for fewer steps.
PROGRAMS = sorted(
    set((REPOSITORY / "examples").glob("*.py")) - {REPOSITORY / "examples/train_dqn.py"}
)


@pytest.mark.parametrize(
    "program",
    [
        # What it makes has tests of its own, which make it: tests/e2e/test_archetypes.py.
        pytest.param(
            path, id=path.name, marks=[pytest.mark.slow] if path.name == "archetypes.py" else []
        )
        for path in PROGRAMS
    ],
)
def test_example_runs(program: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", f"examples/{program.name}"],
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if key != "ROBO_EVAL_LEVELS"},
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "an example shows what it did"
