"""One attempt from reset to end: the row every number downstream is computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any, Final

from robo_eval.core.kinds import Arm, EndReason, FaultBy, Side

SCHEMA_VERSION = 4

COUNT_LIMIT: Final = 2**53
"""Counts are less: from here on a float, as which statistics take them, skips whole numbers."""

LONGEST_S: Final = 1e12
"""No episode is longer (30,000 years), so that durations can be added up."""


def _column(doc: str, *, unit: str = "", **limits: float) -> dict[str, Any]:
    return {"doc": doc, "unit": unit, **limits}


def _count(doc: str, **least: float) -> dict[str, Any]:
    return {**_column(doc, most=COUNT_LIMIT - 1), **least}


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One row of the episode log.

    The metadata of each field documents its column: meaning, unit, least and greatest number. The
    log checks them, and what columns must say together, where rows are written and read.
    """

    episode_id: str = field(metadata=_column("unique in its trial directory"))
    attempt: int = field(
        default=1, metadata=_count("1, or more after a void or lost attempt", least=0)
    )
    pair_id: str | None = field(
        default=None, metadata=_column("shared by a physical-side and a sim episode")
    )
    arm: Arm = field(default=Arm.MAIN, metadata=_column("main, or the matched control"))
    control_id: str | None = field(
        default=None, metadata=_column("episode_id of the matched episode without novelty")
    )
    plan_digest: str = field(metadata=_column("SHA-256 of the locked plan"))
    side: Side = field(metadata=_column("sim, twin or real"))
    task: str = field(metadata=_column("Gymnasium id of the environment"))
    family: str = field(default="", metadata=_column("task family metrics are grouped by"))
    level: int | None = field(default=None, metadata=_count("novelty level, 0 is none", least=0))
    difficulty: str | None = field(default=None, metadata=_column("easy, medium or hard"))
    profile: str | None = field(default=None, metadata=_column("paper or compat"))
    drift_step: int | None = field(default=None, metadata=_count("step of the drift calendar"))
    seed: int | None = field(default=None, metadata=_column("seed given to reset"))
    policy: str = field(metadata=_column("name of the policy"))
    policy_digest: str = field(metadata=_column("SHA-256 of what defines the policy"))
    robot: str | None = field(default=None, metadata=_column("robot id; none for a simulator"))
    calibration: str | None = field(default=None, metadata=_column("what it was simulated with"))
    # Only an import can lack the next four: a 0 of ours was measured.
    start_ns: int | None = field(
        metadata=_column("start of the episode, UTC; none if not known", unit="ns")
    )
    duration_s: float | None = field(
        metadata=_column(
            "length in task time; none if not known", unit="s", least=0.0, most=LONGEST_S
        )
    )
    exposure_s: float | None = field(
        default=0.0,
        metadata=_column(
            "time a physical robot was exposed; 0 in sim, none if not known",
            unit="s",
            least=0.0,
            most=LONGEST_S,
        ),
    )
    ticks: int | None = field(
        metadata=_count("control ticks the policy acted in; none if not known", least=0)
    )
    episode_return: float | None = field(metadata=_column("sum of rewards"))
    quality: float | None = field(
        metadata=_column("score in [0, 1]; none if not scored", least=0.0, most=1.0)
    )
    success: bool | None = field(metadata=_column("strict success; none if not scored"))
    score_version: int = field(default=1, metadata=_count("version of the scoring code", least=0))
    end_reason: EndReason = field(metadata=_column("why it ended"))
    end_detail: str | None = field(
        default=None, metadata=_column("error text, void reason or what was exceeded")
    )
    fault_by: FaultBy | None = field(
        default=None, metadata=_column("who a fault was by: policy, setup or time")
    )
    void_by: str | None = field(default=None, metadata=_column("who declared it void"))
    recovered: bool = field(default=False, metadata=_column("rebuilt after a crash"))
    interventions: int = field(default=0, metadata=_count("human interventions", least=0))
    uninterrupted_actions: int | None = field(
        default=None, metadata=_count("longest run of actions without intervention")
    )
    plan_depth: int | None = field(default=None, metadata=_count("stages of a multi-stage task"))
    stated_success_probability: float | None = field(
        default=None, metadata=_column("the policy's own forecast in [0, 1]", least=0.0, most=1.0)
    )
    control_quality: Mapping[str, float] = field(
        default_factory=dict, metadata=_column("measures such as jerk_rms, unit in the name")
    )
    costs: Mapping[str, float] = field(
        default_factory=dict, metadata=_column("energy and cost items, unit in the name")
    )
    novelty: Mapping[str, Any] = field(
        default_factory=dict, metadata=_column("name and drawn parameters of the novelty")
    )
    initial_state: Mapping[str, Any] = field(
        default_factory=dict, metadata=_column("state the episode started in")
    )
    initial_state_source: str = field(
        default="seed", metadata=_column("seed, state, topic, fixture, operator or unknown")
    )
    operator: str | None = field(default=None, metadata=_column("who ran it; none if automatic"))
    task_version: str | None = field(
        default=None, metadata=_column("version its task declares; none if it declares none")
    )
    behaviour: str | None = field(
        default=None,
        metadata=_column("SHA-256 of how the level behaves in short seeded episodes"),
    )
    engine: str | None = field(
        default=None, metadata=_column("name and version of the physics engine")
    )
    numerics: str | None = field(
        default=None, metadata=_column("name and version of the library of numbers")
    )
    software: str = field(metadata=_column("robo-eval version and git revision"))
    trace_uri: str | None = field(
        default=None, metadata=_column("trace file, relative to the trial directory")
    )
    trace_sha256: str | None = field(default=None, metadata=_column("SHA-256 of the trace"))


def is_below(uri: str) -> bool:
    """Whether a relative path can only lead to what lies below a folder."""
    return not (uri.startswith("/") or "\0" in uri or ".." in uri.split("/"))


QUALITY_DECIMALS: Final = 9
"""Decimals quality is rounded to.

Adding n rewards of one sign in floating point errs by less than n / 2**53 of the sum, so the
ninth decimal is safe from rounding noise up to four million ticks, and 200 times 1/200, which
adds up to 1.0000000000000007, is exactly 1.0. No measurement resolves a billionth of its range.
"""


def never_began(novelty: object, ticks: object) -> bool:
    """Whether an episode ended before the onset of its novelty."""
    onset = novelty.get("onset") if isinstance(novelty, Mapping) else None
    return type(onset) is int and isinstance(ticks, Real) and onset >= ticks


def is_good_enough(quality: float, success_quality: float) -> bool:
    """Whether a quality reaches the threshold, rounding noise apart."""
    return quality >= success_quality - 10.0**-QUALITY_DECIMALS


COLUMNS: tuple[str, ...] = tuple(column.name for column in fields(Episode))
"""Column names of an episode row, in the order tables and CSV files show them."""
