"""Which episodes a second rater is to judge, and what there is to see of them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from robo_eval.core.episode import Episode
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import base_id_of, planned_ids
from robo_eval.log.evidence import Rating

_LEAST: Final = 6
"""Digits of a code."""
_ROUNDING: Final = 1e-9
"""30 episodes at a share of 0.1 are 3, not the 4 that floating point makes of it."""


def second_sample(plan: TrialPlan, plan_digest: str, share: float | None = None) -> frozenset[str]:
    """Base ids of the physical episodes that a second rater judges.

    The same share of every policy's episodes on every physical side, rounded up. Which ones
    depends on the plan alone. With the same digest, a larger share contains a smaller one.

    Args:
        plan: The locked plan.
        plan_digest: SHA-256 of the locked plan, which the draw depends on.
        share: Share in [0, 1]; that of the plan if not given.
    """
    share = plan.judging.second_share if share is None else share
    chosen: set[str] = set()
    if share <= 0.0:
        return frozenset()
    for side in plan.sides:
        if side is Side.SIM:
            continue
        planned = planned_ids(plan, side)
        by_policy: dict[int, list[str]] = {}
        for name, policy in zip(planned.base_ids, planned.policies, strict=True):
            by_policy.setdefault(policy, []).append(name)
        for own in by_policy.values():
            ranked = sorted(own, key=lambda name: drawn(plan_digest, "second", name))
            chosen.update(ranked[: math.ceil(share * len(ranked) - _ROUNDING)])
    return frozenset(chosen)


def drawn(plan_digest: str, purpose: str, name: str) -> str:
    """Hexadecimal digits that look random and depend on the plan and a name alone."""
    return hashlib.sha256(f"{plan_digest}:{purpose}:{name}".encode()).hexdigest()


def is_same_person(one: str | None, other: str | None) -> bool:
    """Whether two names are of one person: an operator is no second rater of an own episode.

    Example:
        >>> is_same_person(" Ada", "ada"), is_same_person("ada", None)
        (True, False)
    """
    if one is None or other is None:
        return False
    return one.strip().casefold() == other.strip().casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One episode as a second rater sees it: nothing of how it ended, nor of who played.

    Attributes:
        code: What it is called; does not tell the policy.
        episode_id: Its name in the log, which does.
        policy: Who played.
        side: Where.
        task: What was played.
        level: Novelty level; None without levels.
        difficulty: Difficulty; None without.
        seed: Seed; None if not known.
        trace: Path of the recording from the trial directory; None without one.
        operator: Who ran it; None if nobody is named.
    """

    code: str
    episode_id: str
    policy: str
    side: str
    task: str
    level: int | None
    difficulty: str | None
    seed: int | None
    trace: str | None
    operator: str | None

    @property
    def condition(self) -> str:
        """What was played, in words."""
        parts = [self.task]
        if self.level is not None:
            parts.append(f"level {self.level}")
        if self.difficulty is not None:
            parts.append(self.difficulty)
        if self.seed is not None:
            parts.append(f"seed {self.seed}")
        return ", ".join([*parts, self.side])

    def as_dict(self, *, blind: bool) -> dict[str, Any]:
        """The case as JSON would have it; without name and policy where the rater is blind."""
        found: dict[str, Any] = {
            "code": self.code,
            "side": self.side,
            "task": self.task,
            "level": self.level,
            "difficulty": self.difficulty,
            "seed": self.seed,
        }
        return found if blind else {**found, "episode_id": self.episode_id, "policy": self.policy}


class Cases:
    """The episodes of a trial that a second rater can judge, and those one is asked to.

    Args:
        plan: The locked plan.
        plan_digest: Its SHA-256.
        episodes: Rows of the log.
        every: Whether all physical episodes are asked for, not only the plan's sample.

    Raises:
        InputError: If none was played on a physical side, or the plan asks for none.
    """

    def __init__(
        self, plan: TrialPlan, plan_digest: str, episodes: Iterable[Episode], *, every: bool
    ) -> None:
        rows = [episode for episode in episodes if episode.side is not Side.SIM]
        self._unplayed = {row.episode_id: row for row in rows if not row.end_reason.is_final}
        played = [row for row in rows if row.end_reason.is_final]
        if not played:
            raise InputError(
                "nothing was played to an end on a robot or twin yet; a second rater judges"
                " physical episodes"
            )
        if not every and not plan.judging.second_share:
            raise InputError(
                "the plan's judging.second_share is 0, so no episode is to be judged again; --all"
                " asks for every physical episode"
            )
        codes = _codes(plan_digest, [base_id_of(row.episode_id, row.attempt) for row in played])
        cases = [_case(row, code) for row, code in zip(played, codes, strict=True)]
        sample = second_sample(plan, plan_digest)
        # By code, so that the order tells nothing of policies.
        self.all: Final = sorted(cases, key=lambda case: case.code)
        self._asked = {
            row.episode_id
            for row in played
            if every or base_id_of(row.episode_id, row.attempt) in sample
        }
        self._by_name = {case.code: case for case in cases}
        self._by_name |= {case.episode_id: case for case in cases}

    def due(self, ratings: Iterable[Rating], rater: str) -> tuple[Case, ...]:
        """What a rater is still to judge: nothing twice, and nothing that was the rater's own run.

        Args:
            ratings: What was judged so far.
            rater: Who judges.

        Raises:
            InputError: If the rater ran every episode there is to judge.
        """
        asked = [case for case in self.all if case.episode_id in self._asked]
        others = [case for case in asked if not is_same_person(case.operator, rater)]
        if asked and not others:
            raise InputError(
                f"{rater!r} ran every episode there is to judge; a second rater is another person"
            )
        done = judged_by(ratings, rater)
        return tuple(case for case in others if case.episode_id not in done)

    def own(self, rater: str) -> int:
        """How many of the asked episodes the rater ran, which are left to somebody else."""
        return sum(
            is_same_person(case.operator, rater)
            for case in self.all
            if case.episode_id in self._asked
        )

    def named(self, name: str, rater: str) -> Case:
        """The case of a code or episode id that a rater gives a verdict on.

        Raises:
            InputError: If there is none, it is not to be judged, or the rater ran it.
        """
        case = self._by_name.get(name) or self._by_name.get(name.upper())
        if case is None:
            row = self._unplayed.get(name)
            if row is not None:
                raise InputError(
                    f"episode {name!r} ended by {row.end_reason.value}: there is nothing to judge"
                )
            raise unknown_name("episode", name, [case.code for case in self.all])
        if case.episode_id not in self._asked:
            raise InputError(
                f"episode {name!r} is not in the plan's sample for a second rater; --all takes it"
            )
        if is_same_person(case.operator, rater):
            raise InputError(
                f"episode {name!r} was run by {case.operator!r}; a second rater is another person"
            )
        return case


def judged_by(ratings: Iterable[Rating], rater: str) -> Collection[str | None]:
    """Ids of the episodes a rater has judged."""
    return {rating.episode_id for rating in ratings if is_same_person(rating.rater, rater)}


def _case(row: Episode, code: str) -> Case:
    return Case(
        code=code,
        episode_id=row.episode_id,
        policy=row.policy,
        side=row.side.value,
        task=row.task,
        level=row.level,
        difficulty=row.difficulty,
        seed=row.seed,
        trace=row.trace_uri,
        operator=row.operator,
    )


def _codes(plan_digest: str, base_ids: Sequence[str]) -> list[str]:
    """A code for each episode, as short as keeps them apart, the same in every call.

    Codes of a trial that is under way stay what they are, but for a chance of one in thousands.
    """
    full = [drawn(plan_digest, "code", name).upper() for name in base_ids]
    n = _LEAST
    while n < len(full[0]) and len({text[:n] for text in full}) < len(set(full)):
        n += 1
    return [text[:n] for text in full]
