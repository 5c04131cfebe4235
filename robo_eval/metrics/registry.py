"""The metrics there are: one function each, which takes a body and yields numbers."""

from __future__ import annotations

import hashlib
import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from inspect import cleandoc
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Final, NamedTuple

from robo_eval.core import door
from robo_eval.core.errors import InputError, foreign
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval.core.number import TRIALS, Condition, Number
from robo_eval.core.plain import UNSAID
from robo_eval.core.points import points
from robo_eval.core.policy import aside

ENTRY_POINTS: Final = "robo_eval.metrics"
"""Group under which other packages name the modules that register their metrics."""
SIDES: Final = tuple(side.value for side in Side)
PHYSICAL: Final = (Side.REAL.value, Side.TWIN.value)
GROUPS: Final = (
    "Reliability",
    "Agreement with simulation",
    "With the help of simulated episodes without a partner",
    "Safety",
    "Embodiment score",
    "Times",
    "Recovery from faults",
    "Quality of control",
    "Throughput",
    "Effect of novelty",
    TRIALS,
    "Conduct",
)
"""Groups in the order shown; those of other packages come last."""
FOLDER: Final = "robo_eval.metrics.registered"
"""Where our own metrics are."""
_SIM: Final = "_sim"

Yields = Callable[[Any], Iterable[Number]]
"""What yields numbers of a `metrics.body.Body`, which rests on what is registered here."""
Lacks = Callable[[Any], str]
"""What says why a body lacks something; nothing if it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a metric cannot do without.

    Attributes:
        lacks: Why a body does not have it; empty if it does.
        remedy: What would supply it.
    """

    lacks: Lacks
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A registered metric.

    Attributes:
        name: What its number is called on a robot.
        group: What it is about.
        unit: Unit of its number.
        needs: Names in `NEEDS`, or of metrics whose value it is made of.
        also: Units of the further names it yields.
        named: What its number is called on other sides, where that is no suffix.
        sides: On which sides it is computed.
        remedy: What would supply it where it is not there.
        is_evidence: Whether gates may read its numbers.
        compute: The function.
    """

    name: str
    group: str
    unit: str
    needs: tuple[str, ...]
    also: Mapping[str, str]
    named: Mapping[str, str]
    sides: tuple[str, ...]
    remedy: str
    is_evidence: bool
    compute: Yields = field(metadata=UNSAID)

    SAID: ClassVar = ("meaning", "source")

    @property
    def place(self) -> str:
        """Its name and that of the module that registers it, as errors begin."""
        return f"metric {self.name!r} of {self.compute.__module__}"

    @property
    def source(self) -> str:
        """The file it is from, with its SHA-256; empty if it is of a package."""
        name = self.compute.__module__
        return f"{name}, SHA-256 {FILES[name].sha256}" if name in FILES else ""

    @property
    def meaning(self) -> str:
        """What it is, in a sentence: the first paragraph of the function's docstring."""
        return self._paragraphs(1)

    @property
    def explanation(self) -> str:
        """What it is, and what its further names are: the first two paragraphs."""
        return self._paragraphs(2)

    def _paragraphs(self, count: int) -> str:
        parts = cleandoc(self.compute.__doc__ or "").split("\n\n")[:count]
        return " ".join(" ".join(parts).replace("`", "").split())

    def name_on(self, side: str, name: str = "") -> str:
        """What one of its numbers is called on a side: a twin's is never that of a robot.

        Args:
            side: `real`, `twin` or `sim`.
            name: One of `also`; the metric's own if none is given.
        """
        name = name or self.name
        if name.startswith(self.name) and side in self.named:
            return name.replace(self.name, self.named[side], 1)
        is_plain = side == Side.REAL.value or name.endswith(_SIM)
        return name if is_plain else f"{name}_{side}"

    def told_names(self) -> set[str]:
        """Everything its numbers are called, on any side."""
        return {
            told
            for name in (self.name, *self.also)
            for told in (name, *(self.name_on(side, name) for side in self.sides))
        }

    def unit_of(self, name: str) -> str | None:
        """Unit of one of its numbers; None if it yields none of that name."""
        return self.unit if name == self.name else self.also.get(name)

    def missing(self, reason: str, remedy: str) -> Number:
        """Its number where it cannot be computed."""
        return Number(estimate=Estimate.missing(reason=reason, unit=self.unit), remedy=remedy)


class MetricFile(NamedTuple):
    """A file whose metrics are computed: what it holds, and whether a person chose it."""

    source: bytes
    is_chosen: bool

    @property
    def sha256(self) -> str:
        """Digest of what it holds."""
        return hashlib.sha256(self.source).hexdigest()


FILES: Final[dict[str, MetricFile]] = {}
"""By name, in the order they were registered."""
NEEDS: Final[dict[str, Need]] = {}
"""What metrics need, by name."""
_METRICS: Final[dict[str, Metric]] = {}


def need(name: str, *, remedy: str) -> Callable[[Lacks], Lacks]:
    """Register what metrics may need; the function says why a body lacks it, or nothing.

    Args:
        name: What `needs` call it.
        remedy: What would supply it.
    """

    def registered(lacks: Lacks) -> Lacks:
        NEEDS[name] = Need(lacks=lacks, remedy=remedy)
        return lacks

    return registered


def metric(
    name: str,
    *,
    group: str,
    unit: str,
    needs: Iterable[str] = (),
    also: Mapping[str, str] | None = None,
    named: Mapping[str, str] | None = None,
    sides: Iterable[str] = SIDES,
    remedy: str = "",
    is_evidence: bool = True,
) -> Callable[[Yields], Yields]:
    """Register a function as a metric.

    It takes a `Body`, one policy on one side, and yields numbers. The registry fills in name,
    group, policy and side; where something it needs is not there, the function is not called, and
    its number says what is missing. Reports and tables say of it what the first paragraph of its
    docstring says, and what its further names are from the second.

    Args:
        name: What its number is called on a robot: of letters, digits and `_`, a letter first.
        group: What it is about; one of `GROUPS`, or any other.
        unit: Unit of its number: `ratio`, `h`, `count`, ...
        needs: What has to be there: names in `NEEDS`, or other metrics.
        also: Units of the further names it yields.
        named: By side, what its number is called where that is not the name with the side added.
        sides: On which sides it is computed.
        remedy: What would supply it where it is not there; that of its needs if not given.
        is_evidence: Whether gates may read its numbers.

    Raises:
        InputError: If the name is taken, is none, or a side is unknown.

    Example:
        >>> @metric("near_misses_seen", group="Safety", unit="count", needs=("incidents",))
        ... def near_misses_seen(body):
        ...     '''Near misses in the record of incidents.'''
        ...     n = body.counts["near_miss"]
        ...     yield Number(estimate=Estimate.exact(n, unit="count", n=n))
        >>> _METRICS.pop("near_misses_seen").meaning
        'Near misses in the record of incidents.'
    """
    chosen = tuple(sides)
    for side in (*chosen, *(named or ())):
        if side not in SIDES:
            raise unknown_name("side", side, SIDES)

    def registered(function: Yields) -> Yields:
        made = Metric(
            name=name, group=group, unit=unit, needs=tuple(needs), also=dict(also or {}),
            named=dict(named or {}), sides=chosen, is_evidence=is_evidence, compute=function,
            remedy=remedy,
        )  # fmt: skip
        for own in (name, *made.also):
            _check_name(own, function)
        _check_own(made)
        _check_free(made)
        _METRICS[name] = made
        return function

    return registered


def _check_name(name: str, function: Yields) -> None:
    if not (name.isidentifier() and name.isascii() and not name.startswith("_")):
        where = f"metric {name!r} of {function.__module__}"
        raise InputError(f"{where}: a name is of letters, digits and _, and begins with a letter")


def _check_own(made: Metric) -> None:
    """Refuse a metric one of whose numbers is called on a side as another of its own is."""
    for side in made.sides:
        told = [made.name_on(side, name) for name in (made.name, *made.also)]
        for name in told:
            if told.count(name) > 1:
                raise InputError(f"{made.place}: two of its numbers are called {name} on {side}")


def _check_free(made: Metric) -> None:
    """Refuse a metric any of whose numbers is called on a side as one of another metric is."""
    own, module = made.compute.__qualname__, made.compute.__module__
    taken = {
        name: other.compute.__module__
        for other in _METRICS.values()
        if (other.compute.__qualname__, other.compute.__module__) != (own, module)
        for name in made.told_names() & other.told_names()
    }
    if taken:
        # Said of its own name rather than of what that is on a side.
        name = min(taken, key=lambda one: (made.unit_of(one) is None, one))
        raise InputError(f"metric {name!r} of {module}: {taken[name]} has a metric of that name")


@cache
def _load() -> None:
    """Import every module that registers metrics: our own, then those of other packages."""
    package = importlib.import_module(FOLDER)
    for module in sorted(found.name for found in pkgutil.iter_modules(package.__path__)):
        importlib.import_module(f"{FOLDER}.{module}")
    for point in points(ENTRY_POINTS):
        where = f"metrics of {point.value} (entry point {point.name!r} of group {ENTRY_POINTS})"
        with foreign(where, "importing it"):
            point.load()


def packages() -> dict[str, str]:
    """Other packages whose metrics are computed, with their versions."""
    found = [one.dist for one in points(ENTRY_POINTS) if one.dist is not None]
    return {one.name: one.version for one in sorted(found, key=lambda one: one.name)}


def files() -> dict[str, str]:
    """SHA-256 of each file whose metrics are computed, by its name."""
    return {name: one.sha256 for name, one in FILES.items()}


def load_files(paths: Sequence[Path], *, asked_by: str = "") -> None:
    """Register the metrics of Python files.

    Args:
        paths: The files. They are run, as the policies of a plan are.
        asked_by: Which plan names them, for messages; nothing where a person does. A file that a
            person named goes before one of the same name in a plan.

    Raises:
        InputError: If a file is missing, cannot be imported, registers no metric or one whose name
            is taken, or another file of that name is registered.
    """
    for path in paths:
        where, name = f"{asked_by}metrics of {path}", path.name
        if path.suffix != ".py":
            raise InputError(f"{where}: is no Python file; name it NAME.py")
        known = FILES.get(name)
        if known is not None and known.is_chosen and asked_by:
            continue
        try:
            source = door.written(path)
        except OSError as err:
            raise InputError(
                f"{where}: {err.strerror or err}; put it there, or correct its path"
            ) from err
        if known is None:
            _run(path, source, where)
        elif known.source != source:
            raise InputError(f"{where}: another {name} is registered; give one of them a new name")
        FILES[name] = MetricFile(source, is_chosen=not asked_by)


def _run(path: Path, source: bytes, where: str) -> None:
    _load()
    module = ModuleType(path.name)  # with its ending it hides no other module
    module.__file__ = str(path)
    sys.modules[path.name] = module
    with foreign(where, "importing it"), aside():
        exec(compile(source, str(path), "exec", dont_inherit=True), vars(module))  # noqa: S102
    if not any(one.compute.__module__ == path.name for one in registered().values()):
        raise InputError(f"{where}: it registers no metric; mark a function by @metric")


def registered() -> dict[str, Metric]:
    """Every metric by name, in the order shown.

    Raises:
        InputError: If a module of another package cannot be imported, or a name is taken.
    """
    _load()
    place = {group: number for number, group in enumerate(GROUPS)}
    found = sorted(_METRICS.values(), key=lambda one: place.get(one.group, len(place)))
    for one in found:
        for name in one.needs:
            if name not in NEEDS and name not in _METRICS:
                known = [*NEEDS, *_METRICS]
                raise InputError(f"{one.place}: {unknown_name('need', name, known)}")
    return {one.name: one for one in found}


def owner_of(name: str) -> Metric:
    """The metric that yields a name.

    Raises:
        InputError: If none does.
    """
    every = registered()
    for one in every.values():
        if name == one.name or name in one.also:
            return one
    raise unknown_name("metric", name, names())


def names(*, for_gates: bool = False) -> list[str]:
    """Every name that a metric yields, or that gates may read, as it is called on a robot."""
    return [
        name
        for one in registered().values()
        if one.is_evidence or not for_gates
        for name in (one.name, *one.also)
    ]


def remedy_of(name: str) -> str:
    """What would supply a number where it is not there.

    Raises:
        InputError: If no metric yields that name.
    """
    return _remedy(owner_of(name))


def told_once(parts: Iterable[str]) -> str:
    """Reasons or remedies as one text."""
    return "; ".join(dict.fromkeys(part for part in parts if part))


def _remedy(one: Metric, *seen: str) -> str:
    """What would supply a metric, by its needs and theirs; those of a circle are told once."""
    parts = (
        NEEDS[name].remedy if name in NEEDS else _remedy(_METRICS[name], *seen, name)
        for name in one.needs
        if name not in seen
    )
    return one.remedy or told_once(parts)


def named(one: Metric, found: Iterable[Number], *, policy: str, side: str) -> Iterator[Number]:
    """What a metric yields, each number with its name, its group, and whose it is.

    Raises:
        InputError: If what it yields is not declared; the message names the metric.
    """
    yielded = set()
    for number in found:
        if not isinstance(number, Number):
            raise InputError(f"{one.place} yields a {type(number).__name__}, and no Number")
        _check_parts(one, number)
        name = number.name or one.name
        part = (name, number.family, number.case, number.at)
        if part in yielded:
            raise InputError(f"{one.place} yields {name} twice, each time of the same part")
        yielded.add(part)
        unit = one.unit_of(name)
        if unit is None:
            raise InputError(f"{one.place} yields {name!r}, which it does not declare in `also`")
        if number.estimate.unit != unit:
            raise InputError(
                f"{one.place}: {name} is in {number.estimate.unit!r}, declared is {unit!r}"
            )
        told = one.name_on(side, number.name)
        yield replace(number, name=told, group=one.group, policy=policy, side=side)


def _check_parts(one: Metric, number: Number) -> None:
    """Refuse a number whose parts are of other types: who shows it could not say whose it is."""
    estimate: object = number.estimate
    at: object = number.at
    where = f"{one.place} yields a Number whose"
    if not isinstance(estimate, Estimate):
        raise InputError(f"{where} estimate is a {type(estimate).__name__}, and no Estimate")
    for part in ("name", "family", "case", "rests_on", "note", "remedy"):
        if not isinstance(getattr(number, part), str):
            raise InputError(f"{where} {part} is not text")
    if not isinstance(at, Condition | None):
        raise InputError(f"{where} `at` is no Condition")
