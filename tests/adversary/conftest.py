"""A small laboratory, and the rule that whatever it is given, a command ends calmly."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PLAN = "name: x\ntasks: [{levels: [0, 1]}]\npolicies: [nothing, random]\nepisodes: 1\ntraces: all\n"
LIMIT_S = 30
"""A command that has not ended by then hangs."""


@pytest.fixture(scope="session")
def made_lab(commands, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("lab")
    (folder / "plan.yaml").write_text(PLAN)
    (folder / "table.csv").write_text("p,s,n\na,1,3\nb,0,4\n")
    (folder / "map.yaml").write_text(
        "columns: {policy: p, success: s, ticks: n}\n"
        "constants: {task: t, family: f, side: real, robot: r}\n"
    )
    for line in (
        "run plan.yaml --out trial --no-report -j 1",
        "incidents init --log log.db --station a",
        "incidents add bumped -r arm -s minor --side real --by me --log log.db",
        "incidents export --out log.jsonl --log log.db",
        "incidents export --out log.json --log log.db",
        "incidents export --out log.csv --log log.db",
    ):
        done = commands(*line.split(), folder=folder)
        assert done.code == 0, done
    return folder


@pytest.fixture
def lab(made_lab, tmp_path) -> Path:
    """A plan, a table with its map, a trial, and an incident log with its exports."""
    return Path(shutil.copytree(made_lab, tmp_path / "lab"))


@pytest.fixture
def calm(commands) -> Callable[..., Any]:
    """Run a command that has to end by a known code, with one line and no traceback."""

    def run(*arguments: object, folder: Path, codes: tuple[int, ...] = (0, 1, 2)) -> Any:
        done = commands(*arguments, folder=folder, limit_s=LIMIT_S)
        shown = ([str(one)[:200] for one in arguments], done.code, done.err[-2000:])
        assert done.code in codes, shown
        assert "Traceback" not in done.err, shown
        # What nobody thought of has this at its end.
        assert "(ROBO_EVAL_TRACEBACK=1 shows where)" not in done.err, shown
        if done.code == 2 and not done.err.startswith("Usage:"):  # help for a verb without words
            lines = [line for line in done.err.splitlines() if line.startswith("robo-eval: ")]
            assert len(lines) == 1, shown
            assert len(lines[0]) < 2000, shown
        return done

    return run
