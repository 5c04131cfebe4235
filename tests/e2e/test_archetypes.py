"""The four synthetic robots of the example are where the scale puts them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from robo_eval.cli.app import app
from robo_eval.log.verify import verify_trial


@pytest.mark.parametrize("level", range(4))
def test_each_archetype_is_at_its_level(archetypes: Any, tmp_path: Path, level: int) -> None:
    archetype = archetypes.ARCHETYPES[level]
    archetypes.make(archetype, tmp_path / "trial")
    assert verify_trial(tmp_path / "trial").ok
    done = CliRunner().invoke(app, ["assess", str(tmp_path / "trial"), "--json"])
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["assessments"]
    assert (found["level_conservative"], found["evidence_tag"]) == (level, "synthetic")
    assert "synthetic" in found["policy"]
    assert found["next_level"] == level + 1
    assert found["missing"][str(level + 1)]
    # Every file that is written says that it is made up.
    for path in (tmp_path / "trial").glob("*.csv"):
        lines = path.read_text().splitlines()[1:]
        assert all("SYNTHETIC" in line for line in lines), path


@pytest.mark.slow
def test_the_orchestrator_without_one_piece_of_evidence_is_lower(
    archetypes: Any, tmp_path: Path
) -> None:
    archetypes.make(archetypes.ARCHETYPES[3], tmp_path / "trial")
    for name, level in (("teams", 2), ("expansion", 2), ("checkpoints", 1), ("incidents", 0)):
        path = tmp_path / "trial" / f"{name}.csv"
        text = path.read_text()
        path.unlink()
        done = CliRunner().invoke(app, ["assess", str(tmp_path / "trial"), "--json"])
        assert json.loads(done.stdout)["assessments"][0]["level_conservative"] == level, name
        path.write_text(text)
