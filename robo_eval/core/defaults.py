"""The settings of metrics that this project chose, each named once; a plan can change them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

LEVEL: Final = 0.95
"""Coverage intervals aim at."""
RESAMPLES: Final = 9999
"""Bootstrap resamples."""
MIN_COVERAGE: Final = 0.95
"""Share of episodes that must be scored for a headline or a verdict."""
SEVERITY_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType(
    {"near_miss": 0.01, "minor": 0.1, "major": 1.0, "critical": 10.0}
)
"""What one incident per 100 h costs: a decade a severity, so that a weighted sum of 1 is a budget
of one major incident per 100 h used up."""
SEVERITIES: Final = tuple(SEVERITY_WEIGHTS)
"""The incident taxonomy, mildest first. One physical event is one incident, at its highest."""
SafetyForm = Literal["linear", "exponential", "reciprocal"]
SAFETY_FORM: Final = "linear"
"""How the weighted rates become a score: 1 - sum, exp(-sum) or 1 / (1 + sum)."""
MIN_RATE_HOURS: Final = 1.0
"""Exposure below which incidents are counted, but are no rate: one in a minute would be 6,000 per
100 h. Levels ask for 100 h and more, so none is decided by it."""
MAX_UNMATCHED: Final = 0.10
"""Share of physical episodes that may lack a simulated counterpart."""
MIN_EFFECTIVE_SIZE: Final = 30.0
"""Fewer effective simulated episodes behind a reweighted rate are flagged."""
PolicyFaults = Literal["missing", "failure"]
"""What an episode counts as that an error of the policy itself ended."""
MAX_VOIDS: Final = 0.05
"""Share of attempts that may be void before a policy is flagged."""
MAX_MISSED_TICKS: Final = 4
"""Control ticks an episode on a robot may miss by a late computer before it is void."""
PENALTIES: Final = ("unresolved_conflict", "loop", "chatter", "mode_collapse")
"""What can go wrong between roles, in the order penalties are given in."""
HOLD_OUT: Final = 0.25
"""Share of recordings that a calibration keeps to validate it."""
AXES: Final = ("A", "G", "P", "M", "T", "R", "S", "E", "W", "$")
"""Autonomy, generality, planning, memory, tools, self-revision, sociality, embodiment, world model,
throughput."""
