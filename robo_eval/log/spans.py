"""When the episodes of a table began and ended, and who played at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.log.evidence import Incident

SLACK_NS: Final = 10**9
"""Clocks of people and robots may differ by so much."""


def spans_ns(rows: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Start and end of each row in ns UTC, NaN where they are not known.

    Floats of this size are good to a microsecond, which is far less than the slack of clocks.
    """
    import pandas as pd

    starts = pd.to_numeric(rows["start_ns"], errors="coerce").to_numpy(np.float64, na_value=np.nan)
    lengths = np.fmax(
        rows["duration_s"].to_numpy(dtype=np.float64), rows["exposure_s"].to_numpy(dtype=np.float64)
    )
    return starts, starts + lengths * 1e9


@dataclass(frozen=True, slots=True)
class Windows:
    """Spans of one side by their start; they hardly overlap, as a robot does one thing at once."""

    starts: NDArray[np.float64]
    ends: NDArray[np.float64]
    latest: NDArray[np.float64]
    """The latest end up to each span."""
    policies: NDArray[np.object_]
    episodes: NDArray[np.object_]

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Self:
        """The spans of episodes of one side, of those whose time is known."""
        starts, ends = spans_ns(rows)
        known = ~np.isnan(ends)
        order = np.flatnonzero(known)[np.argsort(starts[known], kind="stable")]
        policies, episodes = (
            rows[name].to_numpy(dtype=object)[order] for name in ("policy", "episode_id")
        )
        latest = np.maximum.accumulate(ends[order])
        return cls(starts[order], ends[order], latest, policies, episodes)

    @classmethod
    def by_side(cls, rows: pd.DataFrame) -> dict[str, Self]:
        """The spans of each side of episodes."""
        return {str(side): cls.of(own) for side, own in rows.groupby("side", sort=False)}

    def at(self, time_ns: int, slack_ns: int = SLACK_NS) -> Iterator[tuple[str, str]]:
        """Policy and episode of each span that holds a time, the latest first."""
        first = int(np.searchsorted(self.latest, time_ns - slack_ns))
        last = int(np.searchsorted(self.starts, time_ns + slack_ns, side="right"))
        for index in range(last - 1, first - 1, -1):
            if self.ends[index] >= time_ns - slack_ns:
                yield str(self.policies[index]), str(self.episodes[index])

    def policy_of(self, episode_id: str | None) -> str | None:
        """Who played an episode; None if its time is not known."""
        if episode_id is None:
            return None
        found = self.policies[self.episodes == episode_id]
        return str(found[0]) if len(found) else None


def other_policy(incident: Incident, windows: Windows | None) -> str | None:
    """What is wrong with an incident that happened while another policy played than it names.

    Args:
        incident: An incident; what it is about is the policy it names, else that of its episode.
        windows: The spans of its side; None if nothing was played there.

    Returns:
        None as well where neither its time nor its episode says more.
    """
    if windows is None:
        return None
    player = windows.policy_of(incident.episode_id)
    if None not in (incident.policy, player) and incident.policy != player:
        return (
            f"incident {incident.incident_id!r} is of policy {incident.policy!r}, and policy"
            f" {player!r} played episode {incident.episode_id!r}; set right its policy, or its"
            " episode"
        )
    if incident.time_ns is None:
        return None
    own = incident.policy or player
    if own is None or any(policy == own for policy, _ in windows.at(incident.time_ns)):
        return None
    # Beyond the ends of the others, clocks that differ may be the reason.
    policy, episode = next(windows.at(incident.time_ns, slack_ns=0), (None, None))
    if policy is None:
        return None
    return (
        f"incident {incident.incident_id!r} is of policy {own!r}, and at its time"
        f" policy {policy!r} played episode {episode!r}; set right its policy, or its time"
    )
