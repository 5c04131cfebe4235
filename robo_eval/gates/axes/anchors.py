"""The ten axes of one policy, each on the line between its anchors, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval import formulas
from robo_eval.core.defaults import LEVEL
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.plain import UNSAID
from robo_eval.formulas.composite import AXES
from robo_eval.gates.axes.draws import Resampled
from robo_eval.gates.axes.embodiment_and_cost import embodiment_measured, throughput_measured
from robo_eval.gates.axes.episodes import episodes_measured
from robo_eval.gates.axes.memory import memory_measured
from robo_eval.gates.axes.settings import AnchorSettings, AxisSettings
from robo_eval.gates.axes.tools import sociality_measured, tools_measured
from robo_eval.log.notes import iso_time

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.log.evidence import Anchor, Evidence
    from robo_eval.metrics.body import Body

Array = NDArray[np.float64]

_RATIO: Final = "ratio"
_NO_ANCHORS: Final = (
    "no anchors: which tasks per currency unit count 0 and 1 has to be said, by a line of"
    " anchors.csv (axis $, baseline, expert, source) or the anchors of the settings"
)


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


def axes_of(
    own: pd.DataFrame,
    body: Body | None,
    noted: Evidence,
    settings: AxisSettings,
    *,
    revision: Resampled,
    level: float = LEVEL,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[Axis, ...]:
    """The ten axes of one policy on one side.

    Draws of A, G, P and W belong together; those of the others are independent of them and of each
    other. E and $ rest on some of the same episodes, and taking them as independent is an
    approximation. So are the draws of E: two halves of a normal distribution around the score, of
    which each reaches the end of its interval with the probability that the interval leaves out.

    Args:
        own: Scored episodes of the policy, with the columns of `core.episode.Episode`.
        body: How it did on a body; None without one.
        noted: Evidence of this policy and side alone; None where there is no such file.
        settings: How each axis is computed, and anchors.
        revision: The axis R, of `revision.revisions_measured`.
        level: Coverage of the intervals.
        resamples: Draws, at least 100; those of S are 2000.
        seed: Seed of the draws.

    Returns:
        Always ten, in the order of `formulas.AXES`; a missing one says what would give it a value.

    Raises:
        InputError: If two lines of anchors disagree, or an anchor has no logarithm.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1.
    """
    measured = {
        **episodes_measured(own, settings, level=level, resamples=resamples, seed=seed),
        "M": memory_measured(
            noted.retention, noted.retrieval, settings,
            level=level, resamples=resamples, seed=seed,
        ),
        "T": tools_measured(noted.tools, settings, level=level, resamples=resamples, seed=seed),
        "R": revision,
        "S": sociality_measured(noted.teams, level=level, seed=seed),
        "E": embodiment_measured(body, resamples, seed),
        "$": throughput_measured(body, resamples, seed),
    }  # fmt: skip
    anchors = _anchors(noted, settings)
    return tuple(axis_of(name, measured[name], anchors.get(name)) for name in AXES)


def axis_of(name: str, measured: Resampled, anchors: AnchorSettings | None) -> Axis:
    """One axis: what was measured, on the line between its anchors.

    Args:
        name: One of `formulas.AXES`.
        measured: What was measured.
        anchors: Raw values that count 0 and 1; without them the axis has no value.

    Raises:
        InputError: As `formulas.calibrate`.
    """
    raw = measured.raw
    if anchors is None:
        reason = _NO_ANCHORS if raw.value is not None else str(raw.reason)
        return Axis(
            name=name, raw=raw, baseline=None, expert=None, parts=measured.parts,
            value=Estimate.missing(reason=reason, unit=_RATIO, n=raw.n, method=raw.method),
        )  # fmt: skip
    draws = measured.draws
    return Axis(
        name=name,
        raw=raw,
        baseline=anchors.baseline,
        expert=anchors.expert,
        scale=anchors.scale,
        source=anchors.source,
        value=_calibrated(raw, anchors),
        draws=None if draws is None or raw.value is None else np.asarray(_on_line(draws, anchors)),
        parts=measured.parts,
    )


# Anchors -----------------------------------------------------------------------------------------


def _anchors(noted: Evidence, settings: AxisSettings) -> dict[str, AnchorSettings]:
    """Anchors of each axis: noted ones before those of the settings, before 0 and 1."""
    found = {name: AnchorSettings() for name in AXES if name != "$"} | settings.anchors
    lines: dict[str, int] = {}
    for anchor in noted.anchors or ():
        numbers = {name: getattr(anchor, name) for name in ("baseline", "expert", "scale")}
        given = AnchorSettings.model_validate({**numbers, "source": _source(anchor, noted)})
        if anchor.axis in lines and found[anchor.axis] != given:
            file = noted.files.get("anchors", "anchors.csv")
            raise InputError(
                f"{file}: line {anchor.line}: {anchor.axis} has other anchors in line"
                f" {lines[anchor.axis]}; anchors are frozen, give one line"
            )
        found[anchor.axis] = given
        lines.setdefault(anchor.axis, anchor.line)
    return found


def _source(anchor: Anchor, noted: Evidence) -> str:
    """Where anchors come from; if more is noted, who set them when from what, and the file."""
    day = "" if anchor.time_ns is None else iso_time(anchor.time_ns)[:10]
    told = {"version ": anchor.version, "by ": anchor.by, "on ": day, "from ": anchor.trials}
    parts = [word + text for word, text in told.items() if text]
    if not parts:
        return anchor.source
    file = Path(noted.files.get("anchors", "anchors.csv")).name
    digest = noted.sources.get(file, "")
    return f"{anchor.source} ({', '.join(parts)}; {file} {digest}".rstrip() + ")"


def _calibrated(raw: Estimate, anchors: AnchorSettings) -> Estimate:
    """The estimate between its anchors; its ends change places where lower is better."""
    if raw.value is None:
        return Estimate.missing(reason=str(raw.reason), unit=_RATIO, n=raw.n, method=raw.method)
    ends = (raw.low, raw.high)
    low, high = (None if end is None else _on_line(end, anchors) for end in ends)
    if anchors.expert < anchors.baseline:
        low, high = high, low
    return replace(raw, value=_on_line(raw.value, anchors), low=low, high=high, unit=_RATIO)


def _on_line(x: float | Array, anchors: AnchorSettings) -> float:
    # An interval may reach below 0 where no raw value does, and there is no logarithm.
    return formulas.calibrate(
        np.maximum(x, 0.0), anchors.baseline, anchors.expert, scale=anchors.scale
    )
