"""From which state the policies of one condition and seed have to start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from robo_eval.core.episode import Episode
from robo_eval.core.plan import Condition
from robo_eval.core.schedule import PlannedEpisode, base_id_of


class Starts:
    """Remembers where the first episode of each condition and seed that was played started.

    Attempts that were void, lost or ended by a fault bind nobody: they may be so because of how
    they started.

    Args:
        planned: The episodes of this side.
        logged: What was played in earlier runs, oldest first.
    """

    def __init__(self, planned: Sequence[PlannedEpisode], logged: Iterable[Episode]) -> None:
        self._states: dict[tuple[Condition, int], dict[str, Any]] = {}
        by_id = {episode.base_id: episode for episode in planned}
        for row in logged:
            match = by_id.get(base_id_of(row.episode_id, row.attempt))
            if match is not None:
                self.add(match, row)

    def add(self, planned: PlannedEpisode, row: Episode) -> None:
        """An attempt has ended."""
        if row.end_reason.is_final and row.initial_state:
            self._states.setdefault((planned.condition, planned.seed), dict(row.initial_state))

    def of(self, planned: PlannedEpisode) -> dict[str, Any] | None:
        """Where an episode has to start; None if none of its seed was played yet."""
        return self._states.get((planned.condition, planned.seed))
