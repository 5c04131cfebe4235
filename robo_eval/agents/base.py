"""What the baseline agents have in common: parameters, name and digest."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from numpy.typing import NDArray

from robo_eval.agents.registry import policy_digest
from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name


@dataclass(kw_only=True, eq=False)
class Agent(ABC):
    """An agent whose parameters are its dataclass fields.

    Attributes:
        name: The registered name.
        digest: SHA-256 of class, source and parameters, see `registry.policy_digest`.
    """

    name: ClassVar[str]

    def __post_init__(self) -> None:
        self.digest = policy_digest(type(self), self.parameters)

    @property
    def parameters(self) -> dict[str, Any]:
        """What was given to the constructor, defaults included."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    def reset(self, *, seed: int | None = None) -> None:  # noqa: B027 - most have nothing to do
        """Forget the last episode."""

    @abstractmethod
    def act(self, observation: NDArray[Any]) -> int:
        """The action for an observation of the task that the agent plays."""

    def _check_number(self, field: str, *, low: float, high: float) -> None:
        value = getattr(self, field)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (is_number and math.isfinite(value) and low <= value <= high):
            raise InputError(
                f"agent {self.name!r}: {field} must be a number from {low:g} to {high:g},"
                f" given {value!r}"
            )

    def _check_choice(self, field: str, valid: Collection[str]) -> None:
        value = getattr(self, field)
        if value not in valid:
            raise unknown_name(f"{field} of agent {self.name!r}", value, valid)
