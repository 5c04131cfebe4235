"""How each policy did on a body, and how well simulation had told."""

from __future__ import annotations

from dataclasses import dataclass

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.metrics.agreement import Agreement, compare_rows
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.reliability import NAMES, reliability_of_rows, reliability_of_tasks
from robo_eval.metrics.tables import Rows

PHYSICAL = (Side.REAL.value, Side.TWIN.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotResult:
    """One policy on one physical side.

    Attributes:
        policy: Name.
        side: `real`, or `twin` for a stand-in behind ROS.
        name: What its reliability is called: `AR` for a robot, `AR_twin` for a twin.
        reliability: Share of strict successes, with the interval that suits its tasks.
        reliability_exact: The same with the exact interval, for gates.
        tasks: The same by task, with Wilson's interval.
        agreement: How simulation compares; None if the policy has no simulated episode.
    """

    policy: str
    side: str
    name: str
    reliability: Estimate
    reliability_exact: Estimate
    tasks: dict[str, Estimate]
    agreement: Agreement | None

    def as_dict(self) -> dict[str, object]:
        """The result as JSON would have it."""
        return {
            "policy": self.policy,
            "side": self.side,
            "name": self.name,
            "reliability": self.reliability.as_dict(),
            "reliability_exact": self.reliability_exact.as_dict(),
            "tasks": {task: found.as_dict() for task, found in self.tasks.items()},
            "agreement": None if self.agreement is None else self.agreement.as_dict(),
        }


def robots_of(rows: Rows, config: MetricConfig) -> tuple[RobotResult, ...]:
    """Each policy on each physical side it was played on; none for a trial in simulation only.

    Args:
        rows: Rows of `main_rows`.
        config: Settings of the intervals.

    Raises:
        InputError: If the episodes of a pair differ in what they must share.
    """
    found = []
    for side in PHYSICAL:
        for policy in dict.fromkeys(rows["policy"][rows["side"] == side]):
            own = rows.take(rows["policy"] == policy)
            physical = own.take(own["side"] == side)
            is_simulated = bool((own["side"] == Side.SIM.value).any())
            found.append(
                RobotResult(
                    policy=str(policy),
                    side=side,
                    name=NAMES[side],
                    reliability=reliability_of_rows(physical, config),
                    reliability_exact=reliability_of_rows(physical, config, "exact"),
                    tasks=reliability_of_tasks(physical, config),
                    agreement=compare_rows(own, side, config) if is_simulated else None,
                )
            )
    return tuple(found)
