"""What each level asks for: a profile, one TOML file."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    model_validator,
)
from pydantic_core import PydanticCustomError

from robo_eval.core.canonical import digest
from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.core.yaml_form import Count, Section, read_toml
from robo_eval.gates.axes.settings import (
    AxisSettings,
    FrontierSettings,
    IndexSettings,
    Number,
    ProgressSettings,
)
from robo_eval.gates.quantity import REGISTERED, about
from robo_eval.metrics import registry

FOLDER: Final = Path(__file__).parent / "profiles"
LEVELS: Final = (1, 2, 3, 4, 5)
"""Levels that may have gates; 0 is what is left when none passes."""

Test = Literal["at_least", "at_most", "above", "zero", "families", "closure"]
Group = Literal["", "general", "cognitive", "extended"]
_EACH: Final = ("at_least", "at_most", "above")
"""Tests that compare one estimate with one threshold."""
AUDITS: Final = (
    "log", "scored", "evidence", "window", "settings", "own_log", "autonomy_measured",
    "one_policy", "sim_logs", "real_logs", "incident_reports", "calibration_snapshots",
    "run_manifest", "limits_in_force", "no_help",
)  # fmt: skip
BUILT_IN: Final = {
    "general": "c5fec1e37111f4028ef797a1a677294372e26b0ace81f084aaec17e0c8183245",
    "robotics": "5d87f1ed84708bed6de8b4caadc0a7b68373aa6ae6dfd8af5acbe417e9bf0789",
}
"""Digests of the profiles a level of the AAI scale is issued by. Whoever edits one gets another
digest, whatever its name."""
_NEEDED: Final = ("log", "evidence")
"""Audits no profile can do without: what does not verify, or does not fit, shows nothing."""
_WORDS: Final = ("half", "all")


def _level_key(key: object) -> int:
    """A level as TOML has it, which knows no other keys than texts."""
    for level in LEVELS:
        if key in (level, str(level)) and not isinstance(key, bool):
            return level
    raise PydanticCustomError("level", "must be a level, from 1 to 5")


def _threshold(value: Any) -> object:
    """Refuse what pydantic would read as a number although it is none, such as `true`."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # Compared, as `math.isfinite` raises for a whole number that no float can hold.
    if value in _WORDS or (is_number and abs(value) <= sys.float_info.max):
        return value
    raise PydanticCustomError("threshold", "must be a number, or for families 'half' or 'all'")


def _text_of(value: str) -> str:
    if not value.strip():
        raise PydanticCustomError("empty", "must not be empty")
    return value


Level = Annotated[Count, Field(ge=1, le=LEVELS[-1])]
LevelKey = Annotated[int, BeforeValidator(_level_key)]
Threshold = Annotated[float | Literal["half", "all"], BeforeValidator(_threshold)]
Days = Annotated[Count, Field(ge=1)]
Share = Annotated[Number, Field(gt=0.0, le=1.0)]
Text = Annotated[str, AfterValidator(_text_of)]


class Gate(Section):
    """One row of a profile: a quantity, and what each level asks of it.

    Attributes:
        title: What people call it.
        reads: Which quantity, one of `QUANTITIES`, or the name of any metric's number.
        test: How it is compared.
        thresholds: By level. For `families` a number of them, `half` or `all`.
        of: For `families`, the gate whose threshold each family has to reach; the gate itself for
            families that improve themselves over days.
        each: For `families`, what each family has to reach, by level, where no other gate says it.
        each_test: How a family is compared with that.
        days: For families over time, for how many days in a row, by level.
        group: The gate belongs to a group that a profile may ask for or only report.
        when: Whether it is asked of policies with a body only, without one only, or always.
    """

    title: Text
    reads: str
    test: Test
    thresholds: dict[LevelKey, Threshold]
    of: str | None = None
    each: dict[LevelKey, Number] = Field(default_factory=dict)
    each_test: Literal["at_least", "at_most", "above"] = "at_least"
    group: Group = ""
    when: Literal["always", "body", "no_body"] = "always"
    days: dict[LevelKey, Days] = Field(default_factory=dict)


class KappaRule(Section):
    """When a family counts as improving itself.

    Attributes:
        least: Capability gained a day.
        window_days: How far each day looks back.
        resamples: Of the block bootstrap.
    """

    least: Number = Field(gt=0.0)
    window_days: Number = Field(gt=0.0)
    resamples: Count = Field(ge=100, le=20_000)


class Maintenance(Section):
    """What has to be kept, and through which drifts.

    Attributes:
        share: Of the capability on the first day.
        drifts: Types of drift that each have to happen; without any, nothing was kept up.
    """

    share: Share
    drifts: tuple[Text, ...] = Field(min_length=1)


class Growth(Section):
    """What the expansion closure asks for.

    Attributes:
        share_left: Of the gain, that may be left once a new tool is taken out again.
    """

    share_left: Share


class Battery(Section):
    """When tasks are fit for a level; it is issued of no others.

    Attributes:
        scoring: Rules that count as proper.
        episodes: Scored episodes of each task family.
        instances: Different instances of tasks in each family.
    """

    scoring: tuple[Text, ...] = Field(min_length=1)
    episodes: Annotated[Count, Field(ge=1)]
    instances: Annotated[Count, Field(ge=1)]


class Window(Section):
    """Which dates belong to the window of the episodes.

    Attributes:
        grace_days: How far outside it a measurement may lie.
        declared_days: How far outside it a declaration may lie.
    """

    grace_days: Annotated[Number, Field(ge=0.0)]
    declared_days: Annotated[Number, Field(ge=0.0)]


class Innovation(Section):
    """How much that is new counts as full innovation.

    Attributes:
        tools: New tools a month that count 1.
        revisions: Revisions a month that count 1.
    """

    tools: Annotated[Number, Field(gt=0.0)]
    revisions: Annotated[Number, Field(gt=0.0)]


class Profile(Section):
    """Which level asks for what.

    Attributes:
        name: Name.
        title: Title of the table.
        source: Where it comes from.
        version: Version of the numbers.
        highest_without_robot: Highest level that simulation supports. Evidence of a twin supports
            no more than 1.
        ask: Groups of gates that count; gates of other groups are reported.
        battery: When the tasks are fit for a level.
        window: Which dates belong to the episodes.
        axes: How each axis is computed.
        index: How the axes become one number.
        progress: How progress over checkpoints is described.
        frontier: How the delegability frontier is computed.
        innovation: How much that is new counts as full innovation.
        kappa: When a family counts as improving itself.
        maintenance: What the maintenance closure asks for.
        expansion: What the expansion closure asks for.
        gates: By id, in the order they are printed.
        audits: From which level on each audit has to pass.
    """

    name: Text
    title: Text
    source: str
    version: Count
    highest_without_robot: Count = Field(ge=0, le=LEVELS[-1])
    ask: tuple[Literal["general", "cognitive", "extended"], ...] = ()
    battery: Battery
    window: Window
    axes: AxisSettings = Field(default_factory=AxisSettings)
    index: IndexSettings
    progress: ProgressSettings = Field(default_factory=ProgressSettings)
    frontier: FrontierSettings = Field(default_factory=FrontierSettings)
    innovation: Innovation
    kappa: KappaRule
    maintenance: Maintenance
    expansion: Growth
    gates: dict[str, Gate] = Field(min_length=1)
    audits: dict[str, Level]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for name, gate in self.gates.items():
            _check_gate(name, gate, self.gates)
        for name in self.audits:
            if name not in AUDITS:
                raise ValueError(f"audits: {unknown_name('audit', name, AUDITS)}")
        if not any(self.counts(gate) for gate in self.gates.values()):
            raise ValueError("gates: none of them decides; name their group in `ask`")
        for name in _NEEDED:
            if self.audits.get(name) != 1:
                raise ValueError(f"audits.{name}: must be 1; without it nothing can be shown")
        self._check_cap()
        return self

    def _check_cap(self) -> None:
        """Refuse levels from simulation where gates of them read what only a body has."""
        for name, gate in self.gates.items():
            is_asked = gate.when == "always" and about(gate.reads).is_of_body
            if is_asked and self.highest_without_robot > 1:
                raise ValueError(
                    f"highest_without_robot: must be 0 or 1, because gate {name!r} reads what only"
                    " a robot has"
                )

    @property
    def digest(self) -> str:
        """SHA-256 of all that is in it."""
        return digest(self.model_dump(mode="json"))

    @property
    def is_built_in(self) -> bool:
        """Whether it is one of those that come with the package, word for word."""
        return self.digest in BUILT_IN.values()

    def at(self, level: int) -> dict[str, Gate]:
        """The gates of a level, those that only report among them."""
        return {name: gate for name, gate in self.gates.items() if level in gate.thresholds}

    def counts(self, gate: Gate) -> bool:
        """Whether a gate decides; those of groups that are not asked for only report."""
        return not gate.group or gate.group in self.ask


def _check_gate(name: str, gate: Gate, gates: Mapping[str, Gate]) -> None:
    where = f"gates.{name}"
    told = registry.names(for_gates=True)
    if gate.reads not in REGISTERED and gate.reads not in told:
        known = [*REGISTERED, *told]
        raise ValueError(f"{where}.reads: {unknown_name('quantity', gate.reads, known)}")
    if gate.reads in REGISTERED and gate.reads in told:
        owner = registry.owner_of(gate.reads).place
        raise ValueError(
            f"{where}.reads: {gate.reads!r} is one of the quantities of gates, and {owner} has the"
            " same name; rename the metric"
        )
    if not gate.thresholds:
        raise ValueError(f"{where}.thresholds: is empty; it needs a threshold for a level")
    if gate.test == "families" and (gate.of is None) == (not gate.each):
        raise ValueError(f"{where}.of: a gate of families needs either `of` or `each`")
    if gate.test != "families" and (gate.of is not None or gate.each):
        field = "each" if gate.of is None else "of"
        raise ValueError(f"{where}.{field}: goes with test = 'families', and only with it")
    if gate.each and set(gate.each) != set(gate.thresholds):
        raise ValueError(f"{where}.each: must be given for the levels of thresholds, and no other")
    for level, threshold in sorted(gate.thresholds.items()):
        problem = _threshold_problem(gate.reads, gate.test, threshold)
        if problem:
            raise ValueError(f"{where}.thresholds.{level}: {problem}, given {threshold!r}")
    if gate.of is not None:
        _check_families(where, name, gate, gates)
    _check_order(f"{where}.thresholds", gate.thresholds, is_falling=gate.test == "at_most")
    _check_days(where, name, gate)


def _threshold_problem(reads: str, test: Test, threshold: float | str) -> str:
    """What is wrong with a threshold for a test; empty if nothing."""
    if test == "families":
        is_count = isinstance(threshold, str) or (threshold >= 1 and threshold % 1 == 0)
        return "" if is_count else "must be a whole number of families from 1 on, 'half' or 'all'"
    if isinstance(threshold, str):
        return "must be a number; words are for families"
    lies_in_unit = about(reads).is_share
    if lies_in_unit and not 0.0 <= threshold <= 1.0:
        return "must be from 0 to 1, which is where this lies"
    if test == "zero" and lies_in_unit:
        return "goes with test = 'at_most'; 'zero' is for what is counted"
    if test == "zero" and threshold != 0:
        return "must be 0, which is what test = 'zero' asks for"
    if test == "closure" and threshold <= 0:
        return "must be above 0, or a closure that was not shown would pass"
    return ""


def _check_families(where: str, name: str, gate: Gate, gates: Mapping[str, Gate]) -> None:
    of = str(gate.of)
    if of == name:
        if gate.reads != "kappa":
            raise ValueError(
                f"{where}.of: only of kappa is there one result a day; name the gate whose"
                " threshold each family has to reach"
            )
        return
    if of not in gates:
        raise ValueError(f"{where}.of: {unknown_name('gate', of, gates)}")
    other = gates[of]
    if other.test not in _EACH:
        raise ValueError(
            f"{where}.of: gate {gate.of!r} has no threshold that a family could reach; its test is"
            f" {other.test!r}, it must be 'at_least', 'at_most' or 'above'"
        )
    if _source(other.reads) != _source(gate.reads):
        raise ValueError(
            f"{where}.of: gate {gate.of!r} reads {other.reads!r} and this one {gate.reads!r}; they"
            " must read the same, or numbers of one metric"
        )
    missing = sorted(set(gate.thresholds) - set(other.thresholds))
    if missing:
        raise ValueError(f"{where}.of: gate {gate.of!r} has no threshold for level {missing[0]}")


def _source(reads: str) -> str:
    """What a quantity is of: the metric that yields it, or itself."""
    return reads if reads in REGISTERED else registry.owner_of(reads).name


def _check_days(where: str, name: str, gate: Gate) -> None:
    if gate.of != name:
        if gate.days:
            raise ValueError(f"{where}.days: goes with families over time, of = {name!r}")
        return
    for level in LEVELS:
        if (level in gate.days) != (level in gate.thresholds):
            raise ValueError(
                f"{where}.days: must be given for the levels of thresholds, and for no other;"
                f" see level {level}"
            )
    _check_order(f"{where}.days", gate.days, is_falling=False)


def _check_order(
    where: str, asked: Mapping[int, float] | Mapping[int, float | str], *, is_falling: bool
) -> None:
    """Refuse a level that asks for less than the one below it."""
    for lower, higher in itertools.pairwise(sorted(asked)):
        first, second = _rank(asked[lower]), _rank(asked[higher])
        if (first < second) if is_falling else (first > second):
            raise ValueError(
                f"{where}: level {higher} asks for less ({asked[higher]}) than level {lower}"
                f" ({asked[lower]})"
            )


def _rank(threshold: float | str) -> float:
    """Where a threshold stands among those of one gate: words stand above numbers."""
    return {"half": 1e9, "all": 2e9}[threshold] if isinstance(threshold, str) else float(threshold)


def profiles() -> list[str]:
    """Names of the profiles that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def source_of(name: str | Path) -> Path:
    """The file of a profile, by its name or its path.

    Raises:
        InputError: If there is no profile of that name.
    """
    path = Path(name)
    if path.suffix.lower() == ".toml":
        return path
    if str(name) not in profiles():
        raise InputError(
            f"{unknown_name('profile', str(name), profiles())}; a profile of your own is named"
            " by its file, which ends in .toml"
        )
    return FOLDER / f"{name}.toml"


def load_profile(name: str | Path) -> Profile:
    """A profile by name, or from a file.

    Args:
        name: One of `profiles()`, or the path of a TOML file.

    Raises:
        InputError: If there is none, or it is not a profile; the message names file and field.
    """
    return read_toml(source_of(name), Profile, "profile")
