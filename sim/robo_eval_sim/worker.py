"""A process that plays episodes, and is ended when what it plays does not come to an end."""

from __future__ import annotations

import time
from ctypes import c_uint64
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from robo_eval.agents.confined import making_limit_s
from robo_eval.core import spread
from robo_eval.core.confined import can_fork
from robo_eval.core.episode import Episode
from robo_eval.core.errors import InputError, RoboEvalError, said
from robo_eval.core.kinds import FaultBy
from robo_eval.core.plan import PlannedCondition, TrialPlan
from robo_eval.core.schedule import PlannedEpisode
from robo_eval.log.planned_row import declared
from robo_eval_sim.beat import CELLS, Asked, Beat
from robo_eval_sim.play import Stage

WORLD_LIMIT_S: Final = 600.0
"""How long a world may take for a reset or a step, at least."""
_LONGEST_LOOK_S: Final = 1.0
"""What passes between two looks counts for so long at most: this process was stopped, too."""
_READY, _STOPPED = "ready", "stopped"
WORDS: Final = {
    Asked.MAKE: "the policy was not made",
    Asked.RESET: "the policy was not reset",
    Asked.ACT: "the policy gave no action",
    Asked.DECLARE: "the policy did not declare",
    None: "the environment did not go on",
}
"""What did not happen where it took too long."""


def limits_of(plan: TrialPlan) -> dict[Asked | None, float]:
    """How long a policy may take for what it is asked, and a world while none is, seconds."""
    limit_s = plan.decision_timeout_s
    making_s = making_limit_s(limit_s)
    return {
        Asked.MAKE: making_s,
        Asked.RESET: limit_s,
        Asked.ACT: limit_s,
        Asked.DECLARE: limit_s,
        None: max(WORLD_LIMIT_S, making_s),
    }


class Worker(spread.Worker[PlannedEpisode, Episode]):
    """Plays the episodes it is given, one after the other, in a process of its own.

    Args:
        plan: The plan.
        plan_digest: Its SHA-256.
        folder: Where traces go, in `traces/`.
        forks: Whether the process may be a copy of this one; see `Confined`.

    Attributes:
        beat: What its policies are asked, which is watched.
        declared: What the environment of each condition says of itself.
    """

    def __init__(self, plan: TrialPlan, plan_digest: str, folder: Path, *, forks: bool) -> None:
        forks = forks and can_fork()
        cells = get_context("fork" if forks else "spawn").RawArray(c_uint64, CELLS)
        self.beat = Beat(cells)
        self.declared: dict[PlannedCondition, dict[str, str]] = {}
        self._seen, self._unchanged_s, self._looked_s = -1, 0.0, time.monotonic()
        self._limits_s = limits_of(plan)
        super().__init__(_work, cells, plan, plan_digest, folder, forks=forks)

    def hear(self, said_now: object) -> None:
        """Take note of what an environment says of itself, and of a stop."""
        if said_now == _STOPPED:
            self.todo.clear()
        elif isinstance(said_now, tuple):
            condition, self.declared[condition] = said_now

    def stop(self) -> None:
        """Have it begin no further episode."""
        self.beat.stop()

    def problem(self) -> tuple[FaultBy, str] | None:
        """Whose fault it is that nothing has happened for too long, and what was waited for."""
        now_s = time.monotonic()
        passed_s, self._looked_s = now_s - self._looked_s, now_s
        count, asked = self.beat.count, self.beat.asked
        if not self.todo or count != self._seen:
            self._seen, self._unchanged_s = count, 0.0
        elif not self._process.is_stopped:
            self._unchanged_s += min(passed_s, _LONGEST_LOOK_S)
        limit_s = self._limits_s[asked]
        if self._unchanged_s < limit_s:
            return None
        by = FaultBy.TIME if asked is None else FaultBy.POLICY
        return by, f"{WORDS[asked]} within {limit_s:g} s (tick {self.beat.ticks})"


def _work(
    hears: Connection,
    pipe: Connection,
    cells: Any,
    plan: TrialPlan,
    plan_digest: str,
    trial: Path,
) -> None:
    beat = Beat(cells)
    stage = Stage(plan, plan_digest, trial, beat=beat)
    told: set[PlannedCondition] = set()
    pipe.send(_READY)
    while True:
        for planned in hears.recv():
            if beat.stops:
                pipe.send(_STOPPED)
                break
            try:
                if planned.condition not in told:  # whoever ends this process cannot ask any more
                    pipe.send((planned.condition, declared(stage.environment(planned))))
                    told.add(planned.condition)
                pipe.send(spread.Done(stage.play(planned)))
            except (RoboEvalError, OSError) as err:
                pipe.send(err)
            except BaseException as err:  # noqa: BLE001 - told in one line where it can be
                pipe.send(InputError(f"{planned.base_id}: {said(err)}"))
