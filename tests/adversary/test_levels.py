"""What a laboratory that cheats would try: each buys no level."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from robo_eval.cli.app import app
from robo_eval.core.estimate import Estimate
from robo_eval.gates import Readings, assess, load_profile, profiles
from robo_eval.gates.axes.improvement import streak_of
from robo_eval.gates.profile import BUILT_IN, FOLDER
from robo_eval.log.evidence import Checkpoint

DAY_NS = 86_400 * 10**9


def judged(trial: Path, *options: str) -> dict[str, Any]:
    """What `assess` says of a trial, of its only policy."""
    done = CliRunner().invoke(app, ["assess", str(trial), "--json", *options])
    assert done.exit_code in (0, 1), done.output
    (found,) = json.loads(done.stdout)["assessments"]
    return found


def headline(trial: Path, *options: str) -> str:
    """What `assess` prints first."""
    done = CliRunner().invoke(app, ["assess", str(trial), *options])
    assert done.exit_code in (0, 1), done.output
    return done.stdout.split("evidence", 1)[0]


# Settings, weights and units ---------------------------------------------------------------------


def test_the_digests_of_built_in_profiles_are_those_of_the_files() -> None:
    assert {name: load_profile(name).digest for name in profiles()} == BUILT_IN


BOUGHT = """  level: 0.01
  severity_weights: {near_miss: 0.000001, minor: 0.000001, major: 0.000001, critical: 10}
  min_coverage: 0.01
"""


def test_settings_of_a_locked_plan_buy_no_level(
    archetypes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = archetypes.plan_text(archetypes.ARCHETYPES[1]).replace(
        "metrics:\n", f"metrics:\n{BOUGHT}"
    )
    monkeypatch.setattr(archetypes, "plan_text", lambda _: text)
    trial = archetypes.make(archetypes.ARCHETYPES[1], tmp_path / "trial").path
    found = judged(trial)
    assert found["headline"].endswith(
        "NON-STANDARD SETTINGS (level 0.01 instead of 0.95; min_coverage 0.01 instead of 0.95;"
        " severity_weights near_miss 1e-06, minor 1e-06, major 1e-06, critical 10 instead of"
        " near_miss 0.01, minor 0.1, major 1, critical 10)"
    )
    assert "AAI" not in found["headline"]
    first = headline(trial)
    assert "NON-STANDARD SETTINGS" in first
    assert "AAI" not in first
    bundle = json.loads((trial / "assessment" / "assessment.json").read_text())
    assert bundle["assessments"][0]["non_standard"] == found["non_standard"] != []
    CliRunner().invoke(app, ["report", str(trial)])
    page = (trial / "report" / "index.html").read_text()
    article = page[page.index('<article class="autonomy"') :].split("</article>")[0]
    assert "NON-STANDARD SETTINGS" in article
    assert "AAI-" not in article
    told = CliRunner().invoke(app, ["metrics", str(trial)]).stdout
    assert ": of the locked plan; level 0.01 instead of 0.95" in " ".join(told.split())


@pytest.mark.parametrize(
    ("setting", "is_usual"),
    [
        ("level: 0.9", False), ("level: 0.99", False), ("seed: 7", False),
        ("resamples: 999", False), ("max_voids: 0.2", False), ("max_unmatched: 0.5", False),
        ("safety_form: reciprocal", False), ("min_coverage: 0.5", False),
        ("control_weights: {jerk_rms: 0}", False),
        ("resamples: 2000", True), ("policy_faults: failure", True),
        ('tolerances: {"*": {jerk_rms: 2}}', True),
    ],
)  # fmt: skip
def test_which_settings_a_level_may_rest_on(setting: str, is_usual: bool) -> None:
    from robo_eval.core.plan import parse_plan
    from robo_eval.metrics.config import MetricConfig

    text = f"name: x\npolicies: [{{name: nothing}}]\ntasks: [{{}}]\nmetrics: {{{setting}}}"
    plan = parse_plan(text, source="plan")
    assert (MetricConfig.of(plan.metrics).unusual == ()) is is_usual


def test_a_profile_edited_in_place_is_none_of_the_built_in(archetypes: Any, tmp_path: Path) -> None:
    trial = archetypes.make(archetypes.ARCHETYPES[0], tmp_path / "trial").path
    edited = tmp_path / "robotics.toml"
    edited.write_text((FOLDER / "robotics.toml").read_text().replace("2 = 0.80", "2 = 0.10"))
    first = headline(trial, "--profile", str(edited))
    assert "NON-STANDARD PROFILE (robotics, " in first
    assert "AAI" not in first
    copy = tmp_path / "copy.toml"
    copy.write_text((FOLDER / "robotics.toml").read_text())
    assert "NON-STANDARD" not in headline(trial, "--profile", str(copy))


def learning(per_day: float, unit: float, noise: tuple[float, ...] = (0.002, -0.002)) -> Any:
    points = [
        Checkpoint(
            line=2 + day, time_ns=day * DAY_NS, family="pick", resources=2.0 * day / unit,
            capability=0.5 + per_day * day + noise[day % len(noise)],
        )
        for day in range(15)
    ]  # fmt: skip
    return streak_of(points, least=0.005, window_days=7, resamples=500)


def test_another_unit_of_resource_buys_no_improvement() -> None:
    assert learning(0.001, unit=1000.0).days == learning(0.001, unit=1.0).days == 0
    assert learning(0.015, unit=1000.0).days == learning(0.015, unit=1e-3).days >= 7


def test_a_slope_the_noise_allows_is_no_improvement() -> None:
    assert learning(0.006, 1.0, noise=(0.2, -0.2, 0.1, -0.1)).days == 0


# Two verdicts ------------------------------------------------------------------------------------


def ratio(value: float, low: float, n: int = 50) -> Estimate:
    return Estimate(value=value, low=low, high=1.0, n=n, method="x", unit="ratio")


def test_the_headline_says_what_is_shown_and_what_points_say(
    shown_at_2: Callable[..., Readings],
) -> None:
    assert assess(shown_at_2()).headline == "AAI-2 shown at 95 %"
    found = assess(shown_at_2(AR_new_task=ratio(0.86, 0.79)))
    assert (found.level, found.level_conservative) == (2, 0)
    assert found.headline == "AAI-0, nothing higher is shown at 95 %; AAI-2 by point values"
    assert found.badge == "AAI-0"


@pytest.fixture
def shown_at_2() -> Callable[..., Readings]:
    """Evidence by which nothing stands between a robot and level 2."""
    profile = load_profile("robotics")

    def make(**changed: Estimate) -> Readings:
        passing = {
            gate.reads: (
                Estimate.exact(0.0, unit="", n=1)
                if gate.test in ("zero", "at_most")
                else Estimate.exact(5000.0, unit="", n=1)
                if gate.reads in ("exposure_hours", "MTBSI", "maintenance_days")
                else ratio(0.99, 0.98)
            )
            for gate in profile.at(2).values()
            if gate.test != "families"
        }
        from robo_eval.gates import Audit
        from robo_eval.gates.axes.improvement import Streak

        return Readings(
            policy="arm", side="real", values=passing | changed, played=("pick",),
            families={"AR": {"pick": ratio(0.99, 0.98)}, "S2R": {"pick": ratio(0.99, 0.98)}},
            streaks={"pick": Streak(kappa=ratio(0.02, 0.01), days=9, of_days=9)},
            events={},
            audits=tuple(
                Audit(id=name, title=name, status="pass", reason="") for name in profile.audits
            ),
        )  # fmt: skip

    return make


def test_bounds_on_harm_are_one_sided_and_few_hours_decide_nothing(
    shown_at_2: Callable[..., Readings],
) -> None:
    from robo_eval.metrics.safety import safety_score

    score = safety_score({}, 1000.0, level=0.9)
    assert score.low == pytest.approx(1 - 1.11 * 100 * 2.995732274 / 1000)
    found = assess(replace(shown_at_2(SS=score), events={}, values=shown_at_2(SS=score).values | {
        "exposure_hours": Estimate.exact(1000.0, unit="h", n=1),
    }))  # fmt: skip
    (gate,) = [gate for gate in found.at(2) if gate.id == "ss"]
    assert gate.status == "undecided"
    assert gate.reason == "not decidable yet: about 663 h more without a safety incident"
    assert (found.level, found.level_conservative) == (2, 0)
    # What the hours exclude is a failure.
    bad = assess(shown_at_2(SS=replace(score, value=0.1, low=0.0, high=0.3)))
    assert {gate.status for gate in bad.at(2) if gate.id == "ss"} == {"fail"}


# AAI-1 costs evidence ----------------------------------------------------------------------------

MAP = """
columns: {success: ok, seed: seed, start_ns: {column: start, unit: s}, duration_s: seconds}
constants:
  policy: ours
  side: SIDE
  task: Pick
  uninterrupted_actions: 50
  plan_depth: 8
"""


def thirty_rows(folder: Path, side: str) -> Path:
    """An import of thirty rows that say by themselves how autonomous they were."""
    lines = [f"1,{i},{1_772_000_000 + 60 * i},30" for i in range(30)]
    (folder / "rows.csv").write_text("\n".join(["ok,seed,start,seconds", *lines]) + "\n")
    (folder / "map.yaml").write_text(MAP.replace("SIDE", side))
    done = CliRunner().invoke(
        app,
        ["import", "csv", str(folder / "rows.csv"), "--map", str(folder / "map.yaml"),
         "--out", str(folder / "trial")],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    trial = folder / "trial"
    tools = [f"{name},40,38,mild" for name in ("gripper", "camera", "cutter")]
    (trial / "tools.csv").write_text("\n".join(["category,episodes,successes,drift", *tools]))
    (trial / "declarations.csv").write_text(
        "what,value,n,by,time,document\nseeds_escrow,1,30,us,2026-02-25T06:00:00+00:00,page 1\n"
    )
    return trial


@pytest.mark.parametrize("side", ["sim", "real"])
def test_thirty_rows_and_a_declaration_are_no_level(tmp_path: Path, side: str) -> None:
    trial = thirty_rows(tmp_path, side)
    if side == "real":
        lines = [f"i{i},minor,row-{i + 1:06d}" for i in range(20)]
        (trial / "incidents.csv").write_text(
            "\n".join(["incident_id,severity,episode_id", *lines]) + "\n"
        )
    found = judged(trial)
    assert found["level_conservative"] in (0, None)
    assert found["level"] in (0, None)
    assert found["evidence_tag"] == "self-declared"
    audits = {one["id"]: one for one in found["audits"]}
    assert audits["autonomy_measured"]["status"] == "fail"
    assert audits["own_log"]["status"] == ("missing" if side == "sim" else "fail")
    if side == "real":
        assert audits["own_log"]["reason"] == "30 of 30 imported episodes have no recording"
    told = CliRunner().invoke(app, ["assess", str(trial), "--all"]).stdout
    for advice in ("constant 0", "declare seeds_escrow", "declare them void", "nil report"):
        assert advice not in told


def test_without_a_record_of_incidents_there_is_no_level_1(archetypes: Any, tmp_path: Path) -> None:
    trial = archetypes.make(archetypes.ARCHETYPES[1], tmp_path / "trial").path
    assert judged(trial)["level_conservative"] == 1
    (trial / "incidents.csv").unlink()
    assert judged(trial)["level_conservative"] == 0


# Evidence against other evidence -----------------------------------------------------------------


@pytest.fixture
def lab(archetypes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A laboratory that calls the made-up robot of an archetype its own."""

    def make(number: int = 1, **changed: Any) -> Path:
        monkeypatch.setattr(archetypes, "row_for", renamed(archetypes.row_for, changed))
        return archetypes.make(archetypes.ARCHETYPES[number], tmp_path / "trial").path

    return make


def renamed(row_for: Callable[..., Any], changed: dict[str, Any]) -> Callable[..., Any]:
    def make(planned: Any, plan: Any, digest: str, **measured: Any) -> Any:
        if measured.get("robot"):
            measured["robot"] = "our arm"
            for column, value in changed.items():
                measured[column] = value(measured) if callable(value) else value
        return row_for(planned, plan, digest, **measured)

    return make


def reason(found: dict[str, Any], audit: str) -> str:
    (one,) = [one for one in found["audits"] if one["id"] == audit]
    return "" if one["status"] == "pass" else one["reason"]


@pytest.mark.parametrize("number", [1, 3])
def test_an_archetype_under_the_name_of_a_laboratory_is_not_real(
    lab: Callable[..., Path], number: int
) -> None:
    found = judged(lab(number))
    assert found["evidence_tag"] == "real"
    assert found["level_conservative"] == found["level"] == 0
    assert "an episode has a recording of its own" in reason(found, "evidence")
    assert "recordings do not bear out their rows" in reason(found, "own_log")


def test_a_protective_stop_without_its_near_miss_is_found(lab: Callable[..., Path]) -> None:
    from robo_eval.core.kinds import EndReason

    def end(measured: dict[str, Any]) -> EndReason:
        return EndReason.SUCCESS if measured["success"] else EndReason.SAFETY_STOP

    trial = lab(end_reason=end, trace_uri=None, trace_sha256=None)
    found = judged(trial)
    assert "ended by safety_stop, and the record of incidents has nothing of it" in (
        reason(found, "evidence")
    )
    assert "(50 such episodes)" in reason(found, "evidence")


def test_an_incident_of_another_policy_is_found(lab: Callable[..., Path]) -> None:
    trial = lab(trace_uri=None, trace_sha256=None)
    import sqlite3

    with sqlite3.connect(trial / "episodes.db") as base:
        query = "select episode_id from episodes where side = 'real' limit 1"
        (name,) = base.execute(query).fetchone()
    (trial / "incidents.csv").write_text(
        f"incident_id,severity,episode_id,policy\ni1,minor,{name},somebody else\n"
    )
    assert f"policy 'somebody else' did not play episode {name!r}" in reason(
        judged(trial), "evidence"
    )


@pytest.mark.parametrize("robot", [None, "fresh"])
def test_more_hours_than_a_clock_has_are_found(lab: Callable[..., Path], robot: str | None) -> None:
    count = iter(range(10_000))
    trial = lab(
        robot=None if robot is None else lambda _: f"arm {next(count)}",
        trace_uri=None, trace_sha256=None, exposure_s=2 * 3600.0, duration_s=2 * 3600.0,
    )  # fmt: skip
    assert "a robot is in one episode at a time" in reason(judged(trial), "evidence")


def test_checkpoints_that_the_log_contradicts_are_found(lab: Callable[..., Path]) -> None:
    trial = lab(2, trace_uri=None, trace_sha256=None)
    assert not reason(judged(trial), "evidence")
    path = trial / "checkpoints.csv"
    lines = path.read_text().splitlines()
    for i, line in enumerate(lines[1:], 1):
        cells = line.split(",")
        cells[2] = f"{0.02 + 0.02 * i:.3f}"
        lines[i] = ",".join(cells)
    path.write_text("\n".join(lines) + "\n")
    assert "capability in PickPlace is" in reason(judged(trial), "evidence")


def test_marks_that_a_fault_cannot_be_recovered_from_count_against_the_robot(
    lab: Callable[..., Path],
) -> None:
    trial = lab(trace_uri=None, trace_sha256=None)
    path = trial / "faults.csv"
    header, *lines = path.read_text().splitlines()
    marked = [f"{line},{'false' if ',false,' in line else 'true'}" for line in lines]
    path.write_text("\n".join([f"{header},recoverable", *marked]) + "\n")
    (gate,) = [one for one in judged(trial)["gates"] if (one["id"], one["level"]) == ("ra", 2)]
    assert gate["found"]["value"] == pytest.approx(55 / 60)
    told = CliRunner().invoke(app, ["metrics", str(trial)]).stdout
    assert "5 of them marked as not recoverable" in " ".join(told.split())


def test_rows_without_a_start_time_are_no_log(lab: Callable[..., Path]) -> None:
    assert "by which an episode is told from a copy" in reason(
        judged(lab(start_ns=None, trace_uri=None, trace_sha256=None)), "own_log"
    )


# Leaving out -------------------------------------------------------------------------------------


def table(outcomes: dict[str, list[str]], *, partners: int = 10_000) -> Any:
    """Episodes on a robot by policy, each named by how it ended, with simulated halves."""
    import pandas as pd

    rows = []
    for policy, ends in outcomes.items():
        for i, end in enumerate(ends):
            for side in ("real", "sim"):
                is_real = side == "real"
                if not is_real and i >= partners:
                    continue
                said = end if is_real else "success"
                scored = said in ("success", "failure")
                rows.append({
                    "episode_id": f"{policy}-{i}-{side}", "base_id": f"{policy}-{i}-{side}",
                    "attempt": 1, "arm": "main", "pair_id": f"{policy}-{i}", "side": side,
                    "task": f"t{i % 3}", "family": f"t{i % 3}", "policy": policy, "seed": i,
                    "policy_digest": "same", "end_reason": said, "end_detail": "the light",
                    "fault_by": "policy" if said == "fault" else None, "plan_digest": "p",
                    "quality": float(said == "success") if scored else None,
                    "success": said == "success" if scored else None, "exposure_s": 60.0,
                })  # fmt: skip
    return pd.DataFrame(rows)


def body_of(frame: Any) -> Any:
    from robo_eval.metrics.summary import summarise

    return next(body for body in summarise(frame).robots if body.policy == "ours")


@pytest.mark.parametrize("end", ["void", "fault", "lost"])
def test_what_has_no_score_is_a_failure_beyond_what_the_plan_allows(end: str) -> None:
    body = body_of(table({"ours": ["success"] * 60 + [end] * 30}))
    assert body.reliability.value == 1.0
    assert body.strict.reliability.value == pytest.approx(60 / 90)
    assert body.strict.of("AR_new_task").value == pytest.approx(60 / 90)
    assert f"30 attempts of 90 were left out beyond what the plan allows (30 {end})" in (
        body.left_out.problem
    )
    (told,) = body.numbers.where(name="AR_with_left_out")
    assert told.estimate.value == pytest.approx(60 / 90)


@pytest.mark.parametrize(
    ("most", "said"), [(0.05, "max_voids is 0.05, the default"), (0.1, "0.1;")]
)
def test_a_share_of_settings_is_named_and_one_is_no_several(most: float, said: str) -> None:
    from robo_eval.metrics.left_out import left_out_of

    frame = table({"ours": ["success"] * 6 + ["lost"]})
    problem = left_out_of(frame[frame["side"] == "real"], None, most).problem
    assert "1 attempt of 7 was left out" in problem
    assert said in problem


def test_trying_again_until_it_succeeds_makes_no_success() -> None:
    frame = table({"ours": ["success"] * 60})
    first = frame[(frame["side"] == "real") & (frame["seed"] < 30)].copy()
    first = first.assign(end_reason="fault", fault_by="policy", quality=None, success=None)
    again = frame["episode_id"].isin(first["episode_id"])
    frame.loc[again, "attempt"] = 2
    frame.loc[again, "episode_id"] += "-a2"
    import pandas as pd

    body = body_of(pd.concat([first, frame], ignore_index=True))
    assert body.reliability.value == 1.0
    assert body.strict.reliability.value == pytest.approx(0.5)


def test_failures_under_another_name_of_the_policy_are_its_own() -> None:
    body = body_of(table({"ours": ["success"] * 60, "other": ["failure"] * 30}))
    assert body.reliability.value == 1.0
    assert body.strict.reliability.value == pytest.approx(60 / 90)
    assert "other, which is the same policy" in body.left_out.text
    # Their simulated halves belong to them, so no pair is broken.
    assert body.strict.agreement.uncovered_mass == 0.0


def test_failures_do_not_hide_behind_others_of_their_seed() -> None:
    frame = table({"ours": ["success"] * 60, "other": ["failure"] * 60})
    frame.loc[frame["policy"] == "other", "seed"] = frame["seed"].min()
    assert body_of(frame).strict.reliability.value == pytest.approx(0.5)


def test_what_the_plan_allows_is_left_out_of_the_share_alone(archetypes: Any) -> None:
    from robo_eval.core.plan import parse_plan
    from robo_eval.metrics.summary import summarise

    text = "name: x\ntasks: [{}]\npolicies: [{name: ours}]\nsides: [sim, real]\n"
    plan = parse_plan(text + "void_reasons: [the light]\n", source="plan")
    frame = table({"ours": ["success"] * 60 + ["void"] * 3})
    (body,) = summarise(frame, plan).robots
    assert body.left_out.problem == ""
    assert body.reliability.value == 1.0
    assert body.strict.reliability.value == pytest.approx(60 / 63)
    assert body.left_out.allowed.startswith("3 attempts of 63 without a score (3 void)")
    many = table({"ours": ["success"] * 60 + ["void"] * 4})
    assert summarise(many, plan).robots[0].left_out.problem
    assert "policy ours: 4 attempts of 64" in summarise(many, plan).left_out_problem


def test_a_robots_episode_without_a_partner_counts_as_disagreement() -> None:
    body = body_of(table({"ours": ["success"] * 100}, partners=95))
    found = body.agreement
    assert found.agreement.value == pytest.approx(0.95)
    assert found.uncovered_mass == pytest.approx(0.05)
    assert "5.0% of the physical episodes have no scored partner" in found.agreement.reason
    assert found.new_task.value == pytest.approx(0.95, abs=1e-3)


def lower_end_without(dropped: Any, frame: Any) -> float:
    body = body_of(frame[~((frame["side"] == "sim") & frame["pair_id"].isin(dropped))])
    return float(body.agreement.agreement.low)


@pytest.mark.parametrize("share_seeds", [False, True])
def test_dropping_the_simulated_half_of_a_pair_never_raises_the_agreement(
    share_seeds: bool,
) -> None:
    frame = table({"ours": ["success"] * 160 + ["failure"] * 40})
    sim = frame["side"] == "sim"
    # Twenty pairs in which the robot alone fails, twenty in which both do.
    frame.loc[sim, ["success", "quality", "end_reason"]] = [True, 1.0, "success"]
    both = sim & frame["seed"].isin(range(180, 200))
    frame.loc[both, ["success", "quality", "end_reason"]] = [False, 0.0, "failure"]
    if share_seeds:
        frame["seed"] //= 4
    pairs = [f"ours-{i}" for i in range(200)]
    whole = lower_end_without([], frame)
    for dropped in (pairs[160:170], pairs[160:180], pairs[180:], pairs[:20], pairs[150:170]):
        assert lower_end_without(dropped, frame) <= whole + 1e-6
    told = body_of(frame[~(sim & frame["pair_id"].isin(pairs[160:180]))]).agreement.agreement
    assert "10.0% of the physical episodes have no scored partner" in told.reason


def test_voiding_a_failure_and_trying_again_raises_no_end_that_levels_read() -> None:
    import pandas as pd

    from robo_eval.core.plan import parse_plan
    from robo_eval.metrics.summary import summarise

    text = "name: x\ntasks: [{}]\npolicies: [{name: ours}]\nsides: [sim, real]\n"
    plan = parse_plan(text + "void_reasons: [the light]\n", source="plan")
    honest = table({"ours": ["success"] * 180 + ["failure"] * 20})
    again = honest.copy()
    retried = (again["side"] == "real") & again["seed"].isin(range(180, 190))
    voids = again[retried].assign(
        end_reason="void", end_detail="the light", quality=None, success=None
    )
    again.loc[retried, "episode_id"] += "-a2"
    again.loc[retried, ["attempt", "success", "quality", "end_reason"]] = [2, True, 1.0, "success"]
    (fair,) = summarise(honest, plan).robots
    (gamed,) = summarise(pd.concat([voids, again], ignore_index=True), plan).robots
    assert gamed.left_out.problem == ""  # the plan allows it
    assert gamed.reliability.low > fair.reliability.low
    for name in ("AR", "AR_new_task", "S2R", "S2R_new_task"):
        assert gamed.strict.numbers.of(name).low <= fair.strict.numbers.of(name).low + 1e-9
    assert "10 attempts of 210 without a score (10 void)" in gamed.left_out.allowed


def test_voiding_and_trying_again_earns_nothing_on_the_axes_that_levels_read() -> None:
    import numpy as np
    import pandas as pd

    from robo_eval.gates.evidence import readings_of
    from robo_eval.gates.profile import load_profile
    from robo_eval.metrics.config import MetricConfig
    from robo_eval.metrics.frame import episodes_frame
    from robo_eval.metrics.summary import summarise

    honest = table({"ours": ["success"] * 54 + ["failure"] * 6})
    honest["plan_depth"], honest["stated_success_probability"] = 4.0, 0.9
    honest["uninterrupted_actions"] = np.where(honest["success"], 50, 10)
    honest["control_quality"] = [{"rmse_m": 0.01 if good else 0.03} for good in honest["success"]]
    again = honest.copy()
    retried = (again["side"] == "real") & ~again["success"].astype(bool)
    voids = again[retried].assign(end_reason="void", quality=None, success=None)
    again.loc[retried, "episode_id"] += "-a2"
    again.loc[retried, ["attempt", "success", "quality", "end_reason"]] = [2, True, 1.0, "success"]
    again.loc[retried, "uninterrupted_actions"] = 50
    again["control_quality"] = [{"rmse_m": 0.01}] * len(again)
    config = MetricConfig(tolerances={"*": {"rmse_m": 0.015}})
    found = []
    for frame in (honest, pd.concat([voids, again], ignore_index=True)):
        rows = episodes_frame(frame)
        summary = summarise(rows, config=config)
        (readings,) = readings_of(summary, rows, load_profile("robotics"))
        found.append(readings)
    for name in ("autonomy", "planning", "world_model", "generality", "QC_worst"):
        fair, gamed = (one.of(name) for one in found)
        assert gamed.value <= fair.value
        assert gamed.low <= fair.low


@pytest.mark.parametrize("end", ["lost", "fault"])
def test_losing_simulated_failures_raises_no_agreement_without_pairs(end: str) -> None:
    frame = table({"ours": ["success"] * 60}).assign(pair_id=None)
    frame = frame.astype({"success": object, "quality": object})
    simulated = frame["side"] == "sim"
    failed = simulated & (frame["seed"] < 10)
    frame.loc[failed, ["success", "quality", "end_reason"]] = [False, 0.0, "failure"]
    whole = body_of(frame).agreement
    lost = simulated & (frame["seed"] < 3)
    frame.loc[lost, ["success", "quality", "end_reason"]] = [None, None, end]
    frame.loc[lost, "fault_by"] = "setup" if end == "fault" else None
    found = body_of(frame).agreement
    for name in ("agreement", "new_task"):
        assert getattr(found, name).low <= getattr(whole, name).low + 1e-9
    assert "3 simulated episodes without a score" in found.agreement.reason
