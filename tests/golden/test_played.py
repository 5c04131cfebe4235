"""Episodes and pictures are those that were recorded; `tests/packaging` asks other Pythons, too."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pybullet", reason="needs the extra: pip install 'robo-eval-stack[sim]'")

HERE = Path(__file__).parent
RECORDED: dict[str, Any] = json.loads((HERE / "played.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def program() -> Any:
    specification = importlib.util.spec_from_file_location("played", HERE / "played.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", RECORDED)
def test_an_episode_and_a_picture_are_as_recorded(name: str, program: Any) -> None:
    assert program.EXPERTS.keys() == RECORDED.keys()
    assert program.played(name) == RECORDED[name]


def test_a_picture_of_tuples_is_the_same(monkeypatch: pytest.MonkeyPatch, program: Any) -> None:
    """As a PyBullet gives it that was built without NumPy."""
    from robo_eval_sim import engine

    looked = engine.bullet.getCameraImage

    def plain(*given: Any, **named: Any) -> tuple[Any, ...]:
        width, height, *pictures = looked(*given, **named)
        return (width, height, *(tuple(getattr(one, "flat", one)) for one in pictures))

    monkeypatch.setattr(engine.bullet, "getCameraImage", plain)
    name = "RoboEval/CartPole3D-v0"
    assert program.played(name)["colours"] == RECORDED[name]["colours"]
