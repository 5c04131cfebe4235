"""How policies did on a robot, or a twin of it, beside what simulation had told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from robo_eval.core.kinds import Side
from robo_eval.metrics.agreement import Agreement
from robo_eval.metrics.robot import RobotResult
from robo_eval.metrics.summary import TrialSummary
from robo_eval.report.model import Robot, RobotNumber
from robo_eval.report.words import count, interval_text, number


def robots_of(summary: TrialSummary, name_of: Callable[[str, str], str]) -> list[Robot]:
    """Each policy on each physical side; none for a trial in simulation only.

    Args:
        summary: Metrics of the trial.
        name_of: Name shown of a policy, from its side and its own name.
    """
    return [_robot(found, name_of(found.side, found.policy)) for found in summary.robots]


def _robot(found: RobotResult, policy: str) -> Robot:
    own = RobotNumber(
        name=found.name,
        estimate=found.reliability,
        rests_on=count(found.reliability.n, "episode"),
        note=_caution(found.reliability.low, found.reliability.reason),
        is_physical=True,
    )
    is_twin = found.side == Side.TWIN.value
    if found.agreement is None:
        why = "The policy has no simulated episode: there is nothing to compare with."
        return Robot(policy=policy, is_twin=is_twin, numbers=[own], why_no_agreement=why)
    return Robot(
        policy=policy,
        is_twin=is_twin,
        numbers=[own, *_compared(found, found.agreement)],
        worst=_worst_text(found.agreement),
    )


def _compared(found: RobotResult, agreement: Agreement) -> list[RobotNumber]:
    """The numbers of the comparison: both shares, their difference, and the agreement."""
    by_pairs = agreement.matching == "pairs"
    noun = "pair" if by_pairs else "episode"
    numbers = []
    if agreement.ar_physical.value not in (None, found.reliability.value):
        # Not all episodes could be compared: the agreement rests on this share, not the one above.
        of = "of the pairs" if by_pairs else "in simulated contexts"
        numbers.append(
            RobotNumber(
                name=f"{found.name} {of}",
                estimate=agreement.ar_physical,
                rests_on=count(agreement.ar_physical.n, noun),
                note=_caution(agreement.ar_physical.low, agreement.ar_physical.reason),
                is_physical=True,
            )
        )
    numbers += [
        RobotNumber(
            name="AR_sim",
            estimate=agreement.ar_sim,
            rests_on=count(agreement.ar_sim.n, "episode"),
            note=_caution(agreement.ar_sim.low, agreement.ar_sim.reason),
            is_simulated=True,
        ),
        RobotNumber(
            name=f"{found.name} − AR_sim",
            estimate=agreement.difference,
            rests_on=count(agreement.difference.n, noun),
            note=_difference_note(agreement),
            is_share=False,
        ),
        RobotNumber(
            name=agreement.name,
            estimate=agreement.agreement,
            rests_on=count(agreement.agreement.n, noun),
            note=_agreement_note(agreement),
        ),
    ]
    if len(agreement.families) > 1:
        numbers += [
            RobotNumber(
                name=agreement.name,
                family=family,
                estimate=estimate,
                rests_on=count(estimate.n, noun),
                note=_caution(estimate.low, estimate.reason),
                is_worst=family == agreement.worst_family,
            )
            for family, estimate in agreement.families.items()
        ]
    return numbers


def _caution(low: float | None, reason: str | None) -> str:
    """What to mind of a number that has an interval; why one has none stands in its place."""
    return reason or "" if low is not None else ""


def _difference_note(agreement: Agreement) -> str:
    parts = [_caution(agreement.difference.low, agreement.difference.reason)]
    if agreement.p_value is not None:
        p = number(agreement.p_value, digits=3)
        parts.append(f"exact McNemar p {'< 0.001' if p == '0.000' else f'= {p}'}")
    return "; ".join(part for part in parts if part)


def _agreement_note(agreement: Agreement) -> str:
    parts = [_caution(agreement.agreement.low, agreement.agreement.reason)]
    if agreement.matching == "contexts":
        parts.append("no pairs: simulated success in the mixture of contexts met physically")
    elif agreement.n_unpaired:
        left = count(agreement.n_unpaired, "physical episode")
        parts.append(f"{left} without a scored partner left out")
    if agreement.matching == "contexts" and agreement.uncovered_mass:
        parts.append(f"{number(100 * agreement.uncovered_mass, digits=0)} % not simulated")
    return "; ".join(part for part in parts if part)


def _worst_text(agreement: Agreement) -> str:
    if agreement.worst_family is None:
        return ""
    worst = agreement.families[agreement.worst_family]
    return (
        f"Simulation and {'robot' if agreement.name == 'S2R' else 'twin'} agree least in"
        f" {agreement.worst_family}: {agreement.name} {interval_text(worst)}."
    )


def robots_title(robots: Sequence[Robot]) -> str:
    """What the section is called: a twin is not the robot."""
    return "On the robot" if any(not robot.is_twin for robot in robots) else "On the robot's twin"


def robots_text(robots: Sequence[Robot]) -> list[str]:
    """What the numbers of the section are, in the names that are used in it."""
    kinds = []
    if any(not robot.is_twin for robot in robots):
        kinds.append(("AR", "on the robot", "S2R"))
    if any(robot.is_twin for robot in robots):
        kinds.append(("AR_twin", "on the twin", "S2S"))
    is_compared = any(len(robot.numbers) > 1 for robot in robots)
    shares = "; ".join(f"{name}: {where}" for name, where, _ in kinds)
    text = f"Share of scored episodes that are strict successes. {shares}"
    if is_compared:
        text += "; AR_sim: of the simulated episodes it is compared with (hollow). "
        text += " ".join(
            f"{name} (diamond) is their agreement, 1 minus the distance of {own} and AR_sim."
            for own, _, name in kinds
        )
    else:
        text += "."
    if any(robot.is_twin for robot in robots):
        return [
            text,
            "AR_twin and S2S come from a twin, a stand-in for the robot: they are no AR and S2R.",
        ]
    return [text]
