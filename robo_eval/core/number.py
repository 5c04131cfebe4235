"""A number as it is told to people and programs: an estimate, and what it is of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, overload

from robo_eval.core.estimate import Estimate
from robo_eval.core.plain import plain

TRIALS: Final = "Trials with an onset"
"""A group of numbers of simulation alone, which no title has to say."""
_SIM: Final = "_sim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One task at one level and difficulty.

    Attributes:
        task: What it is called.
        profile: Its profile; None if not known.
        level: Novelty level; None for a task without levels.
        difficulty: Difficulty; None for a task without.
    """

    task: str
    profile: str | None = None
    level: int | None = None
    difficulty: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One estimate with its name, whom it is of, and what it rests on.

    Whoever computes it gives the estimate and what tells it from others of the same metric; the
    registry fills in name, group, policy and side.

    Attributes:
        name: What it is called on its side: `AR`, `AR_twin`, `minor_per_100_h`, ...
        group: What it is about: `Safety`, `Recovery from faults`, ...
        policy: Of which policy.
        side: `real`, `twin` or `sim`.
        family: The task family it is of; empty for all of them together.
        case: Any other part it is of: a fault, a measure, a calibration; empty for the whole.
        at: The condition it is of; None for all of them.
        estimate: The number.
        rests_on: Episodes, pairs, hours or events behind it, in words.
        note: What to mind when reading it.
        remedy: What would supply it where it has no value.
        detail: Whether short tables leave it out.
    """

    name: str = ""
    group: str = ""
    policy: str = ""
    side: str = ""
    family: str = ""
    case: str = ""
    at: Condition | None = None
    estimate: Estimate
    rests_on: str = ""
    note: str = ""
    remedy: str = ""
    detail: bool = False

    @property
    def title(self) -> str:
        """The name as people write it.

        Example:
            >>> none = Estimate.missing(reason="none", unit="")
            >>> Number(name="minor_per_100_h", estimate=none).title
            'minor per 100 h'
            >>> Number(name="AR_sim", estimate=none).title
            'AR_sim'
        """
        is_of_trials = self.group == TRIALS
        name = self.name.removesuffix(_SIM) if is_of_trials else self.name
        if name[:1].islower():
            return name.replace("_", " ")
        return name.replace("_", ".") if is_of_trials else name  # M2.1

    @property
    def label(self) -> str:
        """Name, and the part it is of."""
        return ", ".join(part for part in (self.title, self.family, self.case) if part)

    @property
    def is_of_simulation(self) -> bool:
        """Whether it is of simulated episodes, whatever it stands beside."""
        return self.name.endswith(_SIM)

    def as_dict(self) -> dict[str, Any]:
        """The number as JSON would have it: flat."""
        told: dict[str, Any] = plain(self)
        return {**told.pop("estimate"), **told}


class Numbers(Sequence[Number]):
    """Numbers in the order they are shown.

    Args:
        numbers: The numbers.
    """

    __slots__ = ("_numbers",)

    def __init__(self, numbers: Iterable[Number] = ()) -> None:
        self._numbers = tuple(numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Number]:
        return iter(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Number: ...
    @overload
    def __getitem__(self, index: slice) -> Numbers: ...
    def __getitem__(self, index: int | slice) -> Number | Numbers:
        if isinstance(index, slice):
            return Numbers(self._numbers[index])
        return self._numbers[index]

    def __repr__(self) -> str:
        return f"Numbers({list(self._numbers)!r})"

    def where(self, **parts: object) -> Numbers:
        """Those whose attributes have these values, such as `side="real"`."""
        wanted = parts.items()
        return Numbers(
            one for one in self._numbers if all(getattr(one, key) == has for key, has in wanted)
        )

    def by(self, attribute: str) -> dict[str, Numbers]:
        """Them by the value of an attribute, such as `group`, in order of appearance."""
        found: dict[str, list[Number]] = {}
        for one in self._numbers:
            found.setdefault(getattr(one, attribute), []).append(one)
        return {key: Numbers(own) for key, own in found.items()}

    def of(self, name: str, family: str = "", case: str = "") -> Estimate | None:
        """The estimate of a name over all conditions, and over all families if none is named."""
        found = self.where(name=name, family=family, case=case, at=None)
        return found[0].estimate if found else None

    def families(self, name: str) -> dict[str, Estimate]:
        """A name's estimate in each task family."""
        return {
            one.family: one.estimate
            for one in self.where(name=name, case="", at=None)
            if one.family
        }
