"""What metrics depend on besides the episodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Self

from robo_eval.core import defaults
from robo_eval.core.canonical import digest
from robo_eval.core.errors import InputError

if TYPE_CHECKING:
    from robo_eval.core.plan import MetricPlan

_FIXED: Final = (
    "level", "seed", "min_coverage", "severity_weights", "safety_form", "max_unmatched",
    "max_voids", "control_weights",
)  # fmt: skip
"""Settings that would buy a level. Tolerances, prices and the calibration belong to the work, and
an error of the policy may well count as a failure."""
_LEAST_RESAMPLES: Final = 1000
"""With fewer a bootstrap's ends depend on its seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricConfig:
    """Settings of the metrics; stored with every summary, so that it can be computed again.

    Attributes:
        level: Coverage intervals aim at.
        resamples: Bootstrap resamples.
        seed: Seed of the bootstrap.
        min_coverage: Share of episodes that must be scored for a headline or a verdict.
        policy_faults: What an episode ended by an error of the policy is: `missing` or `failure`.
        severity_weights: What one incident per 100 h costs, by severity.
        safety_form: How the weighted incident rates become the safety score.
        max_unmatched: Share of physical episodes that may lack a simulated counterpart.
        min_effective_size: Fewer effective simulated episodes behind a rate are flagged.
        max_voids: Share of attempts that may be void before a policy is flagged.
        tolerances: By task family, the greatest value of each measure of control with full credit.
        control_weights: Weights of the measures of control; one that is not named weighs 1.
        price_card: Currency units an hour of exposure costs, by item; None without one.
        currency: Its name, for tables.
        calibration: Calibration snapshot whose simulation is compared, where there are several.
    """

    level: float = defaults.LEVEL
    resamples: int = defaults.RESAMPLES
    seed: int = 0
    min_coverage: float = defaults.MIN_COVERAGE
    policy_faults: defaults.PolicyFaults = "missing"
    severity_weights: Mapping[str, float] = field(
        default_factory=lambda: dict(defaults.SEVERITY_WEIGHTS)
    )
    safety_form: defaults.SafetyForm = defaults.SAFETY_FORM
    max_unmatched: float = defaults.MAX_UNMATCHED
    min_effective_size: float = defaults.MIN_EFFECTIVE_SIZE
    max_voids: float = defaults.MAX_VOIDS
    tolerances: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    control_weights: Mapping[str, float] = field(default_factory=dict)
    price_card: Mapping[str, float] | None = None
    currency: str = ""
    calibration: str | None = None

    def __post_init__(self) -> None:
        for name in ("level", "min_coverage"):
            share = getattr(self, name)
            if not 0.0 < share < 1.0 and not (name == "min_coverage" and share == 1.0):
                raise InputError(f"metric configuration: {name} is {share}; it must be in (0, 1)")
        if self.resamples < 100:
            raise InputError(
                f"metric configuration: resamples is {self.resamples}; it must be at least 100"
            )
        if self.seed < 0:
            raise InputError(f"metric configuration: seed is {self.seed}; it cannot be negative")

    @classmethod
    def of(cls, plan: MetricPlan) -> Self:
        """The settings a plan, or a file of settings, holds."""
        values = plan.model_dump()
        card = values.pop("price_card")
        values.pop("modules")  # further numbers, on which no other one depends
        if card is not None:
            values["currency"] = card.pop("currency")
        return cls(price_card=card, **values)

    def as_dict(self) -> dict[str, Any]:
        """The settings by name."""
        return {part.name: _plain(getattr(self, part.name)) for part in fields(self)}

    @property
    def unusual(self) -> tuple[str, ...]:
        """Settings a level may not rest on, each beside the standard one; empty if there are none.

        Example:
            >>> MetricConfig(level=0.5).unusual
            ('level 0.5 instead of 0.95',)
        """
        own, usual = self.as_dict(), MetricConfig().as_dict()
        names = [name for name in _FIXED if own[name] != usual[name]]
        if self.resamples < _LEAST_RESAMPLES:
            own["resamples"], usual["resamples"] = self.resamples, f"{_LEAST_RESAMPLES} or more"
            names.append("resamples")
        return tuple(f"{name} {_said(own[name])} instead of {_said(usual[name])}" for name in names)

    @property
    def digest(self) -> str:
        """SHA-256 of the settings."""
        return digest(self.as_dict())


def _said(value: object) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    return ", ".join(f"{key} {entry:g}" for key, entry in value.items()) or "none"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    return value
