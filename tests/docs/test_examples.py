"""Every program in examples/ runs as a reader would start it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
# Training takes minutes and an extra of its own: tests/train runs those, for fewer steps.
OWN_AGENT = REPOSITORY / "examples/own_agent.py"
PROGRAMS = sorted(
    set((REPOSITORY / "examples").glob("*.py"))
    - set((REPOSITORY / "examples").glob("train_*.py"))
    - {OWN_AGENT}
)


def printed(program: Path, folder: Path) -> str:
    """What a program says that is run in a folder."""
    (folder / "examples").symlink_to(REPOSITORY / "examples")
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", f"examples/{program.name}"],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key != "ROBO_EVAL_LEVELS"},
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    assert printed(program, tmp_path).strip(), "an example shows what it did"


def test_each_number_of_an_own_agent_has_an_interval_and_its_sample_size(tmp_path: Path) -> None:
    """No number without its interval, or the reason why there is none."""
    said = printed(OWN_AGENT, tmp_path)
    lines = [line for line in said.splitlines() if " at level " in line]
    assert len(lines) == 6
    for line in lines:
        assert re.search(r"\] n=5$|n=5 \(no interval: .+\)$", line), line
