"""Some cells of the matrix of faults, played."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "benchmarks/fault_matrix.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "target", "half"),
    [
        ("kill", "guard", "arm"), ("kill", "conductor", "arm"), ("garbage", "policy", "arm"),
        ("stop", "policy", "arm"), ("disk", "recorder", "trial"),
    ],
)  # fmt: skip
def test_a_cell(
    fault: str, target: str, half: str, ros_environment: dict[str, str], tmp_path: Path
) -> None:
    chosen = ("--faults", fault, "--targets", target, "--halves", half, "--json")
    done = subprocess.run(
        [sys.executable, FILE, *chosen],
        env=ros_environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    (cell,) = json.loads(done.stdout)
    said = " ".join(cell["problems"])
    assert not any(word in said for word in ("not tried", "orphan", "lost", "moves on", "damaged"))
    if half == "arm":
        # How soon is measured on a machine with nothing else to do.
        assert cell["stands_after"] is not None
    else:
        assert cell["resume"]
