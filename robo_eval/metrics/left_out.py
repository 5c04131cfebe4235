"""Attempts without a score, and the reading by which they are failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from robo_eval.core.defaults import MAX_VOIDS
from robo_eval.core.kinds import Arm, EndReason, FaultBy, Side
from robo_eval.core.wording import counted, noun_for
from robo_eval.metrics.attribution import void_reason
from robo_eval.metrics.tables import Rows

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TrialPlan

_ENDS: Final = (EndReason.VOID, EndReason.FAULT, EndReason.LOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Attempts of one policy on one side that no score tells of.

    Attributes:
        episodes: Planned episodes they were at, by their `base_id`.
        by_end: How many ended so, by the end.
        attempts: Attempts in all.
        is_excused: Whether the plan allows them all: faults of the set-up, lost processes, and
            voids for reasons of the plan, in no more than the share that settings allow.
        most: Share that settings allow, where all was excused and there is more; else None.
        namesakes: Other names under which the same policy played on that side.
    """

    episodes: tuple[str, ...] = ()
    by_end: tuple[tuple[str, int], ...] = ()
    attempts: int = 0
    is_excused: bool = True
    most: float | None = None
    namesakes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """For people: how many, and how they ended; empty if nothing was left out."""
        same = f"with those of {', '.join(self.namesakes)}, which is the same policy"
        return ", ".join(filter(None, (self._ends, same if self.namesakes else "")))

    @property
    def _ends(self) -> str:
        return ", ".join(f"{n} {end}" for end, n in self.by_end)

    @property
    def problem(self) -> str:
        """What is wrong with them; empty if the plan allows them."""
        if self.is_excused:
            return ""
        left = sum(n for _, n in self.by_end)
        of_default = ", the default" if self.most == MAX_VOIDS else ""
        share = "" if self.most is None else f": max_voids is {self.most:g}{of_default}"
        return (
            f"{counted(left, 'attempt')} of {self.attempts} {noun_for(left, 'was', 'were')} left"
            f" out beyond what the plan allows ({self._ends}){share}; levels count each such"
            " episode as a failure"
        )

    @property
    def allowed(self) -> str:
        """What levels make of those that the plan allows; empty without, or with a problem."""
        if not self.is_excused or not self.by_end:
            return ""
        left = sum(n for _, n in self.by_end)
        return (
            f"{counted(left, 'attempt')} of {self.attempts} without a score ({self._ends}):"
            " levels count each such episode as a failure, also where it was tried again"
        )


def left_out_of(
    frame: pd.DataFrame, plan: TrialPlan | None, most: float, namesakes: tuple[str, ...] = ()
) -> LeftOut:
    """What was left out of one policy's numbers on one side.

    Args:
        frame: Its attempts, of `episodes_frame`.
        plan: The plan; reasons of an import are its own, so they excuse nothing.
        most: Share of attempts that may be left out.
        namesakes: Other names of the same policy.
    """
    main = frame[frame["arm"] == Arm.MAIN.value]
    out = main[main["end_reason"].isin([end.value for end in _ENDS])]
    if not len(out) or not (main["side"] != Side.SIM.value).all():
        return LeftOut(attempts=len(main), namesakes=namesakes)
    known = () if plan is None or plan.imported is not None else plan.known_void_reasons
    excuses = [
        _excused(end, detail, by, known)
        for end, detail, by in zip(
            out["end_reason"], out["end_detail"], out["fault_by"], strict=True
        )
    ]
    ends, is_more = out["end_reason"].value_counts(), len(out) > most * len(main)
    return LeftOut(
        episodes=tuple(sorted(set(out["base_id"]))),
        by_end=tuple((end.value, int(ends[end.value])) for end in _ENDS if end.value in ends),
        attempts=len(main),
        is_excused=all(excuses) and not is_more,
        most=most if all(excuses) and is_more else None,
        namesakes=namesakes,
    )


def _excused(end: str, detail: object, by: object, reasons: tuple[str, ...]) -> bool:
    if end == EndReason.VOID.value:
        return isinstance(detail, str) and void_reason(detail) in reasons
    return end == EndReason.LOST.value or by == FaultBy.SETUP.value


def as_failures(rows: Rows, side: str, found: LeftOut) -> Rows:
    """The same rows, in which each episode that was left out, or tried again, is a failure.

    These, and what namesakes played, stand each for themselves: failures do not hide behind
    others of their seed. Nor are they compared with simulation: what they hid cannot be known.

    Args:
        rows: Rows of the policy on every side, and of its namesakes.
        side: The side it was left out on.
        found: What was left out.
    """
    apart = np.isin(rows["policy"].astype(str), found.namesakes)
    left_out = np.zeros(len(rows), dtype=np.bool_)
    if not found.episodes:
        return rows.having(apart=apart)
    names = rows["base_id"]
    is_counted = np.asarray(rows["side"] == side, dtype=np.bool_)
    is_counted &= np.isin(names.astype(str), found.episodes)
    # One row of each episode: that with a score, else the last.
    in_order = (np.flatnonzero(is_counted & ~rows.scored), np.flatnonzero(is_counted & rows.scored))
    one_each = {names[row]: row for row in np.concatenate(in_order).tolist()}
    chosen = np.array(list(one_each.values()), dtype=np.intp)
    apart[chosen] = left_out[chosen] = True
    return rows.failing(chosen).having(apart=apart, left_out=left_out)
