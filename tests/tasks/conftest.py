"""A second task, installed in a temporary folder as another package would be."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

METADATA = "Metadata-Version: 2.1\nName: slide-puck\nVersion: 1.0\n"
POINTS = "[robo_eval.tasks]\nslide_puck = slide_puck.spec:SPEC\n"


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables of a process that finds the task."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(Path(__file__).with_name("slide_puck"), folder / "slide_puck")
    info = folder / "slide_puck-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(POINTS)
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}
