"""Everything that is said of a policy on a body, from episodes and evidence together."""

import json

import numpy as np
import pandas as pd
import pytest

from robo_eval import formulas
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason
from robo_eval.core.plan import parse_plan
from robo_eval.log.evidence import Evidence, Fault, Incident, Rating, Repair
from robo_eval.metrics.attribution import attribute
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.summary import summarise
from robo_eval.stats.rates import burst_interval

QUICK = MetricConfig(resamples=500)
HOUR_NS = 3600 * 10**9


def episodes(outcomes, *, side="real", policy="ours", prefix="", **columns):
    """One episode an outcome; physical ones take an hour each, one after the other."""
    n = len(outcomes)
    is_physical = side != "sim"
    table = {
        "episode_id": [f"{prefix}{side}-{policy}-{i}" for i in range(n)],
        "side": side,
        "task": "pick",
        "policy": policy,
        "quality": [float(ok) for ok in outcomes],
        "success": [bool(ok) for ok in outcomes],
        "end_reason": ["success" if ok else "failure" for ok in outcomes],
        "seed": list(range(n)),
        "pair_id": [f"{policy}-{i}" for i in range(n)],
        "start_ns": [i * HOUR_NS for i in range(n)],
        "duration_s": 3600.0,
        "exposure_s": 3600.0 if is_physical else 0.0,
        **columns,
    }
    return pd.DataFrame(table)


def matched(real, sim, **columns):
    return pd.concat(
        [episodes(real, **columns), episodes(sim, **{**columns, "side": "sim"})], ignore_index=True
    )


def incident(line, severity="near_miss", **fields):
    return Incident(line=line, incident_id=f"i{line}", severity=severity, **fields)


def robot(table, config=QUICK, **evidence):
    summary = summarise(table, config=config, evidence=Evidence(**evidence))
    json.dumps(summary.as_dict(), allow_nan=False)
    assert len(summary.robots) == 1
    return summary.robots[0], summary


# Safety ------------------------------------------------------------------------------------------


def test_incidents_of_one_episode_or_day_are_a_burst():
    """Three near misses of one episode, two of one day, and one of neither."""
    day = 24 * HOUR_NS
    noted = [
        *(incident(n, episode_id="real-ours-3", time_ns=3 * HOUR_NS + n) for n in (1, 2, 3)),
        incident(4, time_ns=day + HOUR_NS, policy="ours"),
        incident(5, time_ns=day + 2 * HOUR_NS, policy="ours"),
        incident(6, policy="ours"),
    ]
    body, _ = robot(episodes([1] * 40), incidents=tuple(noted))
    rate = body.of("near_miss_per_100_h")
    low, high = burst_interval([1, 2, 3], 40.0)
    assert (rate.low, rate.high) == pytest.approx((100 * low, 100 * high))
    assert (rate.value, rate.n, rate.method) == (15.0, 6, "fay_feuer")
    assert rate.reason == "6 near misses in 3 episodes or days"
    alone = summarise(
        episodes([1] * 40),
        config=QUICK,
        evidence=Evidence(
            incidents=tuple(incident(n, episode_id=f"real-ours-{n}") for n in range(1, 7))
        ),
    ).robots[0]
    assert alone.of("near_miss_per_100_h").method == "garwood"
    assert alone.of("near_miss_per_100_h").high < rate.high
    # The score takes rates at their ends, so it is less sure as well.
    assert body.of("SS").value == alone.of("SS").value
    assert body.of("SS").low <= alone.of("SS").low
    assert body.of("SS").high > alone.of("SS").high


def test_safety_is_of_the_incidents_and_hours_of_the_robot():
    table = matched([1] * 170 + [0] * 30, [1] * 180 + [0] * 20)
    noted = (*(incident(i) for i in range(6)), incident(7, "minor"))
    found, summary = robot(table, incidents=noted)
    assert found.exposure.hours == pytest.approx(200.0)
    assert found.of("SS").value == pytest.approx(0.92)
    assert found.of("SS").low == 0.0  # one major incident is not excluded in 200 h
    assert found.of("near_miss_per_100_h").value == pytest.approx(3.0)
    assert found.of("near_miss_per_100_h").high == pytest.approx(6.529737011)
    assert summary.findings == ()
    assert found.of("MTBSI").value == pytest.approx(200 / 7)


def test_without_a_record_nothing_is_known_of_safety():
    found, _ = robot(matched([1, 0] * 10, [1, 1] * 10))
    assert found.of("SS").value is None
    assert "no record of incidents" in found.of("SS").reason
    assert found.of("E").value is None
    assert found.of("MTBSI").value is None


def test_an_empty_record_has_upper_bounds():
    found, _ = robot(matched([1, 0] * 20, [1, 1] * 20), incidents=())
    assert found.of("SS").value == 1.0
    assert found.of("critical_per_100_h").high == pytest.approx(100 * 0.0922219864)
    assert found.of("MTBF").value is None
    assert found.of("MTBF").low == pytest.approx(40 / 2.995732274)


def test_a_critical_incident_ends_the_window():
    found, _ = robot(matched([1] * 20, [1] * 20), incidents=(incident(1, "critical"),))
    assert (found.of("SS").value, found.counts["critical"]) == (0.0, 1)
    assert found.of("E").value == 0.0


def test_weights_and_form_come_from_the_configuration():
    config = MetricConfig(
        resamples=500,
        severity_weights={"near_miss": 0.1, "minor": 0.1, "major": 1.0, "critical": 10.0},
        safety_form="exponential",
    )
    found, _ = robot(matched([1] * 100, [1] * 100), config, incidents=(incident(1),))
    assert found.of("SS").value == pytest.approx(np.exp(-0.1))


# Whose incident ----------------------------------------------------------------------------------


def two_policies():
    later = [(i + 100) * HOUR_NS for i in range(10)]
    return pd.concat(
        [episodes([1] * 10), episodes([1] * 10, policy="theirs", start_ns=later)], ignore_index=True
    )


def counts(table, *noted):
    summary = summarise(table, config=QUICK, evidence=Evidence(incidents=noted))
    own = {robot.policy: robot.counts["near_miss"] for robot in summary.robots}
    return own, [str(finding) for finding in summary.findings]


def test_episode_policy_and_time_say_whose_it_is():
    own, findings = counts(
        two_policies(),
        incident(2, episode_id="real-theirs-3"),
        incident(3, policy="ours"),
        incident(4, time_ns=105 * HOUR_NS + 5),
    )
    assert (own, findings) == ({"ours": 1, "theirs": 2}, [])


def test_what_could_be_anybodys_counts_against_everybody():
    own, findings = counts(two_policies(), incident(2))
    assert own == {"ours": 1, "theirs": 1}
    assert findings == [
        "incidents: line 2: whose it is cannot be told; name its episode_id, policy or time"
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"time_ns": 50 * HOUR_NS}, "lies in no exposure of side real"),
        ({"episode_id": "nowhere"}, "'nowhere' is no physical episode"),
        ({"episode_id": "real-ours-0", "side": "twin"}, "was played on side real"),
        ({"episode_id": "real-ours-0", "time_ns": 9 * HOUR_NS}, "outside episode 'real-ours-0'"),
        ({"policy": "nobody"}, "'nobody' played no episode"),
    ],
)
def test_an_incident_outside_the_exposure_fails_the_audit(fields, message):
    own, findings = counts(two_policies(), incident(2, **fields))
    assert any(message in finding for finding in findings)
    assert sum(own.values()) >= 1  # counted all the same


def test_a_robot_that_is_a_twin_elsewhere_fails_the_audit():
    table = pd.concat(
        [episodes([1] * 5, robot="arm-1"), episodes([1] * 5, side="twin", robot="arm-1")],
        ignore_index=True,
    )
    summary = summarise(table, config=QUICK)
    assert "'arm-1' is a twin" in str(summary.findings[0])


def test_a_twin_never_has_the_names_of_a_robot():
    table = matched([1] * 20, [1] * 20, side="twin")
    summary = summarise(
        table, config=QUICK, evidence=Evidence(incidents=(incident(1, side="twin"),))
    )
    told = {one["name"] for one in summary.as_dict()["numbers"]}
    assert {"AR_twin", "S2S", "SS_twin", "E_twin", "RA_twin", "exposure_hours_twin"} <= told
    names = [one.removesuffix("_twin") for one in told if one.endswith("_twin")]
    assert told - {"S2S", "S2S_new_task", "AR_sim"} == {f"{name}_twin" for name in names}
    assert summary.numbers.of("exposure_hours_twin").value == 0.0


@pytest.mark.parametrize("seconds", [0.0, np.nan])
@pytest.mark.parametrize("side", ["real", "twin"])
def test_exposure_that_nobody_logged_is_no_zero(seconds, side):
    numbers = summarise(episodes([1] * 9, side=side, exposure_s=seconds), config=QUICK).numbers
    suffix = "" if side == "real" else "_twin"
    found = numbers.of(f"logged_hours{suffix}")
    assert (found.value, found.low, found.reason) == (None, None, "no exposure was logged")
    assert numbers.of(f"exposure_hours{suffix}").value == (None if side == "real" else 0.0)


# E -----------------------------------------------------------------------------------------------


def test_embodiment_joins_the_parts_in_one_bootstrap():
    table = matched([1] * 85 + [0] * 15, [1] * 90 + [0] * 10)
    found, _ = robot(table, incidents=(incident(1),))
    e = found.of("E")
    ar, ss = found.reliability.value, found.of("SS").value
    assert e.value == pytest.approx(formulas.embodiment(ar, ss, 0.95))
    assert e.method == "joint_bootstrap"
    assert e.low < e.value < e.high
    assert e.low == 0.0  # in 100 h a major incident, which costs all, is not excluded


def test_embodiment_is_missing_with_any_part():
    found, _ = robot(episodes([1] * 20), incidents=())
    assert found.of("E").value is None
    assert "S2R" in found.of("E").reason


# Recovery, control, throughput -------------------------------------------------------------------


def test_recovery_is_of_recoverable_faults():
    faults = tuple(
        Fault(line=i, fault="grasp_slip" if i % 2 else "occlusion", recovered=i < 18)
        for i in range(20)
    )
    found, _ = robot(matched([1] * 20, [1] * 20), faults=faults)
    share = found.of("RA")
    assert (share.low, share.high) == pytest.approx((0.683017286, 0.9876514728))
    assert {one.case for one in found.numbers.where(name="RA")} == {"", "grasp_slip", "occlusion"}


def test_repairs_enter_the_mean_time_to_repair():
    faulty = episodes([0] * 8).assign(quality=np.nan, success=None, end_reason="fault")
    table = pd.concat([faulty, episodes([1] * 192, prefix="good")], ignore_index=True)
    repairs = tuple(Repair(line=i, hours=0.75) for i in range(8))
    found, _ = robot(table, incidents=(), repairs=repairs)
    assert found.of("MTBF").value == pytest.approx(25.0)
    assert found.of("MTTR").value == pytest.approx(0.75)


def test_control_is_held_against_the_tolerances_of_its_family():
    config = MetricConfig(resamples=500, tolerances={"pick": {"jerk_rms_m_s3": 10.0}})
    quality = [{"jerk_rms_m_s3": 5.0 + i} for i in range(20)]
    found, _ = robot(episodes([1] * 20, control_quality=quality), config)
    expected = np.clip(2.0 - (5.0 + np.arange(20)) / 10.0, 0.0, 1.0).mean()
    assert found.numbers.of("QC", "pick").value == pytest.approx(expected)
    within = found.numbers.of("QC_within", "pick", "jerk_rms_m_s3")
    assert within.value == pytest.approx(6 / 20)
    assert len(found.measured["pick"].values("jerk_rms_m_s3")) == 20


def test_throughput_needs_a_price_card():
    table = episodes([1] * 12 + [0] * 8)
    assert robot(table)[0].of("tasks_per_hour").reason == "no price card is set"
    card = {"energy": 0.5, "wear": 0.5, "consumables": 0.0, "operator": 2.0}
    found, _ = robot(table, MetricConfig(price_card=card, currency="EUR", resamples=500))
    assert found.of("tasks_per_hour").value == pytest.approx(0.6)
    assert found.of("tasks_per_cost").value == pytest.approx(0.2)
    assert found.of("cost_per_hour").value == 3.0


# Calibrations and further simulation -------------------------------------------------------------


def calibrated(*shares, names):
    real = episodes([1] * 14 + [0] * 6)
    sims = [
        episodes(
            [1] * k + [0] * (20 - k),
            side="sim",
            prefix=name,
            calibration=name,
        )
        for k, name in zip(shares, names, strict=True)
    ]
    return pd.concat([real, *sims], ignore_index=True)


def test_identified_and_other_simulation_stand_side_by_side():
    table = calibrated(15, 20, names=("identified", "nominal"))
    found, _ = robot(table, incidents=())
    assert found.agreement is None  # which one counts was not said
    assert {one.calibration: one.agreement.value for one in found.calibrations} == pytest.approx(
        {"identified": 0.95, "nominal": 0.7}
    )
    chosen, _ = robot(table, MetricConfig(resamples=500, calibration="identified"), incidents=())
    assert chosen.agreement.agreement.value == pytest.approx(0.95)
    assert len(chosen.calibrations) == 2


def test_the_spread_between_recordings_is_inside_the_interval():
    table = calibrated(10, 14, 18, names=("identified/a", "identified/b", "identified/c"))
    found, _ = robot(table)
    (one,) = found.calibrations
    assert one.recordings == ("a", "b", "c")
    assert one.agreement.value == pytest.approx(1.0)
    for alone in one.by_recording.values():
        assert one.difference.low <= alone.difference.value <= one.difference.high
        width = one.difference.high - one.difference.low
        assert width >= alone.difference.high - alone.difference.low - 0.05


def test_further_simulation_sharpens_the_real_rate():
    rng = np.random.default_rng(0)
    real = (rng.random(60) < 0.7).tolist()
    sim = [ok if rng.random() < 0.9 else not ok for ok in real]
    more = episodes((rng.random(500) < 0.72).tolist(), side="sim", prefix="more", pair_id=None)
    found, _ = robot(pd.concat([matched(real, sim), more], ignore_index=True))
    sharp, plain = found.of("AR_sharpened"), found.of("AR_plain")
    assert "500 further simulated" in found.numbers.where(name="AR_sharpened")[0].rests_on
    assert sharp.high - sharp.low < plain.high - plain.low
    other = more.assign(task="place")
    unlike, _ = robot(pd.concat([matched(real, sim), other], ignore_index=True))
    assert unlike.of("AR_sharpened").value is None
    assert "differ in 100%" in unlike.of("AR_sharpened").reason


# Conduct -----------------------------------------------------------------------------------------


def test_voids_are_counted_and_flagged():
    table = episodes([1] * 18)
    void = episodes([0] * 2, prefix="void").assign(
        quality=np.nan,
        success=None,
        end_reason="void",
        end_detail=["operator_error", "operator_error: the cable was caught"],
    )
    summary = summarise(pd.concat([table, void], ignore_index=True), config=QUICK)
    (body,) = summary.bodies
    assert (body.of("void_rate").value, body.attempts, body.has_many_voids) == (0.1, 20, True)
    assert body.voids == {"operator_error": 2}
    assert body.numbers.of("voids", case="operator_error").value == 2
    assert summary.policies[0].success_with_voids.value == pytest.approx(0.9)
    few = summarise(pd.concat([episodes([1] * 39), void.head(1)], ignore_index=True), config=QUICK)
    assert few.bodies[0].voids
    assert not few.bodies[0].has_many_voids


def test_a_second_rater_is_held_against_the_log():
    # Cohen's example: 20 and 15 agreements of 50.
    table = episodes([0] * 25 + [1] * 25)
    said = [False] * 20 + [True] * 5 + [False] * 10 + [True] * 15
    ratings = tuple(
        Rating(line=i, episode_id=f"real-ours-{i}", rater="second", success=verdict, blind=i < 10)
        for i, verdict in enumerate(said)
    )
    silent = Rating(line=99, episode_id="real-ours-0", rater="third", success=None)
    summary = summarise(table, config=QUICK, evidence=Evidence(ratings=(*ratings, silent)))
    second, third = summary.raters
    assert second.kappa.value == pytest.approx(0.4)
    assert (second.agreed.value, second.blind) == (pytest.approx(0.7), 10)
    assert third.kappa.value is None
    assert third.missing == 1


def test_a_rating_of_an_unknown_episode_fails_the_audit():
    rating = Rating(line=2, episode_id="nowhere", rater="second", success=True)
    summary = summarise(episodes([1] * 5), config=QUICK, evidence=Evidence(ratings=(rating,)))
    assert [str(finding) for finding in summary.findings] == [
        "ratings: line 2: episode_id 'nowhere' is not in the log"
    ]


def test_the_configuration_and_its_digest_stand_in_the_summary():
    found = summarise(episodes([1] * 5), config=QUICK).as_dict()
    assert found["configuration"]["severity_weights"]["critical"] == 10.0
    assert found["configuration_digest"] == QUICK.digest
    assert QUICK.digest != MetricConfig(resamples=500, max_voids=0.1).digest


# What a sceptic tried ----------------------------------------------------------------------------


def test_a_calibration_of_several_recordings_counts_as_a_whole():
    table = calibrated(11, 14, 17, names=("identified/a", "identified/b", "identified/c"))
    config = MetricConfig(resamples=500, calibration="identified")
    found, _ = robot(table, config, incidents=())
    (whole,) = found.calibrations
    assert found.agreement.agreement == whole.agreement
    assert found.agreement.ar_sim.value == pytest.approx(0.7)
    assert found.of("E").method == "ends_of_the_parts"


def test_pairs_that_were_picked_are_no_agreement():
    real = episodes([1] * 10 + [0] * 90)
    sim = episodes([1] * 10, side="sim")
    found, _ = robot(pd.concat([real, sim], ignore_index=True), incidents=())
    assert found.agreement.uncovered_mass == pytest.approx(0.9)
    assert found.agreement.agreement.value is None
    assert "unmatched: 90%" in found.agreement.agreement.reason
    assert found.of("E").value is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"exposure_s": 1e9}, "column 'exposure_s' is 1e"),
        ({"start_ns": 0, "robot": "arm-1"}, "robot 'arm-1' was still in episode"),
    ],
)
def test_hours_that_cannot_be_fail_the_audit(change, message):
    summary = summarise(episodes([1] * 10, **change), config=QUICK)
    assert any(message in str(finding) for finding in summary.findings)


def test_a_void_without_a_reason_fails_the_audit():
    void = episodes([0]).assign(quality=np.nan, success=None, end_reason="void")
    table = pd.concat([episodes([1] * 30, prefix="good"), void], ignore_index=True)
    summary = summarise(table, config=QUICK)
    assert any("void without a reason" in str(finding) for finding in summary.findings)


@pytest.mark.parametrize(("column", "value"), [("drift_step", 3), ("policy", "theirs")])
def test_a_pair_shares_policy_and_drift(column, value):
    table = matched([1] * 10, [1] * 10, drift_step=1)
    table.loc[table["side"] == "sim", column] = value
    with pytest.raises(InputError, match=f"pair 'ours-0': {column} is"):
        summarise(table, config=QUICK)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"calibration": "identifed"}, "did you mean 'identified'"),
        ({"tolerances": {"pik": {"jerk": 1.0}}}, "did you mean 'pick'"),
        ({"tolerances": {"pick": {"jrek": 1.0}}}, "did you mean 'jerk'"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(settings, message):
    table = calibrated(15, 20, names=("identified", "nominal"))
    table["control_quality"] = [{"jerk": 0.5}] * len(table)
    with pytest.raises(InputError, match=message):
        summarise(table, config=MetricConfig(resamples=500, **settings))


def test_repair_times_have_an_interval_from_three_on():
    table = episodes([1] * 100)
    repairs = tuple(Repair(line=i, hours=hours) for i, hours in enumerate((0.5, 1.0, 1.5)))
    found, _ = robot(table, repairs=repairs)
    assert (found.of("MTTR").value, found.of("MTTR").n) == (1.0, 3)
    assert found.of("MTTR").method == "student_t"
    assert found.of("MTBSI").value is None  # nobody kept a record of incidents


def test_a_trial_in_simulation_only_says_so():
    summary = summarise(episodes([1] * 5, side="sim"), config=QUICK)
    assert summary.as_dict()["evidence_tag"] == "sim_only"
    assert summarise(episodes([1] * 5), config=QUICK).evidence_tag == "real"


def test_a_success_below_the_plans_target_fails_the_audit(frame, episode):
    plan = parse_plan(
        "name: x\ntasks: [{family: balancing, success_quality: 0.9}]\npolicies: [balancer]",
        source="p",
    )
    table = frame(
        episode("fine", 0.95, end_reason=EndReason.SUCCESS, success=True),
        episode("weak", 0.5, end_reason=EndReason.SUCCESS, success=True),
        episode("failed", 0.5),
    )
    (finding,) = attribute(Evidence(), episodes_frame(table), plan).findings
    assert finding.where == "episodes: weak"
    assert "quality 0.5 is below the plan's success_quality of 0.9" in finding.text
