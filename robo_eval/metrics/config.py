"""What metrics depend on besides the episodes."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from robo_eval.core.canonical import digest
from robo_eval.core.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricConfig:
    """Settings of the metrics; stored with every summary, so that it can be computed again.

    Attributes:
        level: Coverage intervals aim at.
        resamples: Bootstrap resamples.
        seed: Seed of the bootstrap.
        min_coverage: Share of episodes that must be scored for a headline or a verdict.
    """

    level: float = 0.95
    resamples: int = 9999
    seed: int = 0
    min_coverage: float = 0.95

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

    def as_dict(self) -> dict[str, object]:
        """The settings by name."""
        return asdict(self)

    @property
    def digest(self) -> str:
        """SHA-256 of the settings."""
        return digest(self.as_dict())
