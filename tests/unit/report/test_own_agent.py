"""What the example prints: no number without its interval, or the reason why there is none."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "own_agent.py"


def test_each_number_has_an_interval_and_its_sample_size(tmp_path: Path) -> None:
    pytest.importorskip("pybullet", reason="the simulator is not installed: pip install .[sim]")
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], cwd=tmp_path, capture_output=True, text=True, timeout=800
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if " at level " in line]
    assert len(lines) == 6
    for line in lines:
        assert re.search(r"\] n=5$|n=5 \(no interval: .+\)$", line), line
