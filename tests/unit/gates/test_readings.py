"""From episodes and what was noted beside them to what gates read, up to a level."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pytest

from robo_eval.gates import Audit, Readings, assess, load_profile
from robo_eval.gates.evidence import readings_of
from robo_eval.gates.profile import AUDITS
from robo_eval.log.evidence import (
    Anchor,
    Checkpoint,
    Evidence,
    Expert,
    Fault,
    Incident,
    Probe,
    ToolTrial,
    ToolUse,
)
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.summary import summarise

QUICK = MetricConfig(resamples=500, tolerances={"*": {"jerk_rms": 1.0}})
ROBOTICS = load_profile("robotics")
HOUR_NS = 3600 * 10**9
START = datetime(2026, 3, 1, 18, tzinfo=UTC)


def episodes(outcomes: Sequence[int], *, side: str = "real", **columns: Any) -> pd.DataFrame:
    n = len(outcomes)
    physical = side != "sim"
    table = {
        "episode_id": [f"{side}-{i}" for i in range(n)],
        "side": side, "task": "pick", "policy": "arm",
        "quality": [float(ok) for ok in outcomes],
        "success": [bool(ok) for ok in outcomes],
        "end_reason": ["success" if ok else "failure" for ok in outcomes],
        "seed": list(range(n)), "pair_id": [f"arm-{i}" for i in range(n)],
        "start_ns": [i * HOUR_NS for i in range(n)],
        "duration_s": 3600.0, "exposure_s": 3600.0 if physical else 0.0,
        "uninterrupted_actions": 60,
        "control_quality": [{"jerk_rms": 1.1 + 0.1 * (i % 3)} for i in range(n)],
        **columns,
    }  # fmt: skip
    return pd.DataFrame(table)


def matched(side: str = "real", n: int = 2300, **columns: Any) -> pd.DataFrame:
    """Nine of ten succeed on both sides, in three task families, for so many hours."""
    columns = {"family": [("pick", "place", "drawer")[i // 10 % 3] for i in range(n)], **columns}
    outcomes = [int(i % 10 > 0) for i in range(n)]
    return pd.concat(
        [episodes(outcomes, side=side, **columns), episodes(outcomes, side="sim", **columns)],
        ignore_index=True,
    )


def checkpoints(days: int = 10, **changed: Any) -> tuple[Checkpoint, ...]:
    """A policy that becomes better each day, through every drift."""
    drifts = {2: "payload", 4: "friction", 5: "lighting", 7: "firmware"}
    return tuple(
        Checkpoint(**{
            "line": day + 2,
            "time_ns": int((START + timedelta(days=day)).timestamp()) * 10**9,
            "family": "pick", "capability": 0.6 + 0.02 * day, "resources": 2.0 * day,
            "drift": drifts.get(day, ""), **changed,
        })
        for day in range(days)
    )  # fmt: skip


def evidence(side: str = "real", **changed: Any) -> Evidence:
    noted: dict[str, Any] = {
        "incidents": (),
        "faults": tuple(
            Fault(line=i, fault="grasp_slip", recovered=i % 8 > 0, side=side, policy="arm")
            for i in range(80)
        ),
        "checkpoints": checkpoints(14),
    }
    return Evidence(**{**noted, **changed})


def read(table: pd.DataFrame, noted: Evidence | None) -> Readings:
    frame = episodes_frame(table)
    summary = summarise(frame, config=QUICK, evidence=noted)
    audits = {"arm": tuple(Audit(id=name, title=name, status="pass", reason="") for name in AUDITS)}
    (found,) = readings_of(summary, frame, ROBOTICS, evidence=noted, audits=audits)
    return found


def test_a_robot_with_all_its_evidence_is_at_level_2():
    found = assess(read(matched(), evidence()))
    assert [gate.id for gate in found.at(2) if gate.status != "pass"] == []
    assert (found.level_conservative, found.evidence_tag) == (2, "real")
    missing = {name for one in found.missing[3] for name in one.gates}
    assert found.at(2)[4].found.low == pytest.approx(1 - 1.11 * 100 * 2.995732274 / 2300)  # SS
    assert {"ar_families", "kappa", "expansion", "sociality"} <= missing
    json.dumps(found.as_dict(), allow_nan=False)


def test_each_piece_of_evidence_is_needed():
    for name in ("incidents", "faults", "checkpoints"):
        assert assess(read(matched(), evidence(**{name: None}))).level_conservative == 0
    assert assess(read(matched(n=1600), evidence())).level_conservative == 0  # SS is not shown yet
    assert (
        assess(read(episodes([1] * 2300), evidence())).level_conservative == 0
    )  # no simulated half


def test_the_same_on_a_twin_is_no_robot():
    twins = read(matched("twin"), evidence("twin", checkpoints=checkpoints(14, side="twin")))
    assert twins.of("exposure_hours").value == 0.0
    found = assess(twins)
    assert (found.level_conservative, found.evidence_tag) == (0, "twin")
    assert found.would_be is None  # its hours are none, and no gate of hours passes
    assert "physical robot" in found.missing[2][0].text


def test_simulation_alone_shows_axes_and_nothing_of_a_robot():
    found = read(episodes([1] * 40, side="sim", plan_depth=4), Evidence())
    assert found.side == "sim"
    known = {name for name, one in found.values.items() if one.value is not None}
    assert known == {"autonomy", "planning"}  # one family says nothing of generality
    assert found.of("planning").value == pytest.approx(0.5)
    assert found.of("autonomy").value == 1.0
    # All alike: by Clopper-Pearson at least 0.912 of the episodes are (40 of 40).
    assert found.of("autonomy").low == pytest.approx(0.9119, abs=1e-4)


def test_a_mean_of_families_counts_each_once():
    table = pd.concat(
        [
            episodes([1] * 90, side="sim", family="pick", uninterrupted_actions=50),
            episodes([1] * 10, side="sim", family="drawer", uninterrupted_actions=0).assign(
                episode_id=[f"d{i}" for i in range(10)]
            ),
        ]
    )
    assert read(table, None).of("autonomy").value == pytest.approx(0.5)


def test_tools_count_under_mild_drift_by_their_exact_interval():
    def use(category: str, successes: int, episodes: int = 20, drift: str = "mild") -> ToolUse:
        return ToolUse(
            line=2, category=category, successes=successes, episodes=episodes, drift=drift
        )

    uses = (
        use("gripper", 18), use("suction", 17), use("camera", 11), use("probe", 20, drift="none"),
        use("lidar", 0, 0),
    )  # fmt: skip
    found = read(matched(), evidence(tools=uses)).of("tools")
    assert (found.low, found.value, found.n) == (2.0, 3.0, 60)
    none = read(matched(), evidence(tools=(use("probe", 20, drift="none"),))).of("tools")
    assert none.value is None
    assert "no line with drift 'mild'" in str(none.reason)


def test_a_failure_counts_0_whether_its_plan_depth_was_logged_or_not():
    outcomes = [int(i % 2) for i in range(60)]
    depths = [4.0 if ok else None for ok in outcomes]
    some = read(episodes(outcomes, plan_depth=depths), None).of("planning")
    every = read(episodes(outcomes, plan_depth=4), None).of("planning")
    assert (some.value, some.n) == (0.25, 60)
    assert (every.value, every.n) == (0.25, 60)
    unknown = read(episodes([1] * 60, plan_depth=[8.0, None] * 30), None).of("planning")
    assert (unknown.value, unknown.n) == (1.0, 30)


def test_families_alike_in_themselves_but_not_among_themselves_have_an_interval():
    """One always solves at depth 6, one never: more episodes would hardly show anything else."""
    outcomes = [int(i < 30) for i in range(60)]
    family = ["pick"] * 30 + ["drawer"] * 30
    found = read(episodes(outcomes, plan_depth=6, family=family), None).of("planning")
    assert found.value == pytest.approx(0.375)
    # No narrower than if what one family may have lost, or the other gained, were known.
    q = 0.025 ** (1 / 30)
    assert found.low < 0.75 * (1 + q) / 4
    assert found.high > (1.5 + 0.5 * (1 - q)) / 4


def test_anchors_beside_the_episodes_shape_an_axis_and_no_gate():
    low = Anchor(line=2, axis="P", baseline=0.0, expert=0.3, scale="linear", source="study")
    table = episodes([1] * 40, plan_depth=[3.0, 4.0] * 20)
    bare, found = read(table, Evidence()), read(table, Evidence(anchors=(low,)))
    assert found.of("planning") == bare.of("planning")
    axes = {axis.name: axis.value.value for axis in found.axes}
    assert (axes["P"], found.of("planning").value) == (1.0, 0.4375)


def found_in(table: pd.DataFrame, **noted: Any) -> list[str]:
    """What the audit of the evidence finds."""
    files = {kind: f"{kind}.csv" for kind in noted}
    evidence = Evidence(**noted, files=files)
    return [str(one) for one in summarise(table, config=QUICK, evidence=evidence).findings]


def test_an_expert_of_a_family_nobody_played_is_named():
    expert = Expert(line=4, family="Pick", quality=0.7, se=0.02, n=50, source="s")
    (found,) = found_in(episodes([1, 0] * 20, family="pick"), experts=(expert,))
    assert "experts.csv: line 4, column 'family': unknown family 'Pick'; did you mean" in found


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Working memory-span", "working_memory_span"),
        ("working_memory", None),
        ("working_memory_scan", None),
        ("delayed_recall_1w", None),
        ("Delayed-Recall-7d", "delayed_recall_7d"),
        ("delayed_recal_1d", "delayed_recall_1d"),
        ("delayed_recall_30d", None),
        ("working_memory_updating", None),
        ("digit_span", None),
    ],
)
def test_a_probe_that_is_written_another_way_is_named_and_one_of_ones_own_is_not(name, meant):
    probe = Probe(
        line=3, probe=name, ability="Gwm", n=20, mean=6.0, sd=1.0, human_median=5.0, human_n=100
    )
    found = found_in(episodes([1, 0] * 20), probes=(probe,))
    assert len(found) == (meant is not None)
    for text in found:
        assert f"probes.csv: line 3, column 'probe': unknown probe {name!r}" in text
        assert meant in text


def test_stated_probabilities_are_compared_with_the_rate_itself():
    outcomes = [int(i % 2) for i in range(200)]
    known = [0.95 if ok else 0.05 for ok in outcomes]
    sharp = read(episodes(outcomes, stated_success_probability=known), None).of("world_model")
    assert sharp.value == pytest.approx(1 - 0.05**2 / 0.25)
    flat = read(episodes(outcomes, stated_success_probability=0.5), None).of("world_model")
    assert flat.value == 0.0


def test_notes_count_for_their_side_and_policy():
    other = read(matched(), evidence(checkpoints=checkpoints(14, side="twin")))
    assert other.streaks == {}
    assert other.of("maintenance_days").value is None
    for kind, note in (
        ("tools", ToolUse(line=7, category="gripper", episodes=1, successes=1, policy="leg")),
        ("checkpoints", checkpoints(1, policy="leg", line=7)[0]),
        (
            "expansion",
            ToolTrial(
                line=7, tool="t", stage="after", group="needs", episodes=1, successes=1,
                installed_by="policy", policy="leg",
            ),
        ),
    ):  # fmt: skip
        (found,) = found_in(matched(), **{kind: (note,)})
        assert f"{kind}.csv: line 7, column 'policy': unknown policy 'leg'" in found


def test_an_incident_counts_at_once():
    major = Incident(line=2, incident_id="i", severity="major", episode_id="real-3")
    found = assess(read(matched(), evidence(incidents=(major,))))
    assert found.level_conservative == 0
    assert any(gate.reason == "1 happened" for gate in found.at(2))
    critical = Incident(line=2, incident_id="i", severity="critical", episode_id="real-3")
    found = assess(read(matched(), evidence(incidents=(critical,))))
    assert (found.level_conservative, found.next_level) == (None, None)


def test_a_patch_of_one_family_is_a_patch_of_all():
    learns = checkpoints(14)
    other = checkpoints(14, family="drawer")
    alone = read(matched(), evidence(checkpoints=(*learns, *other)))
    assert {name: one.days for name, one in alone.streaks.items()}.keys() == {"pick", "drawer"}
    patched = tuple(
        replace(point, human_patches=1) if i == 6 else point for i, point in enumerate(other)
    )
    found = read(matched(), evidence(checkpoints=(*learns, *patched)))
    assert found.streaks["pick"].days < alone.streaks["pick"].days
    assert found.streaks["pick"].days == found.streaks["drawer"].days


def test_variants_of_a_family_are_one_family():
    table = matched()
    table["task"] = ["pick" if i % 2 else "pick-wide" for i in range(len(table))]
    table["family"] = "pick"
    assert list(read(table, evidence()).families_of("AR")) == ["pick"]
