"""The page on robots says what the code reads: every key, its unit, its default, every topic."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from robo_eval.core.yaml_form import Section
from robo_eval_robot import config

PAGE: Final = Path(__file__).parents[3] / "docs/robots.md"
MODELS: Final[dict[str, type[BaseModel]]] = {
    "the robot": config.RobotConfig,
    "`joints.<name>`": config.Slider,
    "`joints.<name>.limits`, prismatic": config.SliderLimits,
    "`joints.<name>.limits`, revolute or continuous": config.HingeLimits,
    "`controller`": config.Controller,
    "`state`": config.State,
    "`state.imu`": config.Imu,
    "`state.workspace`": config.Workspace,
    "`state.wrench`": config.Wrench,
    "`state.mode`": config.DriverMode,
    "`guard`": config.GuardConfig,
    "`guard.stop`": config.Stop,
    "`guard.estop`": config.EStop,
    "`preflight`": config.Preflight,
    "`tasks.<id>`": config.RobotTask,
    "`tasks.<id>.initial_state`": config.StartState,
    "`record`": config.Record,
    "`twin`": config.Twin,
    "`twin.perturbation`": config.Perturbation,
    "`twin.drive`": config.Drive,
}
NOT_IN_FILES: Final = {config.Limits, config.Hinge}
"""Read by code only; and of the same keys as a slider."""
UNITS: Final = {
    "_n_s_m": "N s/m",
    "_rad_s3": "rad/s³",
    "_m_s3": "m/s³",
    "_m_s2": "m/s²",
    "_m_s": "m/s",
    "_rad_s2": "rad/s²",
    "_rad_s": "rad/s",
    "_rad": "rad",
    "_nm": "N m",
    "_n": "N",
    "_m": "m",
    "_s": "s",
    "_hz": "Hz",
    "_ticks": "ticks",
    "_bytes": "bytes",
}
"""By the end of a key, longer ends first."""


def sections() -> dict[str, str]:
    """Text under each heading of the third level."""
    parts = re.split(r"^#{1,3} (.*)$", PAGE.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def table(text: str) -> list[list[str]]:
    """Cells of the rows of a text's tables, without heads."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [
        [cell.strip() for cell in row]
        for i, row in enumerate(rows)
        if not (set("".join(row)) <= set("- ") or (i + 1 < len(rows) and is_rule(rows[i + 1])))
    ]


def is_rule(row: list[str]) -> bool:
    return set("".join(row)) <= set("- ")


def default_of(field: Any) -> str:
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True)
    assert value is not PydanticUndefined
    if isinstance(value, BaseModel):
        return "section"
    if value is None or value == {}:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, int | float) else f"`{value}`"


def unit_of(key: str) -> str | None:
    return next((unit for end, unit in UNITS.items() if key.endswith(end)), None)


@pytest.mark.parametrize("heading", list(MODELS))
def test_a_section_lists_the_keys_of_its_model(heading: str) -> None:
    model = MODELS[heading]
    rows = table(sections()[heading])
    assert [row[0] for row in rows] == [f"`{name}`" for name in model.model_fields]
    assert [row[2] for row in rows] == [default_of(f) for f in model.model_fields.values()]
    for key, unit, _, means in rows:
        expected = unit_of(key.strip("`"))
        assert unit == (expected if expected is not None else unit), key
        assert means


def test_every_section_is_on_the_page() -> None:
    known = {
        kind
        for _, kind in inspect.getmembers(config, inspect.isclass)
        if issubclass(kind, Section) and kind is not Section
    }
    assert known == set(MODELS.values()) | NOT_IN_FILES
    assert list(config.Hinge.model_fields) == list(config.Slider.model_fields)


def test_every_topic_and_service_of_ours_is_on_the_page() -> None:
    # Read and not imported: the module needs ROS 2.
    text = Path(inspect.getfile(config)).with_name("topics.py").read_text()
    names = set(re.findall(r'^[A-Z_]+: Final = "([a-z_/]+)"', text, re.MULTILINE))
    shown = {name for row in table(sections()["Topics"]) for name in re.findall(r"`(.*?)`", row[0])}
    assert names
    assert names <= shown
