"""What the person at a robot sees instead of the policies' names in a blind trial."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from robo_eval.core.plan import TrialPlan

_EPISODE: Final = re.compile(
    r"(?P<head>(?:control-)?t\d+-(?:l\d+-)?(?:(?:easy|medium|hard)-)?)"
    r"(?P<policy>.+)(?P<tail>-s\d+(?:-(?:sim|twin|real))?(?:-a\d+)?)"
)
"""An episode id or pair id, see `core.schedule`."""


@dataclass(frozen=True, slots=True)
class Blinding:
    """How policies are called while a trial runs.

    Attributes:
        codes: Code of each policy by its name; empty if the trial is not blind.
    """

    codes: Mapping[str, str]

    def policy(self, name: str) -> str:
        """The code of a policy, or its name if the trial is not blind."""
        return self.codes.get(name, name)

    def episode(self, episode_id: str) -> str:
        """An episode or pair id with the code in place of the name.

        Example:
            >>> Blinding({"balancer": "B"}).episode("t0-l09-easy-balancer-s1000-twin-a2")
            't0-l09-easy-B-s1000-twin-a2'
        """
        found = _EPISODE.fullmatch(episode_id)
        if not self.codes or found is None:
            return episode_id
        return f"{found['head']}{self.policy(found['policy'])}{found['tail']}"

    def text(self, text: str) -> str:
        """A message with codes in place of all names that stand in it.

        Example:
            >>> Blinding({"mine": "B"}).text("traces/t0-mine-s1: a mine, determined")
            'traces/t0-B-s1: a B, determined'
        """
        # The longest first: one name may be the beginning of another.
        names = sorted(self.codes, key=len, reverse=True)
        if not names:
            return text
        either = "|".join(re.escape(name) for name in names)
        return re.sub(rf"(?<!\w)(?:{either})(?!\w)", lambda hit: self.codes[hit[0]], text)


def blinding_of(plan: TrialPlan, plan_digest: str) -> Blinding:
    """The codes of a plan, if it is blind: A, B, ... in an order that says nothing.

    Drawn from `order_seed` and the digest of the locked plan, so that they are the same when a
    run goes on, and other ones in the next trial.
    """
    if not plan.blind:
        return Blinding({})
    names = [policy.name for policy in plan.policies]
    drawn = random.Random(f"blind:{plan.order_seed}:{plan_digest}")  # noqa: S311 - no secret
    drawn.shuffle(names)
    return Blinding(dict(zip(names, _codes(len(names)), strict=True)))


def _codes(count: int) -> Iterable[str]:
    letters = string.ascii_uppercase
    return (letters[i % 26] + (str(i // 26) if i >= 26 else "") for i in range(count))
