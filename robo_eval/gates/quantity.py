"""What is told of a quantity that gates read: how it is computed, its nouns, and its remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Final, Literal

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.metrics import registry

Found = Estimate | Mapping[str, Estimate]
"""An estimate, or those of the task families by name."""
Compute = Callable[..., Found | None]


@dataclass(frozen=True, slots=True)
class Quantity:
    """What gates read; as a decorator it registers the function that computes it.

    The function takes an `evidence.Judged`; where it returns None, nothing was measured.

    Attributes:
        name: What profiles call it.
        remedy: What supplies it where it is missing.
        needs: The kind of evidence without a line of which it is not computed.
        noun: What its sample is counted in, where that is the same for every trial.
        more: Of what there have to be more to narrow its interval; empty where no amount of
            anything is foretold to do so.
        kind: What it is for a verdict.
        axis: The axis it is a value of, which says itself why it has none.
        is_share: Whether it lies between 0 and 1.
        is_of_body: Whether only a robot, or a twin of one, has it.
        is_vouched: Whether people vouch for it, so that what is missing is to be written down.
        compute: The function; None of numbers of metrics.
    """

    name: str
    remedy: str = ""
    _: KW_ONLY
    needs: str = ""
    noun: str = ""
    more: str = ""
    kind: Literal["threshold", "closure", "duration"] = "threshold"
    axis: str = ""
    is_share: bool = False
    is_of_body: bool = False
    is_vouched: bool = False
    compute: Compute | None = None

    def __call__(self, compute: Compute) -> Compute:
        """Register the function that computes it."""
        REGISTERED[self.name] = replace(self, compute=compute)
        return compute


REGISTERED: Final[dict[str, Quantity]] = {}
"""Quantities beside the numbers of metrics, by name."""
_NUMBERS: Final = {
    one.name: one
    for one in (
        Quantity("AR", noun="episode", more="episode"),
        Quantity("AR_new_task", noun="task", more="task"),
        Quantity("S2R", more="pair"),
        Quantity("S2R_new_task", noun="task", more="task"),
        Quantity("QC_worst", more="episode"),
        Quantity("RA", noun="fault", more="injected fault"),
        Quantity("SS", noun="incident"),
        Quantity("minor_per_100_h", noun="incident"),
        Quantity("MTBSI", noun="incident", kind="duration"),
        Quantity("exposure_hours", kind="duration"),
        Quantity("E", axis="E"),
    )
}
"""What gates have to know of numbers of metrics, which say the rest themselves."""


def about(name: str) -> Quantity:
    """What is told of a quantity, or of a number of a metric.

    Raises:
        InputError: If there is neither.
    """
    if name in REGISTERED:
        return REGISTERED[name]
    owner = registry.owner_of(name)
    return replace(
        _NUMBERS.get(name, Quantity(name)),
        remedy=registry.remedy_of(name) or f"see the metric {owner.name}",
        is_share=owner.unit_of(name) == "ratio",
        is_of_body=Side.SIM.value not in owner.sides,
    )
