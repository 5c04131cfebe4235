"""The trained network that is shipped: what is said of it is true, and it plays without torch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from robo_eval.core.canonical import file_digest
from robo_eval.study.domain import Task
from robo_eval.study.played import network, read_network

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "dqn"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.npz")), ids=lambda path: path.stem)
def test_it_is_what_its_provenance_says(path):
    said = json.loads(path.with_suffix(".json").read_text())
    assert said["file"] == path.name
    assert said["sha256"] == file_digest(path)
    trained = read_network(path)
    assert list(trained.architecture.hidden) == said["hidden"]
    assert trained.architecture.size == said["parameters"]
    task = Task(
        name=path.stem,
        expert=network(path, observed=said["observed"]),
        observed=said["observed"],
        **said["task"],
    )
    reached, judged = said["performance"], task.performances
    some = judged(trained, 20, seed=reached["seed"])
    # 20 of the same episodes: their mean lies within four of its standard errors.
    assert some.mean() == pytest.approx(
        reached["mean"], abs=4 * max(some.std(), 0.05) / np.sqrt(20)
    )


def test_one_is_shipped():
    assert (FOLDER / "level_0.npz").is_file()
    assert (FOLDER / "level_0.npz").stat().st_size < 1_000_000
