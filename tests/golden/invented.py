"""Invented trials whose two sides differ, so that a broken S2R, SS or E would be noticed.

Everything is drawn from `random.Random`, whose numbers no release of Python changes. All of them
have incidents, repairs and faults; what each adds is said beside its name.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from robo_eval.core.episode import Episode
from robo_eval.core.kinds import Arm, EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore

START_NS = 1_772_000_000 * 10**9
FAMILIES = ("stack", "drawer", "insert")
SKILL = {"careful": {"sim": 0.9, "body": 0.7}, "hasty": {"sim": 0.6, "body": 0.65}}
HARDER = {"stack": 0.1, "drawer": 0.0, "insert": -0.2}

PLAN = """
name: Invented, {name}
tasks:
  - {{env: Invented/Stack-v0, family: stack, success_quality: 0.75}}
  - {{env: Invented/Drawer-v0, family: drawer, success_quality: 0.75}}
  - {{env: Invented/Insert-v0, family: insert, success_quality: 0.75}}
policies:
  - {{name: careful, factory: "invented:policy"}}
  - {{name: hasty, factory: "invented:policy"}}
episodes: {episodes}
sides: [sim, {body}]
metrics:
  resamples: 400
  tolerances: {{"*": {{jerk_rms: 1.0, force_n: 12.0}}, insert: {{jerk_rms: 0.8}}}}
  control_weights: {{force_n: 2.0}}
  price_card: {{energy: 0.3, wear: 0.9, operator: 21.0, currency: EUR}}
  calibration: {calibration}
"""


class Lab:
    """Draws the episodes of one trial, one after the other."""

    def __init__(self, name: str, trial: TrialDirectory) -> None:
        self.draw = random.Random(name)
        self.trial = trial
        self.rows: list[Episode] = []
        self.now_ns = START_NS

    def succeeds(self, policy: str, where: str, family: str, shift: float = 0.0) -> bool:
        return self.draw.random() < SKILL[policy][where] + HARDER[family] + shift

    def episode(self, side: Side, policy: str, family: str, *, solved: bool, **more: Any) -> None:
        """One row; `more` is what this trial adds to it."""
        draw, number = self.draw, len(self.rows)
        is_body = side is not Side.SIM
        seconds = 3600.0 * (8.0 + 16.0 * draw.random())
        values: dict[str, Any] = {
            "episode_id": f"e{number:04d}",
            "plan_digest": self.trial.plan_digest,
            "side": side,
            "task": f"Invented/{family.capitalize()}-v0",
            "family": family,
            "policy": policy,
            "policy_digest": {"careful": "c", "hasty": "a"}[policy] * 64,
            "start_ns": self.now_ns,
            "duration_s": seconds,
            "exposure_s": seconds + 8.0 if is_body else 0.0,
            "ticks": int(seconds),
            "episode_return": None,
            "quality": 0.75 + 0.25 * draw.random() if solved else 0.7 * draw.random(),
            "success": solved,
            "end_reason": EndReason.SUCCESS if solved else EndReason.FAILURE,
            "uninterrupted_actions": int(seconds / 60.0),
            "plan_depth": 1 + draw.randrange(5),
            "stated_success_probability": min(max(draw.gauss(0.7 if solved else 0.5, 0.2), 0), 1),
            "control_quality": {
                "jerk_rms": 0.5 + draw.random(), "force_n": 6.0 + 9.0 * draw.random(),
            } if is_body else {},
            "costs": {"energy_j": 500.0 * seconds} if is_body else {},
            "robot": f"arm-{1 + number % 2}" if is_body else None,
            "operator": "A" if is_body else None,
            "software": "invented",
        }  # fmt: skip
        values |= more
        reason = EndReason(values["end_reason"])
        if not reason.is_scored:
            values |= {"quality": None, "success": None}
        elif reason is not EndReason.SUCCESS:
            values |= {"quality": min(values["quality"], 0.7), "success": False}
        self.now_ns += int((seconds + 45.0) * 1e9)
        self.rows.append(Episode(**values))

    def accident(self, chance: float = 0.08) -> dict[str, Any]:
        """How an episode on the body may end otherwise."""
        if self.draw.random() > chance:
            return {}
        reason = self.draw.choice(("fault", "lost", "safety_stop", "operator_stop", "no_verdict"))
        return {"end_reason": EndReason(reason), "interventions": int(reason == "operator_stop")}


def shared_seeds(lab: Lab) -> None:
    """Pairs of 12 seeds, each played by both policies in every family."""
    for seed in range(12):
        for family in FAMILIES:
            for policy in SKILL:
                pair = {"pair_id": f"{family}-{policy}-{seed}", "seed": seed, "level": 0}
                luck = 0.15 if seed % 3 else -0.3
                for side, where in ((Side.SIM, "sim"), (Side.REAL, "body")):
                    solved = lab.succeeds(policy, where, family, luck)
                    lab.episode(side, policy, family, solved=solved, **pair)


def own_seeds(lab: Lab) -> None:
    """Pairs with a seed each; some lose an episode, some simulated ones have no partner."""
    for i in range(40):
        for policy in SKILL:
            family = FAMILIES[i % 3]
            seed = 1000 + 2 * i + (policy == "hasty")
            shared = {"seed": seed, "level": i % 2, "difficulty": "easy", "profile": "paper"}
            pair = {"pair_id": f"p{seed}", **shared}
            is_open = lab.draw.random() < 0.1
            if not is_open:
                solved = lab.succeeds(policy, "body", family)
                lab.episode(Side.REAL, policy, family, solved=solved, **pair, **lab.accident())
            solved = lab.succeeds(policy, "sim", family)
            lab.episode(Side.SIM, policy, family, solved=solved, **pair)
            for extra in range(2):
                solved = lab.succeeds(policy, "sim", family)
                alone = {**shared, "seed": 5000 + 10 * seed + extra}
                lab.episode(Side.SIM, policy, family, solved=solved, **alone)


def twin(lab: Lab) -> None:
    """Pairs on a twin: numbers that are called AR_twin and S2S, and hours that gates leave out."""
    for i in range(30):
        for policy in SKILL:
            family = FAMILIES[i % 3]
            pair = {"pair_id": f"{policy}-{i}", "seed": i, "level": 0}
            for side, where in ((Side.SIM, "sim"), (Side.TWIN, "body")):
                solved = lab.succeeds(policy, where, family)
                extra = lab.accident() if side is Side.TWIN else {}
                lab.episode(side, policy, family, solved=solved, **pair, **extra)


def contexts(lab: Lab) -> None:
    """No pairs: simulation is weighted by the contexts met on the robot, one of them never met."""
    for i in range(36):
        for policy in SKILL:
            family = FAMILIES[(i * i) % 3]
            level = 2 if i == 35 else i % 2
            where: dict[str, Any] = {"level": level, "difficulty": "easy", "profile": "paper"}
            solved = lab.succeeds(policy, "body", family, -0.1 * level)
            lab.episode(Side.REAL, policy, family, solved=solved, **where, **lab.accident(0.05))
    for i in range(60):
        for policy in SKILL:
            family = FAMILIES[i % 3]
            where = {"level": (i // 3) % 2, "difficulty": "easy", "profile": "paper"}
            solved = lab.succeeds(policy, "sim", family, -0.05 * where["level"])
            lab.episode(Side.SIM, policy, family, solved=solved, seed=i, **where)


def calibrations(lab: Lab) -> None:
    """Each robot's episode simulated under three calibrations, one of them from two recordings."""
    kinds = {"nominal": 0.2, "identified/recording-1": 0.02, "identified/recording-2": -0.05}
    for i in range(30):
        for policy in SKILL:
            family = FAMILIES[i % 3]
            pair = {"pair_id": f"{policy}-{i}", "seed": i, "level": 0}
            solved = lab.succeeds(policy, "body", family)
            lab.episode(Side.REAL, policy, family, solved=solved, **pair)
            for kind, shift in kinds.items():
                solved = lab.succeeds(policy, "body", family, shift)
                lab.episode(Side.SIM, policy, family, solved=solved, calibration=kind, **pair)


def novelty(lab: Lab) -> None:
    """Episodes with novelty and their controls on both sides; now and then an attempt is void."""
    conditions = [("stack", level, hard) for level in (1, 2) for hard in ("easy", "hard")]
    for seed in range(14):
        for policy in SKILL:
            for side, where in ((Side.SIM, "sim"), (Side.REAL, "body")):
                control: dict[str, Any] = {}
                for family, level, difficulty in [*conditions, ("insert", 1, "easy")]:
                    shared = {"seed": seed, "profile": "paper"}
                    name = f"control-{family}-{policy}-{side.value}-{seed}"
                    if name not in control:
                        control[name] = lab.succeeds(policy, where, family)
                        lab.episode(
                            side, policy, family, solved=control[name], episode_id=name, level=0,
                            arm=Arm.CONTROL, **shared,
                        )  # fmt: skip
                    shift = -0.15 * level - 0.2 * (difficulty == "hard")
                    solved = lab.succeeds(policy, where, family, shift)
                    void: dict[str, Any] = {}
                    if side is Side.REAL and lab.draw.random() < 0.1:
                        detail = lab.draw.choice(
                            ("power_cut", "operator_error: a cable was caught")
                        )
                        void = {"end_reason": EndReason.VOID, "end_detail": detail}
                    lab.episode(
                        side, policy, family, solved=solved, control_id=name, level=level,
                        difficulty=difficulty, **shared, **void,
                    )  # fmt: skip


INVENTED: Mapping[str, tuple[Callable[[Lab], None], Side, int, str]] = {
    "shared_seeds": (shared_seeds, Side.REAL, 12, "null"),
    "own_seeds": (own_seeds, Side.REAL, 13, "null"),
    "twin": (twin, Side.TWIN, 10, "null"),
    "contexts": (contexts, Side.REAL, 12, "null"),
    "calibrations": (calibrations, Side.REAL, 10, "null"),
    "novelty": (novelty, Side.REAL, 35, "null"),
    "calibration_chosen": (calibrations, Side.REAL, 10, "identified"),
}
"""Name: who plays it, the physical side, planned episodes a cell, and the calibration chosen."""


def make(name: str, folder: Path) -> None:
    """Write one invented trial."""
    play, body, episodes, calibration = INVENTED[name]
    text = PLAN.format(
        name=name.replace("_", " "), episodes=episodes, body=body.value, calibration=calibration
    )
    trial = TrialDirectory.create(folder, parse_plan(text, source="invented plan"))
    lab = Lab(name, trial)
    play(lab)
    with EpisodeStore(folder, durable=False) as store:
        store.append(lab.rows)
        trial.write_manifest(status="complete", store=store)
    for kind, lines in evidence(lab, body):
        with (folder / f"{kind}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, lines[0])
            writer.writeheader()
            writer.writerows(lines)


def evidence(lab: Lab, body: Side) -> Iterator[tuple[str, Sequence[Mapping[str, object]]]]:
    """Incidents, faults, repairs and second ratings of episodes on the body."""
    own = [row for row in lab.rows if row.side is body]
    draw = lab.draw
    yield "incidents", [
        {"incident_id": f"i{i}", "severity": severity, "episode_id": row.episode_id,
         "side": body.value, "policy": row.policy}
        for i, severity in enumerate(("near_miss", "near_miss", "minor"))
        for row in [draw.choice(own)]
    ]  # fmt: skip
    yield "faults", [
        {"episode_id": row.episode_id, "side": body.value, "policy": row.policy,
         "fault": ("grasp_slip", "occlusion", "network_delay")[i % 3],
         "recovered": str(draw.random() < 0.7).lower(),
         "recovered_by": "operator" if i % 9 == 4 else "robot",
         "recoverable": str(i % 7 != 3).lower(), "injected": str(i % 2 == 0).lower()}
        for i in range(30)
        for row in [draw.choice(own)]
    ]  # fmt: skip
    yield (
        "repairs",
        [
            {"side": body.value, "policy": policy, "hours": f"{0.2 + draw.random():.3f}"}
            for policy in SKILL
            for _ in range(3)
        ],
    )
    scored = [row for row in own if row.success is not None]
    yield "ratings", [
        {"episode_id": row.episode_id, "rater": "B", "blind": str(i % 2 == 0).lower(),
         "success": str(row.success if draw.random() < 0.9 else not row.success).lower()}
        for i, row in enumerate(draw.sample(scored, 15))
    ]  # fmt: skip
