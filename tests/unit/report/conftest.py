"""Reports made of invented numbers, to test how they are shown; no test reads a result off them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from robo_eval.analysis.acc import isometrics
from robo_eval.analysis.trial import analyse_trial
from robo_eval.core.estimate import Estimate
from robo_eval.core.trajectory import Trajectory
from robo_eval.log.importer import import_csv
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.coverage import Coverage
from robo_eval.metrics.performance import Cell as CellNumbers
from robo_eval.metrics.performance import PolicyResult, success_estimate
from robo_eval.page.table import Group, Row
from robo_eval.report.animation import pack
from robo_eval.report.build import read_trial
from robo_eval.report.content import make_report as report_of_trial
from robo_eval.report.model import (
    AgentCurve,
    Characteristic,
    ConditionCell,
    EndCounts,
    Lengths,
    LogCheck,
    Report,
    Result,
    TrialAnswer,
)


def share(value: float, n: int, method: str = "wilson") -> Estimate:
    low, high = max(0.0, value - 0.1), min(1.0, value + 0.1)
    return Estimate(value=value, low=low, high=high, n=n, method=method, unit="ratio")


def coverage(scored: int, expected: int) -> Coverage:
    return Coverage(
        scored=scored,
        attempted=expected,
        planned=expected,
        attempts=expected,
        voids=0,
        missing={"fault": expected - scored} if scored < expected else {},
    )


def result(n_success: int, scored: int, expected: int) -> PolicyResult:
    exact = success_estimate(n_success, scored, exact=True)
    wilson = success_estimate(n_success, scored, exact=False)
    quality = share(0.7, scored, "bootstrap")
    return PolicyResult(
        side="sim",
        policy="policy",
        policy_digests=("0" * 64,),
        n_conditions=8,
        coverage=coverage(scored, expected),
        n_success=n_success,
        performance=quality,
        performance_elsewhere=quality,
        success=wilson,
        success_exact=exact,
        success_with_voids=wilson,
        performance_bounds=None,
        success_bounds=None,
    )


def cell(value: float, n_success: int, scored: int = 5) -> CellNumbers:
    return CellNumbers(
        side="sim",
        task="RoboEval/CartPole3D-v0",
        family="balancing",
        profile="paper",
        level=1,
        difficulty="easy",
        policy="policy",
        coverage=coverage(scored, 5),
        n_success=n_success,
        performance=share(value, scored, "bootstrap"),
        success=success_estimate(n_success, scored, exact=False),
        success_exact=success_estimate(n_success, scored, exact=True),
        performance_bounds=None,
        success_bounds=None,
    )


@pytest.fixture
def trajectory() -> Callable[..., Trajectory]:
    """A cart that circles under a swaying pole with two balls, one of which appears late."""

    def make(ticks: int = 120) -> Trajectory:
        time_s = np.arange(ticks) * 0.02
        pose = np.zeros((ticks, 4, 7))
        pose[..., 6] = 1.0
        pose[:, 0, 0], pose[:, 0, 1] = np.sin(time_s), np.cos(time_s)
        angle = 0.1 * np.sin(5 * time_s)
        pose[:, 1, :3] = pose[:, 0, :3] + [0.0, 0.0, 0.2]
        pose[:, 1, 3], pose[:, 1, 6] = np.sin(angle / 2), np.cos(angle / 2)
        pose[:, 2, :3] = np.stack([time_s - 3, 2 - time_s, 3 - 0.5 * time_s], axis=1)
        pose[: ticks // 2, 3] = np.nan
        pose[ticks // 2 :, 3, 2] = 1.0
        return Trajectory(
            stamp_ns=(time_s * 1e9).astype(np.int64),
            joint_names=(),
            joint_position=np.zeros((ticks, 0)),
            joint_velocity=np.zeros((ticks, 0)),
            frames=("cart", "pole", "ball_00", "ball_01"),
            pose_world_frame=pose,
            actions=np.arange(ticks - 1, dtype=float)[:, None] % 5,
            rewards=np.full(ticks - 1, 1 / 200),
            observations=np.zeros((ticks, 3)),
            robot_description="",
        )

    return make


@pytest.fixture
def make_result() -> Callable[..., PolicyResult]:
    """The numbers of a policy, from its successes, its scored and its planned episodes."""
    return result


@pytest.fixture
def make_report(trajectory: Callable[..., Trajectory]) -> Callable[..., Report]:
    """A report about policies of the given names."""

    def make(
        policies: tuple[str, ...] = ("steady", "shaky"),
        *,
        scored: int = 40,
        title: str = "Title",
        levels: int = 4,
        log: LogCheck | None = None,
    ) -> Report:
        difficulties = ("easy", "hard")
        cells = [
            ConditionCell(
                policy=policy,
                panel=difficulty,
                column=str(level),
                column_name=f"level {level} name",
                numbers=cell(0.9 / (index + 1), 4 // (index + 1)),
            )
            for index, policy in enumerate(policies)
            for level in range(levels)
            for difficulty in difficulties
        ]
        return Report(
            title=title,
            description="What is shown here was made up by a test.",
            status="complete",
            synopsis="a synopsis",
            results=[
                Result(policy=policy, numbers=result(scored // 2, scored, 40))
                for policy in policies
            ],
            answers=[TrialAnswer(question="Who?", text="A verdict.", numbers="A number.")],
            warnings=["A warning."],
            tally=f"{scored} of 40 scored.",
            log=log,
            coverage=coverage(scored * len(policies), 40 * len(policies)),
            outcomes=[
                EndCounts(
                    policy=policy,
                    succeeded=scored // 2,
                    failed={"failure": scored - scored // 2 - 1, "safety stop": 1},
                    missing={"fault": 40 - scored} if scored < 40 else {},
                )
                for policy in policies
            ],
            cells=cells,
            effects=[
                Group(
                    title=policy,
                    rows=[
                        Row(
                            name=f"{level} hard",
                            estimate=Estimate(
                                value=-0.1 * level, low=-0.1 * level - 0.08,
                                high=-0.1 * level + 0.08,
                                n=5, method="bootstrap", unit="difference",
                            ),
                            rests_on="15 pairs, 5 of them independent",
                            note="lower",
                        )
                        for level in range(1, levels)
                    ],
                )
                for policy in policies
            ],
            lengths=[
                Lengths(
                    policy=policy,
                    time_s=[0.0, 1.0, 4.0],
                    unfailed=[1.0, 0.75, 0.5],
                    ranges=[None, (0.6, 0.85), (0.35, 0.65)],
                    median_s=Estimate(
                        value=3.5, low=2.5, high=4.0, n=scored, method="sign_test", unit="s"
                    ),
                    never_failed=share(0.5, scored),
                    n=scored,
                )
                for policy in policies
            ],
            characteristic=Characteristic(
                curves=[
                    AgentCurve(
                        policy=policy,
                        difficulty=[0.1, 0.4, 0.8],
                        response=[1.0, 0.7, 0.2],
                        capability=share(0.5, 40),
                        spread=share(0.2, 40),
                        generality=share(0.4, 40),
                        flag="unreliable: 5 of 20 episodes per difficulty",
                    )
                    for policy in policies
                ],
                isometrics=isometrics(0.1, 0.8),
                source="Difficulties were made up.",
            ),
            clips=[
                pack(
                    trajectory(ticks),
                    key=f"clip{ticks}",
                    label=f"episode of {ticks} ticks",
                    caption=f"{policies[0]} for {ticks} ticks",
                    task="RoboEval/CartPole3D-v0",
                )
                for ticks in (120, 60)
            ],
            conditions=[("plan", "made up")],
            provenance=[("digest", "0" * 64)],
            commands=[("Run it again", "robo-eval run plan.yaml --out again")],
            plan_text="version: 1\n",
        )  # fmt: skip

    return make


LAB_MAP = """
columns:
  episode_id: trial
  side: where
  success: ok
  end_reason: end
  end_detail: why
  pair_id: pair
  policy: who
  task: kind
  level: level
  exposure_s: {column: seconds, unit: s}
  control_quality.error_mm: error
"""
EVIDENCE = {
    "incidents": [
        "incident_id,severity,episode_id",
        "i1,near_miss,p-ours-pick-0-0",
        "i2,near_miss,p-ours-pick-0-1",
        "i3,minor,p-theirs-pick-0-0",
    ],
    "faults": [
        "fault,recovered,recovered_by,episode_id",
        "grasp_slip,yes,robot,p-ours-pick-0-0",
        "grasp_slip,yes,robot,p-ours-pick-0-1",
        "grasp_slip,yes,operator,p-ours-pick-0-2",
        "lost_view,no,robot,p-ours-pick-0-3",
    ],
    "ratings": [
        "episode_id,rater,success,blind",
        *(f"p-ours-pick-0-{i},second,{int(i != 4)},yes" for i in range(6)),
    ],
}
SETTINGS = MetricConfig(
    resamples=200,
    tolerances={"pick": {"error_mm": 5.0}},
    price_card={"energy": 2.0, "operator": 18.0},
    currency="EUR",
)


class Lab:
    """Imports a trial of a robot with evidence beside it, and reports on it."""

    evidence = EVIDENCE
    settings = SETTINGS

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[str, Report] = {}

    @staticmethod
    def lines(side: str = "real") -> list[str]:
        """Two policies, two tasks, levels 0 and 3, eight pairs each; four attempts are void.

        An episode takes 225 s, so that 16 of them are an hour. Of the measured errors of `pick` the
        greatest is four times its tolerance.
        """
        lines = ["trial,where,ok,end,why,pair,who,kind,level,seconds,error"]
        for who, least in (("ours", 1), ("theirs", 4)):
            for kind in ("pick", "place"):
                for level in (0, 3):
                    for i in range(8):
                        key = f"{who}-{kind}-{level}-{i}"
                        real, sim = int(i >= least + (level > 0)), int(i >= least)
                        error = 20.0 if i == 7 else 1.0 + i
                        error_cell = f"{error}" if kind == "pick" else ""
                        end = f"{real},{'success' if real else 'failure'},"
                        if who == "ours" and kind == "place" and i > 5:
                            end = ",void,power cut"
                        tail = f"{key},{who},{kind},{level}"
                        lines.append(f"p-{key},{side},{end},{tail},225,{error_cell}")
                        end = f"{sim},{'success' if sim else 'failure'},"
                        lines.append(f"s-{key},sim,{end},{tail},,")
        return lines

    def report(
        self,
        side: str = "real",
        *,
        lines: list[str] | None = None,
        map_end: str = "",
        evidence: dict[str, list[str]] | None = None,
        config: MetricConfig = SETTINGS,
    ) -> Report:
        """The report of the trial, or of one with other lines, evidence or settings."""
        key = repr((side, lines, map_end, evidence, config))
        if key not in self.made:
            self.made[key] = self._make(lines or self.lines(side), map_end, evidence, config)
        return self.made[key]

    def _make(
        self,
        lines: list[str],
        map_end: str,
        evidence: dict[str, list[str]] | None,
        config: MetricConfig,
    ) -> Report:
        self.folder.mkdir(exist_ok=True)
        table, column_map = self.folder / "lab.csv", self.folder / "map.yaml"
        table.write_text("\n".join(lines) + "\n", encoding="utf-8")
        column_map.write_text(LAB_MAP + map_end, encoding="utf-8")
        number = len(list(self.folder.glob("trial*")))
        trial = import_csv(table, column_map, self.folder / f"trial{number}")
        for name, rows in (EVIDENCE if evidence is None else evidence).items():
            text = "\n".join(rows) + "\n"
            (trial.path / f"{name}.csv").write_text(text, encoding="utf-8")
        return report_of_trial(read_trial(trial), analyse_trial(trial, config=config))


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A laboratory with a robot; what it made once is not made again."""
    return Lab(tmp_path_factory.mktemp("lab"))
