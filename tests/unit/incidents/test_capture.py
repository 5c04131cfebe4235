"""What a trial recorded becomes drafts: one for each physical event, once, with its trace."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from robo_eval.cli.run import _to_review, recover
from robo_eval.core.canonical import file_digest
from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.log.bag_writer import BagWriter
from robo_eval.log.store import EpisodeStore
from robo_eval_incidents import capture as capturing
from robo_eval_incidents import open_log
from robo_eval_incidents.capture import capture
from robo_eval_incidents.kinds import Body, Correction, Reclassification, Review
from robo_eval_incidents.merge import merge
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.words import Category, Severity, Status, Via

START_NS = 1_772_000_000 * 10**9
S = 10**9


def test_a_stop_becomes_a_draft_with_its_trace(lab: Any) -> None:
    values = {"value": "61.5", "limit": "50", "unit": "N", "joint": "wrist"}
    name = lab.play(lab.cause(15.0, "force", **values), (15.1, "state", "PROTECTIVE_STOP"))
    found = capture(lab.path)
    (incident,) = lab.incidents()
    assert (found.drafted, found.known) == ((incident.incident_id,), 0)
    report = incident.report
    assert incident.status is Status.DRAFT
    assert (report.severity, report.category) == (Severity.NEAR_MISS, Category.FORCE_LIMIT)
    assert report.happened_ns == START_NS + 15 * S
    assert (report.robot, report.side, report.episode_id) == ("arm", Side.REAL, name)
    assert (report.policy, report.task, report.rule) == ("balancer", "balancing", "force")
    assert report.description == (
        "A measured force was beyond its margin.\n- force: Because of force."
    )
    (quantity,) = report.quantities
    assert (quantity.name, quantity.value, quantity.limit, quantity.unit) == (
        "force wrist", 61.5, 50.0, "N",
    )  # fmt: skip
    assert (incident.record.by, incident.record.via) == ("robo-eval", Via.RULE)
    whole, cut = incident.evidence
    assert (lab.path / whole.uri).is_file()
    assert cut.uri == f"incidents/{incident.incident_id}-{cut.sha256[:12]}.mcap"
    assert cut.sha256 == file_digest(lab.path / cut.uri)
    window = (START_NS + 5 * S, START_NS + 25 * S)
    assert (whole.start_ns, whole.end_ns) == (cut.start_ns, cut.end_ns) == window
    assert verify_log(lab.path / "incidents.db").ok


def test_capturing_again_adds_nothing(lab: Any) -> None:
    lab.play(lab.cause(15.0, "estop"))
    first = capture(lab.path)
    before = lab.kinds()
    again = capture(lab.path)
    assert (again.drafted, again.known) == ((), 1)
    assert lab.kinds() == before == ["opened", "report", "attachment"]
    assert len(first.drafted) == 1


def test_one_physical_event_is_one_incident_at_its_highest_severity(lab: Any) -> None:
    lab.play(
        lab.cause(10.0, "policy_heartbeat", value="0.31", limit="0.3", unit="s"),
        (10.01, "state", "PROTECTIVE_STOP"),
        lab.cause(10.02, "command_age", value="0.35", limit="0.3", unit="s"),
        lab.cause(11.0, "no_standstill", value="0.4", limit="0.05", unit="of velocity"),
        (11.5, "state", "PROTECTIVE_STOP"),
    )
    capture(lab.path)
    (incident,) = lab.incidents()
    assert (incident.severity, incident.category) == (Severity.CRITICAL, Category.SAFETY_FUNCTION)
    assert incident.report.description.splitlines() == [
        "The robot went on moving after it was told to stop.",
        "- policy_heartbeat: Because of policy_heartbeat.",
        "- 0.02 s later, command_age: Because of command_age.",
        "- 1.00 s later, no_standstill: Because of no_standstill.",
    ]
    # Both of the first two are silence; the first is how long it was when it was noticed.
    assert [(q.name, q.value, q.unit) for q in incident.report.quantities] == [
        ("silence", 0.31, "s"),
        ("speed after the stop", 0.4, "m/s or rad/s"),
    ]
    assert incident.report.happened_ns == START_NS + 10 * S


@pytest.mark.parametrize(
    ("between", "count"),
    [
        ([(11.0, "state", "READY"), (12.0, "state", "RUNNING")], 2),
        ([(11.0, "state", "PROTECTIVE_STOP")], 1),
    ],
)
def test_after_the_robot_is_re_armed_it_is_another_event(lab: Any, between, count) -> None:
    lab.play(lab.cause(10.0, "force"), *between, lab.cause(13.0, "torque"))
    assert len(capture(lab.path).drafted) == count


def test_the_same_cause_again_is_another_event(lab: Any) -> None:
    # A guard names each cause of a stop once.
    lab.play(lab.cause(10.0, "estop"), lab.cause(13.0, "estop"))
    assert len(capture(lab.path).drafted) == 2


def test_a_late_cause_belongs_to_the_episode_of_its_stop(lab: Any) -> None:
    first = lab.play(lab.cause(19.0, "estop"))
    capture(lab.path)
    late = lab.cause(1.0, "no_standstill", first, value="0.4", limit="0.05")
    lab.play(late, at_s=21, end_reason=EndReason.SUCCESS, end_detail=None)
    assert capture(lab.path).drafted == ()
    (incident,) = lab.incidents()
    assert (incident.severity, incident.report.episode_id) == (Severity.CRITICAL, first)
    before = lab.kinds()
    capture(lab.path)
    assert lab.kinds() == before


def test_a_worse_cause_that_comes_late_raises_a_draft_that_nobody_has_looked_at(lab: Any) -> None:
    lab.play(lab.cause(15.0, "estop"))
    capture(lab.path)
    more(lab, lab.cause(16.0, "no_standstill", lab_id(lab), value="0.4", limit="0.05"))
    (incident,) = lab.incidents()
    assert (incident.severity, incident.status) == (Severity.CRITICAL, Status.DRAFT)
    assert incident.report.description.endswith("no_standstill: Because of no_standstill.")
    assert [quantity.name for quantity in incident.report.quantities] == ["speed after the stop"]
    before = lab.kinds()
    capture(lab.path)
    assert lab.kinds() == before


CONFIRMED = Review(verdict="confirmed", note="A drill.")
DISMISSED = Review(verdict="dismissed", note="A drill.")
CORRECTED = Correction(fields={"task": "another"}, reason="It was another one.")


def judge(lab: Any, body: Body) -> None:
    with open_log(lab.path) as log:
        (incident,) = log.incidents()
        log.file(body, by="R. Example", via=Via.CLI, incident_id=incident.incident_id)


@pytest.mark.parametrize("body", [CONFIRMED, CORRECTED])
def test_the_words_that_a_person_has_looked_at_are_left_as_they_are(lab: Any, body: Body) -> None:
    lab.play(lab.cause(15.0, "estop"))
    capture(lab.path)
    judge(lab, body)
    before = lab.kinds()
    more(lab, lab.cause(16.0, "torque", lab_id(lab)))
    assert lab.kinds() == before


@pytest.mark.parametrize("body", [CONFIRMED, DISMISSED, CORRECTED])
def test_a_worse_cause_reopens_what_a_person_has_judged(lab: Any, body: Body) -> None:
    lab.play(lab.cause(15.0, "estop"))
    capture(lab.path)
    judge(lab, body)
    (before,) = lab.incidents()
    late = (16.0, "event", "person_contact", "at the gate", {})
    more(lab, late)
    (incident,) = lab.incidents()
    assert (incident.severity, incident.category) == (Severity.MAJOR, Category.PERSON_CONTACT)
    assert (incident.counts, incident.is_reviewed, incident.status) == (True, False, Status.DRAFT)
    assert incident.report.description == before.report.description
    assert incident.records[-1].body.reason.splitlines() == [
        "A worse cause of the same event was recorded.",
        "- 1.00 s later, person_contact: at the gate",
    ]
    kinds = lab.kinds()
    more(lab, late)
    capture(lab.path)
    assert lab.kinds() == kinds
    # Whoever finds it to be milder all the same has the last word.
    judge(lab, Reclassification(severity="minor", category="collision", reason="A touch."))
    kinds = lab.kinds()
    more(lab, late)
    assert lab.kinds() == kinds


def lab_id(lab: Any) -> str:
    return lab.planned[Side.REAL][0].episode_id


def more(lab: Any, *said: tuple[Any, ...]) -> None:
    """Capture again, after the guard has said more of the first episode."""
    from robo_eval_incidents.happened import Occurrence, guard_occurrence, scene_of
    from robo_eval_incidents.rule import read_rules

    with EpisodeStore(lab.path, durable=False, read_only=True) as store:
        scene = scene_of(next(iter(store.episodes())), lab.path, says_help=True)
    heard = [
        guard_occurrence(name, text, START_NS + round(second * S), values)
        if on == "cause"
        else Occurrence(on="event", name=name, text=text, time_ns=START_NS + round(second * S))
        for second, on, name, text, values in said
    ]
    with open_log(lab.path) as log:
        capturing.Capturing(lab.trial, log, read_rules()).scene(scene, heard)


def test_events_of_a_site_are_captured_by_name(lab: Any) -> None:
    said = {"event": "collision", "text": "hit the fixture", "force_n": 80.0, "limit_n": 65}
    lab.play(
        (3.0, "event", {"event": "note", "text": "no rule names it"}),
        (10.0, "event", said),
        end_reason=EndReason.FAILURE,
        end_detail=None,
    )
    capture(lab.path)
    (incident,) = lab.incidents()
    assert (incident.severity, incident.category) == (Severity.MINOR, Category.COLLISION)
    assert "hit the fixture" in incident.report.description
    (quantity,) = incident.report.quantities
    assert (quantity.name, quantity.value, quantity.limit) == ("contact force", 80.0, 65.0)


def test_a_collision_and_the_stop_it_leads_to_are_one_event(lab: Any) -> None:
    lab.play(
        *((n / 10, "state", "RUNNING") for n in range(100)),
        (9.71, "event", {"event": "collision"}),
        (9.93, "event", {"event": "collision"}),
        lab.cause(9.95, "force"),
        (10.0, "state", "PROTECTIVE_STOP"),
    )
    capture(lab.path)
    (incident,) = lab.incidents()
    assert (incident.severity, incident.category) == (Severity.MINOR, Category.COLLISION)
    assert "force: Because of force." in incident.report.description


def test_a_stop_that_the_plan_provoked_says_so(lab: Any) -> None:
    inject = {"event": "inject", "fault": "estop", "pressed": True}
    lab.play((14.9, "event", inject), lab.cause(15.0, "estop"))
    capture(lab.path)
    (incident,) = lab.incidents()
    assert "The plan had injected: estop." in incident.report.description


# Where the trace says nothing ------------------------------------------------------------------


def torn(folder: Path, share: float = 0.9) -> None:
    path = folder / f"{folder.name}_0.mcap"
    path.write_bytes(path.read_bytes()[: round(path.stat().st_size * share)])


def useless(folder: Path) -> None:
    path = folder / f"{folder.name}_0.mcap"
    path.write_bytes(path.read_bytes()[:200])


def missing(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


@pytest.mark.parametrize(("spoil", "has_cut"), [(torn, True), (useless, False), (missing, False)])
def test_a_broken_trace_never_costs_a_draft(lab: Any, spoil, has_cut: bool) -> None:
    name = lab.play(lab.cause(8.0, "estop"))
    spoil(lab.path / "traces" / name)
    capture(lab.path)
    (incident,) = lab.incidents()
    assert incident.category is Category.EMERGENCY_STOP
    assert any(each.uri.startswith("incidents/") for each in incident.evidence) is has_cut
    assert ("could not be cut out: traces/" in incident.report.description) is not has_cut
    assert str(lab.path) not in incident.report.description
    before = lab.kinds()
    capture(lab.path)
    assert lab.kinds() == before


def test_a_draft_made_before_the_trace_was_torn_is_the_same_event(lab: Any) -> None:
    name = lab.play(lab.cause(8.0, "force"), lab.cause(8.5, "torque"))
    capture(lab.path)
    folder = lab.path / "traces" / name
    (folder / f"{name}_0.mcap").unlink()
    assert capture(lab.path).drafted == ()
    assert len(lab.incidents()) == 1


@pytest.mark.parametrize(
    ("reason", "detail", "category"),
    [
        (EndReason.SAFETY_STOP, "guard: workspace", Category.WORKSPACE_LIMIT),
        (EndReason.SAFETY_STOP, None, Category.PROTECTIVE_STOP),
        (EndReason.OPERATOR_STOP, "by hand", Category.PROTECTIVE_STOP),
        (EndReason.OUT_OF_BOUNDS, None, Category.WORKSPACE_LIMIT),
        (EndReason.LOST, "the guard died", Category.WATCHDOG),
    ],
)
def test_how_an_episode_ended_is_enough(lab: Any, reason, detail, category) -> None:
    lab.play(end_reason=reason, end_detail=detail, has_trace=False)
    capture(lab.path)
    (incident,) = lab.incidents()
    assert incident.category is category
    assert incident.report.happened_ns == START_NS + 20 * S
    assert "There is no trace of it." in incident.report.description
    assert capture(lab.path).known == 1


def test_an_episode_was_lost_where_its_trace_ends(lab: Any) -> None:
    name = lab.play(end_reason=EndReason.LOST, end_detail="cut off", duration_s=0.0)
    capture(lab.path)
    (incident,) = lab.incidents()
    assert incident.report.happened_ns == START_NS + 29_900_000_000
    missing(lab.path / "traces" / name)
    assert capture(lab.path).drafted == ()


@pytest.mark.parametrize("has_log", [True, False])
def test_what_is_recovered_is_drafted_where_a_run_had_a_log(lab: Any, has_log: bool) -> None:
    name = lab.next(Side.TWIN).episode_id
    start = {"episode_id": name, "policy_digest": "1" * 64, "start_ns": START_NS, "robot": "arm"}
    with BagWriter(lab.path / "traces" / name, [], chunk_bytes=1024, start=start):
        pass
    if has_log:
        open_log(lab.path, make=True).close()
    recover(lab.path, json=True)
    assert (lab.path / "incidents.db").exists() is has_log
    if has_log:
        (incident,) = lab.incidents()
        assert (incident.report.episode_id, incident.report.robot) == (name, "arm")


@pytest.mark.parametrize(
    "reason", [EndReason.SUCCESS, EndReason.FAILURE, EndReason.TIMEOUT, EndReason.FAULT]
)
def test_an_episode_that_just_ended_is_no_incident(lab: Any, reason: EndReason) -> None:
    lab.play(end_reason=reason, end_detail=None)
    assert capture(lab.path).drafted == ()
    assert lab.kinds() == []


def test_a_simulated_run_out_of_bounds_has_its_trace_too(lab: Any) -> None:
    lab.play(side=Side.SIM, end_reason=EndReason.OUT_OF_BOUNDS, end_detail=None)
    capture(lab.path)
    (incident,) = lab.incidents()
    assert (incident.report.side, incident.report.robot) == (Side.SIM, "simulator")
    cut = incident.evidence[-1]
    assert cut.start_ns == START_NS + 10 * S
    assert cut.sha256 == file_digest(lab.path / cut.uri)


def test_a_row_without_a_time_is_of_when_the_trial_was_made(lab: Any) -> None:
    lab.play(end_reason=EndReason.OPERATOR_STOP, end_detail=None, start_ns=None, has_trace=False)
    capture(lab.path)
    (incident,) = lab.incidents()
    assert abs(incident.report.happened_ns - time.time_ns()) < 600 * S
    assert capture(lab.path).drafted == ()


def test_hostile_words_of_a_robot_are_kept_readable(lab: Any) -> None:
    episode = lab.next().episode_id
    text = "<script>alert(1)</script>\x00\u202e" + "x" * 5000
    values = {
        "episode_id": episode,
        "value": "nan",
        "limit": "1e999",
        "unit": "N\n",
        "joint": "j" * 900,
    }
    lab.play((15.0, "cause", "force", text, values))
    capture(lab.path)
    (incident,) = lab.incidents()
    assert "<script>alert(1)</script>??xxx" in incident.report.description
    assert len(incident.report.description) < 1000
    assert incident.report.quantities == ()


def test_what_is_no_message_costs_no_other(lab: Any) -> None:
    broken = lab.cause(14.0, "torque")
    huge = {"event": "collision", "force_n": 10**400, "limit_n": True, "text": ["no", "text"]}
    lab.play((13.0, "raw", b"\0\1\0\0\xff"), broken, (15.0, "event", huge), (16.0, "event", "text"))
    capture(lab.path)
    (incident,) = lab.incidents()
    assert incident.report.description.splitlines()[1:] == [
        "- torque: Because of torque.",
        "- 1.00 s later, collision",
    ]
    assert incident.report.quantities == ()


def test_a_storm_of_events_is_one_incident_that_fits(lab: Any) -> None:
    storm = [(10 + n / 100, "event", {"event": "collision", "text": "x" * 900}) for n in range(500)]
    named = [lab.cause(16 + n / 100, f"cause_{n}{'y' * 200}") for n in range(100)]
    lab.play(*storm, *named)
    capture(lab.path)
    (incident,) = lab.incidents()
    assert "(500 times)" in incident.report.description
    assert len(incident.report.description) <= 7000
    before = lab.kinds()
    capture(lab.path)
    assert lab.kinds() == before


def test_times_that_no_clock_has_are_brought_into_range(lab: Any) -> None:
    lab.play(end_reason=EndReason.OUT_OF_BOUNDS, end_detail=None, duration_s=1e12, has_trace=False)
    before = {"start_ns": -(10**18), "duration_s": 1.0}
    lab.play(end_reason=EndReason.OUT_OF_BOUNDS, end_detail=None, has_trace=False, **before)
    assert len(capture(lab.path).drafted) == 2
    assert lab.incidents()[0].report.happened_ns == 0


def test_a_row_that_names_a_file_elsewhere_is_not_followed(lab: Any, record, tmp_path) -> None:
    record(tmp_path / "secret")
    lab.play(has_trace=False)
    with closing(sqlite3.connect(lab.path / "episodes.db")) as database, database:
        database.execute("UPDATE episodes SET trace_uri = '../secret'")
    with pytest.raises(InputError, match="leads out of the trial"):
        capture(lab.path)
    assert not (lab.path / "incidents").exists()


# Where drafts go -------------------------------------------------------------------------------


def test_another_log_gets_the_same_incident_and_its_own_piece(lab: Any, tmp_path: Path) -> None:
    lab.play(lab.cause(15.0, "estop"))
    with open_log(tmp_path / "site" / "incidents.db", station="site", make=True) as log:
        there = capture(lab.path, log)
        assert capture(lab.path).drafted == there.drafted
        (incident_id,) = there.drafted
        (piece,) = log.incident(incident_id).evidence
        assert (tmp_path / "site" / piece.uri).is_file()
        assert piece.uri == f"incidents/{incident_id}-{piece.sha256[:12]}.mcap"
        assert merge(lab.path / "incidents.db", log).files == []
        assert [each.incident_id for each in log.incidents()] == [incident_id]


def test_pieces_of_two_copies_of_a_trace_both_stay(lab: Any, tmp_path: Path) -> None:
    name = lab.play(lab.cause(8.0, "estop"))
    shutil.copytree(lab.path, tmp_path / "copy")
    torn(tmp_path / "copy" / "traces" / name, 0.45)
    with open_log(tmp_path / "copy", station="copy", make=True) as log:
        capture(tmp_path / "copy", log)
    with open_log(tmp_path / "site" / "incidents.db", station="site", make=True) as log:
        capture(lab.path, log)
        copied = merge(tmp_path / "copy" / "incidents.db", log).files
        (incident,) = log.incidents()
    cuts = [each for each in incident.evidence if each.uri.startswith("incidents/")]
    assert len({each.uri for each in cuts}) == len({each.sha256 for each in cuts}) == 2
    assert len(copied) == 1
    assert verify_log(tmp_path / "site" / "incidents.db").ok
    # What was cut out elsewhere is not cut out again.
    with open_log(tmp_path / "site" / "incidents.db") as log:
        capture(tmp_path / "copy", log)
        assert log.incident(incident.incident_id).evidence == incident.evidence


@pytest.mark.parametrize("name", ["lab", "site"])
def test_two_robots_that_play_at_once_have_incidents_of_their_own(
    lab: Any, record, tmp_path, name
) -> None:
    other = type(lab)(tmp_path / "other", record, name)
    names = [
        lab.play(lab.cause(15.0, "estop"), robot="cell_a"),
        other.play(lab.cause(15.0, "estop", lab_id(lab)), robot="cell_b", at_s=20),
    ]
    assert names[0] == names[1]
    with open_log(tmp_path / "site" / "incidents.db", make=True) as log:
        for trial in (lab, other, lab, other):
            capture(trial.path, log)
        assert [each.report.robot for each in log.incidents()] == ["cell_a", "cell_b"]


def test_a_draft_whose_place_a_person_corrected_is_the_same_event(lab: Any) -> None:
    name = lab.play(lab.cause(8.0, "force"), lab.cause(8.5, "torque"))
    capture(lab.path)
    judge(lab, Correction(fields={"robot": "arm_2", "episode_id": "e7"}, reason="A wrong label."))
    (lab.path / "traces" / name / f"{name}_0.mcap").unlink()
    assert capture(lab.path).drafted == ()


def test_own_rules_decide(lab: Any, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "own.toml").write_text(
        '[[ignore]]\non = "guard"\nmatch = ["estop"]\nreason = "a drill of the cell"\n'
    )
    lab.play(lab.cause(15.0, "estop"))
    assert capture(lab.path, rules=tmp_path / "rules").drafted == ()


def test_what_is_no_trial_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrialDirectoryError):
        capture(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_capturing_that_is_interrupted_is_finished_by_the_next(lab: Any, monkeypatch) -> None:
    lab.play(lab.cause(15.0, "estop"))

    def killed(*_args: object, **_more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(capturing, "cut_out", killed)
    with pytest.raises(KeyboardInterrupt):
        capture(lab.path)
    assert lab.kinds() == ["opened", "report"]
    monkeypatch.undo()
    assert capture(lab.path).known == 1
    assert lab.kinds() == ["opened", "report", "attachment"]


@pytest.mark.slow
def test_capturing_that_is_killed_at_any_moment_loses_and_doubles_nothing(lab: Any) -> None:
    for _ in range(3):
        lab.play(lab.cause(8.0, "estop"), (9.0, "state", "READY"), lab.cause(15.0, "force"))
    script = f"from robo_eval_incidents.capture import capture; capture({str(lab.path)!r})"
    for delay_ms in range(300, 1500, 40):
        process = subprocess.Popen([sys.executable, "-c", script])
        time.sleep(delay_ms / 1000)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    capture(lab.path)
    incidents = lab.incidents()
    assert len(incidents) == 6
    assert all(len(incident.evidence) == 2 for incident in incidents)
    assert lab.kinds().count("report") == lab.kinds().count("attachment") == 6
    assert verify_log(lab.path / "incidents.db").ok
    # What a kill leaves of a piece has another name, and can be deleted.
    assert len(list((lab.path / "incidents").glob("*.mcap"))) == 6


def test_what_to_do_next_names_drafts_where_some_wait(lab) -> None:
    trial = SimpleNamespace(path=lab.path)
    assert list(_to_review(trial)) == []
    lab.play(lab.cause(15.0, "force"), (15.1, "state", "PROTECTIVE_STOP"))
    capture(lab.path)
    assert list(_to_review(trial)) == [f"robo-eval incidents todo --log {lab.path}"]
