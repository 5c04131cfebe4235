"""One axis of the AAI scale: what was measured, between which anchors, and what that makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.estimate import Estimate
from robo_eval.core.plain import UNSAID

TITLES: Final[Mapping[str, str]] = {
    "A": "autonomy",
    "G": "generality",
    "P": "planning",
    "M": "memory",
    "T": "tools",
    "R": "self-revision",
    "S": "sociality",
    "E": "embodiment",
    "W": "world model",
    "$": "throughput",
}
"""What people call each axis, in the order of `formulas.AXES`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A raw value, and what resampling its evidence makes of it.

    Attributes:
        raw: The value in its own unit; without a value, and with a reason, if it is missing.
        draws: The value of each resample, shape (resamples,), in the unit of `raw`; None without
            an interval. Draws of measurements from the same episodes belong together: the i-th of
            each is made of the same resample.
        parts: What else was measured on the way, by name, such as retention and recall.
    """

    raw: Estimate
    draws: NDArray[np.float64] | None = None
    parts: Mapping[str, Estimate] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis.

    Attributes:
        name: One of `formulas.AXES`.
        raw: What was measured.
        baseline: Raw value that counts 0; None if there are no anchors.
        expert: Raw value that counts 1.
        scale: `linear` or `log`.
        source: Where the anchors come from; empty if they follow from the definition.
        value: The axis, in [0, 1].
        draws: The axis of each resample, shape (resamples,); None without an interval.
        parts: What else was measured on the way, by name.
    """

    SAID: ClassVar = ("title", "anchors")

    name: str = field(metadata={"json": "axis"})
    raw: Estimate
    baseline: float | None = field(metadata=UNSAID)
    expert: float | None = field(metadata=UNSAID)
    scale: str = field(default="linear", metadata=UNSAID)
    source: str = field(default="", metadata=UNSAID)
    value: Estimate
    draws: NDArray[np.float64] | None = field(default=None, metadata=UNSAID)
    parts: Mapping[str, Estimate] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What people call it."""
        return TITLES[self.name]

    @property
    def anchors(self) -> dict[str, object] | None:
        """Raw values that count 0 and 1, on which scale, and where they come from."""
        names = ("baseline", "expert", "scale", "source")
        return None if self.baseline is None else {name: getattr(self, name) for name in names}
