"""What each level asks for: a profile, one TOML file."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, ValidationError, model_validator

from robo_eval.core.canonical import digest
from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.core.yaml_form import Section
from robo_eval.gates.readings import QUANTITIES

FOLDER: Final = Path(__file__).parent / "profiles"
LEVELS: Final = (1, 2, 3, 4)
"""Levels that have gates; 0 is what is left when none passes."""

Test = Literal["at_least", "at_most", "zero", "families", "closure"]
AUDITS: Final = (
    "log", "scored", "evidence", "one_policy", "sim_logs", "real_logs", "incident_reports",
    "calibration_snapshots", "run_manifest", "limits_in_force", "no_help",
)  # fmt: skip
Level = Annotated[int, Field(ge=1, le=4)]
Share = Annotated[float, Field(gt=0.0, le=1.0)]


class Gate(Section):
    """One row of a profile: a quantity, and what each level asks of it.

    Attributes:
        title: What people call it.
        reads: Which quantity, one of `QUANTITIES`.
        test: How it is compared.
        thresholds: By level. For `families` a number of them, `half` or `all`.
        of: For `families`, the gate whose threshold each family has to reach.
        days: For families over time, for how many days in a row, by level.
    """

    title: str
    reads: str
    test: Test
    thresholds: dict[Level, float | Literal["half", "all"]]
    of: str | None = None
    days: dict[Level, int] = Field(default_factory=dict)


class Kappa(Section):
    """When a family counts as improving itself.

    Attributes:
        least: Capability per unit of resource, on each day.
        window_days: How far each day looks back.
        resamples: Of the block bootstrap.
    """

    least: float = Field(gt=0.0)
    window_days: float = Field(gt=0.0)
    resamples: int = Field(ge=100)


class Maintenance(Section):
    """What has to be kept, and through which drifts.

    Attributes:
        share: Of the capability on the first day.
        drifts: Types of drift that each have to happen.
    """

    share: Share
    drifts: tuple[str, ...]


class Profile(Section):
    """Which level asks for what.

    Attributes:
        name: Name.
        title: Title of the table.
        source: Where it comes from.
        version: Version of the numbers.
        highest_without_robot: Highest level that evidence without a physical robot supports.
        kappa: When a family counts as improving itself.
        maintenance: What the maintenance closure asks for.
        gates: By id, in the order they are printed.
        audits: From which level on each audit has to pass.
    """

    name: str
    title: str
    source: str
    version: int
    highest_without_robot: int = Field(ge=0, le=4)
    kappa: Kappa
    maintenance: Maintenance
    gates: dict[str, Gate]
    audits: dict[str, Level]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for name, gate in self.gates.items():
            _check_gate(name, gate, self.gates)
        for name in self.audits:
            if name not in AUDITS:
                raise ValueError(f"audits: {unknown_name('audit', name, AUDITS)}")
        return self

    @property
    def digest(self) -> str:
        """SHA-256 of all that is in it."""
        return digest(self.model_dump(mode="json"))

    def at(self, level: int) -> dict[str, Gate]:
        """The gates of a level."""
        return {name: gate for name, gate in self.gates.items() if level in gate.thresholds}


def _check_gate(name: str, gate: Gate, gates: Mapping[str, Gate]) -> None:
    where = f"gates.{name}"
    if gate.reads not in QUANTITIES:
        raise ValueError(f"{where}.reads: {unknown_name('quantity', gate.reads, QUANTITIES)}")
    if not gate.thresholds:
        raise ValueError(f"{where}.thresholds: is empty; it needs a threshold for a level")
    is_families = gate.test == "families"
    if is_families != (gate.of is not None):
        raise ValueError(f"{where}.of: goes with test = 'families', and only with it")
    if gate.of is not None and gate.of not in gates:
        raise ValueError(f"{where}.of: {unknown_name('gate', gate.of, gates)}")
    levels = sorted(gate.thresholds)
    for level in levels:
        if isinstance(gate.thresholds[level], str) and not is_families:
            raise ValueError(f"{where}.thresholds.{level}: must be a number")
    if is_families and gate.of != name:
        missing = [level for level in levels if level not in gates[str(gate.of)].thresholds]
        if missing:
            raise ValueError(
                f"{where}.of: gate {gate.of!r} has no threshold for level {missing[0]}"
            )
    _check_order(where, gate)


def _check_order(where: str, gate: Gate) -> None:
    """Refuse a level that asks for less than the one below it."""
    for lower, higher in itertools.pairwise(sorted(gate.thresholds)):
        first, second = _rank(gate.thresholds[lower]), _rank(gate.thresholds[higher])
        is_reversed = first < second if gate.test == "at_most" else first > second
        if is_reversed:
            raise ValueError(
                f"{where}.thresholds: level {higher} asks for less ({gate.thresholds[higher]}) than"
                f" level {lower} ({gate.thresholds[lower]})"
            )


def _rank(threshold: float | str) -> float:
    """Where a threshold stands among those of one gate: words stand above numbers."""
    return {"half": 1e9, "all": 2e9}[threshold] if isinstance(threshold, str) else float(threshold)


def profiles() -> list[str]:
    """Names of the profiles that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_profile(name: str | Path) -> Profile:
    """A profile by name, or from a file.

    Args:
        name: One of `profiles()`, or the path of a TOML file.

    Raises:
        InputError: If there is none, or it is not a profile; the message names file and field.
    """
    path = Path(name)
    if path.suffix != ".toml":
        if str(name) not in profiles():
            raise unknown_name("profile", str(name), profiles())
        path = FOLDER / f"{name}.toml"
    try:
        found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as err:
        raise InputError(f"{path}: no such profile file") from err
    except (OSError, UnicodeDecodeError) as err:
        raise InputError(f"{path}: cannot be read as UTF-8 text: {err}") from err
    except tomllib.TOMLDecodeError as err:
        raise InputError(f"{path}: is no TOML: {err}") from err
    try:
        return Profile.model_validate(found)
    except ValidationError as err:
        raise InputError(f"{path}: {_first_problem(err)}") from err


def _first_problem(err: ValidationError) -> str:
    first = err.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    text = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        text = "unknown key"
    return f"{where}: {text}" if where else text
