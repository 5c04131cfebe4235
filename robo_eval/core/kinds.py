"""The closed lists of words that rows, plans and environments share."""

from __future__ import annotations

from collections.abc import Container
from enum import StrEnum
from typing import Final

TRUTHS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
"""The usual spellings of a truth in a table, in small letters."""


SYNTHETIC: Final = "SYNTHETIC"
"""The robot of rows that say of themselves that they are made up."""


class Side(StrEnum):
    """Where an episode was played. A twin is a stand-in simulator behind ROS, never real."""

    SIM = "sim"
    TWIN = "twin"
    REAL = "real"


def evidence_tag(side: str, origin: str = "") -> str:
    """What numbers are evidence of: where they come from if that is no run of ours, or the side.

    Args:
        side: Strongest side they are of.
        origin: `self-declared` of an import, `synthetic` where they are made up; else empty.
    """
    return origin or ("sim_only" if side == Side.SIM.value else side)


def strongest_side(sides: Container[str]) -> Side:
    """The side whose episodes say most: a robot, else a twin, else simulation."""
    return next((side for side in (Side.REAL, Side.TWIN) if side.value in sides), Side.SIM)


class Difficulty(StrEnum):
    """How strong a novelty is."""

    EASY = "easy"
    MEDIUM = "medium"
    HARD = "hard"


class Profile(StrEnum):
    """Which description of a novelty level is followed: the paper's or the reference code's."""

    PAPER = "paper"
    COMPAT = "compat"


class Arm(StrEnum):
    """Whether an episode is the one of interest or the matched control without novelty."""

    MAIN = "main"
    CONTROL = "control"


class EndReason(StrEnum):
    """Why an episode ended.

    `fault` is an error of policy, simulator or robot inside the episode, `lost` an episode whose
    process died, `void` an attempt a person declared invalid, `no_verdict` one that has no
    score: a person was to judge it and did not, or an imported table says none. None of the four
    is scored.
    """

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    SAFETY_STOP = "safety_stop"
    OUT_OF_BOUNDS = "out_of_bounds"
    OPERATOR_STOP = "operator_stop"
    FAULT = "fault"
    VOID = "void"
    LOST = "lost"
    NO_VERDICT = "no_verdict"

    @property
    def is_scored(self) -> bool:
        """Whether an episode that ended so has a quality and a success at all."""
        return self not in _UNSCORED

    @property
    def is_final(self) -> bool:
        """Whether an episode that ended so was played, so that no attempt follows."""
        return self.is_scored or self is EndReason.NO_VERDICT


class FaultBy(StrEnum):
    """Who a fault was by: the policy, the set-up around it, or a limit of time it exceeded."""

    POLICY = "policy"
    SETUP = "setup"
    TIME = "time"


LATE_COMPUTER: Final = "late_computer"
"""Reason of a void attempt that no person declares: the computer came too late too often."""

_UNSCORED = frozenset({EndReason.FAULT, EndReason.VOID, EndReason.LOST, EndReason.NO_VERDICT})

UNPLAYED = frozenset(end.value for end in EndReason if not end.is_final)
"""Ends of attempts that did not come to their end, of which there may be no recording."""
