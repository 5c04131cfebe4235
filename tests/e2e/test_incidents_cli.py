"""The incident log from the command line: the work of a shift, and what is refused on the way."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.planned_row import row_for
from robo_eval.log.store import EpisodeStore
from robo_eval_incidents import open_log
from robo_eval_incidents.kinds import plain

PLAN = """
name: lab
tasks: [{levels: [0], env: RoboEval/CartPole3D-v0}]
policies: [balancer]
episodes: 3
sides: [twin]
"""
HOUR_NS = 3_600 * 10**9
PASSWORD = "correct horse battery"


# Running ---------------------------------------------------------------------------------------


@pytest.fixture
def run(quick_cli) -> Callable[..., Any]:
    """Run `robo-eval` in a process of its own, by default with a log and an operator named."""
    named = {"ROBO_EVAL_INCIDENTS": "lab/incidents.db", "ROBO_EVAL_OPERATOR": "Operator A"}

    def call(*arguments: object, environment: dict[str, str] | None = None, **job: Any) -> Any:
        return quick_cli(*arguments, environment=named | (environment or {}), **job)

    return call


@pytest.fixture
def incidents(run) -> Callable[..., Any]:
    """Run a verb that has to succeed; what it printed as JSON."""

    def call(*arguments: object, **options: Any) -> Any:
        done = run("incidents", *arguments, "--json", **options)
        assert done.code == 0, done.err
        return json.loads(done.out)

    return call


@pytest.fixture(scope="session")
def made_lab(commands, tmp_path_factory) -> Path:
    """The folder of a log with one incident, `lab/2`; `lab` makes a copy of it."""
    folder = tmp_path_factory.mktemp("made")
    done = commands(
        "incidents", "add", "brushed the fixture", "--robot", "arm_1", "--station", "lab",
        "--log", "lab/incidents.db", "--by", "Operator A", folder=folder,
    )  # fmt: skip
    assert done.code == 0, done.err
    return folder / "lab"


@pytest.fixture
def lab(tmp_path, made_lab) -> Path:
    """A log with one incident, `lab/2`."""
    return shutil.copytree(made_lab, tmp_path / "lab") / "incidents.db"


def records(log: Path) -> list[str]:
    with sqlite3.connect(log) as database:
        return [row[0] for row in database.execute("select content from records order by number")]


def _newest_body(log: Path) -> dict[str, Any]:
    """What the newest record says, its free texts included."""
    with open_log(log, read_only=True) as opened:
        return plain(list(opened.records())[-1].body)


def files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }


def assert_refused(done: Any, *words: str, code: int = 2) -> None:
    assert done.code == code, (done.out, done.err)
    assert "Traceback" not in done.err
    assert len(done.err.strip().splitlines()) == 1, done.err
    for word in words:
        assert word in done.err


# The work of a shift ---------------------------------------------------------------------------


def test_the_first_incident_makes_the_log(cli, tmp_path):
    home = {"XDG_DATA_HOME": str(tmp_path / "data"), "ROBO_EVAL_OPERATOR": "Operator A"}
    done = cli("incidents", "add", "stopped at the fence", "--robot", "arm_1", **home)
    assert done.code == 0, done.err
    log = tmp_path / "data" / "robo-eval" / "incidents.db"
    assert f"a new incident log was made: {log}" in done.err
    assert "/2: near_miss of arm_1 (real), other, " in done.out
    # From here on a description is enough.
    second = cli("incidents", "add", "again", "--when", "-10min", **home)
    assert second.code == 0, second.err
    assert "near_miss of arm_1 (real)" in second.out
    assert second.err == ""
    verified = cli("verify", log)
    assert verified.code == 0, verified.err
    assert "3 incident records of 1 station" in verified.out


@pytest.fixture
def answer(lab, environment) -> Callable[..., tuple[str, dict[str, Any]]]:
    """Run `add` at a terminal and answer what it asks: what was shown, and what was reported."""

    def call(*answers: str) -> tuple[str, dict[str, Any]]:
        left = list(answers)
        child, terminal = pty.fork()
        if child == 0:
            os.environ.update(environment(ROBO_EVAL_OPERATOR="Operator A"))
            program = [sys.executable, "-m", "robo_eval", "incidents", "add", "--log", str(lab)]
            os.execv(sys.executable, program)
        shown = b""
        while True:
            try:
                part = os.read(terminal, 4_096)
            except OSError:  # so a terminal ends
                break
            shown += part
            # The space as well: a question may come in two parts, and what is typed is echoed.
            if shown.endswith((b": ", b"happened? ")):
                os.write(terminal, left.pop(0).encode() + b"\n")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, shown
        assert left == [], "all was asked"
        return shown.decode(), _newest_body(lab)

    return call


def test_whoever_is_at_a_terminal_is_asked(answer):
    text, report = answer("hit the fence", "minr", "minor", "", "", "tomorrow", "-2min", "")
    assert "did you mean 'minor'" in text
    assert "'tomorrow' is not a time" in text
    assert "What happened? hit" in text
    assert "Robot [arm_1]" in text
    assert report["description"] == "hit the fence"
    assert (report["severity"], report["category"], report["robot"]) == ("minor", "other", "arm_1")
    assert report["answers"] == {}


def test_a_near_miss_of_a_known_robot_is_five_answers(answer):
    text, report = answer("near the fence", "", "", "", "")
    assert "injuries" not in text
    assert "is new in this log" not in text
    assert report["severity"] == "near_miss"


def test_a_robot_that_is_new_is_asked_about_once_more(answer):
    text, report = answer("hit it", "", "", "arm_11", "n", "mule  1", "", "")
    assert "arm_11 is new in this log; known: arm_1. Use arm_11? [Y/n]" in text
    assert "mule 1 is new in this log; known: arm_1. Use mule 1? [Y/n]" in text
    assert "note:" not in text
    assert report["robot"] == "mule 1"


def test_the_side_of_a_robot_that_was_a_twin_is_asked(answer, incidents):
    incidents("add", "stopped", "--robot", "stand_in", "--side", "twin", "--when", "-2h")
    incidents("add", "stopped", "--robot", "arm_1")
    text, report = answer("hit it", "", "", "stand_in", "", "")
    assert "Side" in text
    assert (report["robot"], report["side"]) == ("stand_in", "twin")


def test_what_happened_is_asked_until_something_is_said(answer):
    text, report = answer("", "  ", "hit it", "", "", "", "")
    assert text.count("What happened?") == 3
    assert report["description"] == "hit it"


def test_questions_about_injuries_are_answered_or_left_out(answer):
    injuries = ["y", "yes", "N", "perhaps", "none", "unknown", "", "", "", "", ""]
    text, report = answer("pinched a finger", "major", "", "", "", *injuries)
    assert "Did it arise from work, or at the workplace? (yes, no, unknown)" in text
    assert "unknown answer 'perhaps'; valid: yes, no, unknown" in text
    assert "unknown answer 'none'; valid: yes, no, unknown" in text, "none is likelier than another"
    assert report["answers"] == {
        "work_related": "yes", "medical_treatment": "no", "lost_consciousness": "unknown",
    }  # fmt: skip


def test_an_incident_is_settled_by_two_people(lab, run, incidents, tmp_path):
    (tmp_path / "photo.jpg").write_text("not really a photo")
    changed = ["reclassify", "lab/2", "--severity", "major", "--reason", "first aid was given"]
    incidents(*changed)
    incidents("correct", "lab/2", "--robot", "arm_2", "--when", "-1h", "--reason", "wrong label")
    incidents("attach", "lab/2", "photo.jpg", "--copy", "--note", "the fixture")
    own = run("incidents", "review", "lab/2", "--confirm", "--note", "seen")
    assert_refused(own, "Operator A reported or last changed", "another person has to review it")
    incidents("review", "lab/2", "--confirm", "--note", "seen", "--by", "Operator B")
    incidents("act", "lab/2", "a longer guard", "--owner", "Operator C", "--due", "2030-04-01")
    early = run("incidents", "close", "lab/2", "--note", "done")
    assert_refused(
        early,
        "cannot be closed: action 'a longer guard' of Operator C, due 2030-04-01, was not checked",
    )
    incidents("check", "lab/2", "--not-effective", "--how", "it bends")
    assert "found not to be effective: act anew, or check it again" in run("incidents", "todo").out
    own = ["check", "lab/2", "--effective", "--how", "200 cycles", "--by", "Operator C"]
    assert_refused(run("incidents", *own), "Operator C owns this action")
    incidents(*own[:-2])
    incidents("close", "lab/2", "--note", "done")
    shown = incidents("show", "lab/2")
    assert (shown["status"], shown["severity"], shown["robot"]) == ("closed", "major", "arm_2")
    assert [record["kind"] for record in shown["records"]] == [
        "report", "reclassification", "correction", "attachment", "review", "action",
        "effectiveness", "effectiveness", "closure",
    ]  # fmt: skip
    piece = shown["evidence"][0]
    copy = lab.parent / piece["uri"]
    assert hashlib.sha256(copy.read_bytes()).hexdigest() == piece["sha256"]
    text = run("incidents", "show", "lab/2").out
    assert "lab/2: major, other, closed" in text
    for said in (
        "Reported: near miss, other", "Severity: near miss → major", "first aid was given",
        "Robot: arm_1 → arm_2", "wrong label", "the fixture", "Verdict: confirmed", "seen",
        "Owner: Operator C", "Due: 2030-04-01", "a longer guard",
        "Action: a longer guard", "Effective: no", "it bends", "Closed",
    ):  # fmt: skip
        assert said in text, said
    listed = incidents("list", "--status", "closed", "--severity", "major", "--since", "-1d")
    assert [one["name"] for one in listed["incidents"]] == ["lab/2"]
    assert_refused(run("incidents", "list", "--robot", "arm_1"), "unknown robot 'arm_1'", "arm_2")
    assert run("verify", lab).code == 0


def test_a_robot_that_an_option_names_and_the_log_does_not_know_is_noted(lab, run, incidents):
    note = "note: {} is new in this log; known: {}\n"
    verbs = [
        ["add", "x", "--robot", "arm_2"], ["nil", "--since", "-1h", "--robot", " arm_3 "],
        ["exposure", "--mode", "idle", "--since", "-1h", "--robot", "arm_4"],
        ["correct", "lab/2", "--reason", "x", "--robot", "arm_5"],
    ]  # fmt: skip
    known = ["arm_1"]
    for verb in verbs:
        before = run("incidents", *verb, "--by", " ")
        assert_refused(before, "--by: is empty")
        done = run("incidents", *verb)
        robot = verb[-1].strip()
        assert (done.code, done.err) == (0, note.format(robot, ", ".join(known)))
        known.append(robot)
    # Those that are known by now, by incidents, hours or shifts.
    for robot in known[1:]:
        assert run("incidents", "nil", "--since", "-1h", "--robot", robot).err == ""
    assert run("incidents", "add", "x").err == ""
    assert run("incidents", "nil", "--since", "-1h", "--robot", "").err == "", "of all robots"
    with_json = run("incidents", "add", "x", "--robot", "mule", "--json")
    assert json.loads(with_json.out)["kind"] == "report"
    assert with_json.err.startswith("note: mule is new in this log")


def test_a_month_is_a_time_that_counts_in_a_period_which_holds_it(lab, run, incidents):
    added = run("incidents", "add", "a scratch", "--when", "2025-11", "--robot", "arm_1")
    assert "lab/3: near_miss of arm_1 (real), other, 2025-11, by" in added.out
    november = ["--since", "2025-11-01T00:00:00Z", "--until", "2025-12-01T00:00:00Z"]
    half = ["--since", "2025-11-10T00:00:00Z"]
    assert incidents("rates", *november)["sides"]["real"]["counts"]["near_miss"] == 1
    text = run("incidents", "rates", *half).out
    assert "not counted: lab/3, 2025-11, may lie in this period or outside" in text
    listed = incidents("list", *half)["incidents"]
    assert [one["time"] for one in listed][-1] == "2025-11"
    incidents("correct", "lab/3", "--when", "unknown", "--reason", "the form does not say")
    assert "When: at a time not known" in run("incidents", "show", "lab/3").out
    assert_refused(
        run("incidents", "add", "x", "--when", "2025-11-07T17:06"),
        "--when: '2025-11-07T17:06' names no zone", "2025-11 Europe/Berlin",
    )  # fmt: skip


def test_hours_and_kilometres_come_from_a_table(lab, run, incidents, tmp_path):
    (tmp_path / "hours.csv").write_text("robot,period,hours,km\narm_1,2026-01,100,400\n")
    first, again = (incidents("exposure", "hours.csv") for _ in range(2))
    assert (first["added"], again["added"]) == ({"hours.csv": 1}, {"hours.csv": 0})
    assert [(row["hours"], row["km"]) for row in again["rows"]] == [(100.0, 400.0)]
    assert "hours.csv: 0 lines added" in run("incidents", "exposure", "hours.csv").out
    rates = incidents("rates")["sides"]["real"]["rates_per_1000_km"]["near_miss"]
    assert (rates["value"], rates["n"]) == (2.5, 1)
    assert "incidents per 1,000 km, of robots that went 400 km" in run("incidents", "rates").out
    (tmp_path / "far.csv").write_text("robot,period,hours,km\nfleet,2026-01,700,3222222\n")
    assert "3,222,222" in run("incidents", "exposure", "far.csv").out
    assert "robots that went 3,222,622 km" in run("incidents", "rates").out
    before = records(lab)
    (tmp_path / "hours.csv").write_text("robot,period,hours\narm_1,2026-02,100\n")
    assert_refused(run("incidents", "exposure", "hours.csv", "nowhere"), "no such trial")
    (tmp_path / "hours.csv").write_text("robot,period,hours\narm_1,January,100\n")
    assert_refused(run("incidents", "exposure", "hours.csv"), "hours.csv: line 2, column period")
    assert records(lab) == before


def test_an_incident_is_packed_and_the_pack_is_verified(lab, run, incidents, tmp_path):
    (tmp_path / "photo.jpg").write_text("not really a photo")
    incidents("attach", "lab/2", "photo.jpg", "--copy")
    pack = ["pack", "lab/2", "--out", "one.zip", "--key", "keys/own.pem"]
    done = incidents(*pack)
    assert (done["records"], len(done["files"]), done["settings"]) == (2, 1, False)
    text = run("verify", "one.zip").out
    assert "checked: 2 records, and how the incident stands by them" in text
    assert f"signed by key {done['signed_by']}" in text
    assert json.loads(run("verify", "one.zip", "--json").out)["ok"]
    assert_refused(run("incidents", *pack), "one.zip: exists already")
    assert_refused(run("verify", "one.zip", "--checkpoint", "x"), "--checkpoint: a pack has none")
    other = run("verify", "one.zip", "--signed-by", "0" * 16)
    assert_refused(other, "one.zip: 1 problem found; do not trust this pack", code=1)
    (tmp_path / "two.zip").write_text("no zip")
    assert_refused(run("verify", "two.zip"), "two.zip: is not a zip file")


def test_what_counts_until_it_is_reviewed_is_shown(lab, run, incidents):
    incidents("reclassify", "lab/2", "--severity", "major", "--reason", "x")
    incidents("reclassify", "lab/2", "--severity", "near_miss", "--reason", "x")
    assert "near_miss (counts as major)" in run("incidents", "list").out
    assert "Counts as: arm_1" not in run("incidents", "show", "lab/2").out
    moved = ["--robot", "arm_2", "--when", "2026-03-01T10:00:00Z", "--reason", "x"]
    time = incidents("show", "lab/2")["time"][:19]
    incidents("correct", "lab/2", *moved)
    assert (
        f"  Counts as: arm_1 (real), {time.replace('T', ' ')} UTC, until it is reviewed\n"
        in run("incidents", "show", "lab/2").out
    )
    for name in ("Operator B", "Operator C"):
        incidents("review", "lab/2", "--confirm", "--note", "seen", "--by", name)
    shown = run("incidents", "show", "lab/2").out + run("incidents", "list").out
    assert "counts as" not in shown.lower()


def test_one_that_was_dismissed_is_not_said_to_wait_for_its_closure(lab, run):
    done = run("incidents", "review", "lab/2", "--dismiss", "--note", "a drill")
    assert "it is near_miss and dismissed now" in done.out
    assert "can be closed" not in done.out + run("incidents", "show", "lab/2").out
    again = ["review", "lab/2", "--confirm", "--note", "none", "--by", "Operator B"]
    assert "it can be closed: robo-eval incidents close lab/2" in run("incidents", *again).out


def test_what_was_said_is_printed_to_its_end(lab, run, incidents):
    note = "x" * 300 + " " + "word " * 100 + "end"
    incidents("review", "lab/2", "--confirm", "--note", note, "--by", "Operator B")
    text = run("incidents", "show", "lab/2").out
    assert "…" not in text
    table = text.split("records of")[1]
    assert table.count("x") == 300
    assert table.count("word") == 100
    assert "end" in table


@pytest.mark.parametrize("verb", ["list", "todo"])
def test_a_trial_or_log_may_be_named_without_an_option(lab, incidents, verb):
    unnamed = {"ROBO_EVAL_INCIDENTS": "elsewhere.db"}
    assert incidents(verb, "lab", environment=unnamed) == incidents(verb)


def test_what_is_left_to_do_is_listed(lab, run, incidents):
    assert [one["name"] for one in incidents("todo")["todo"]] == ["lab/2"]
    incidents("add", "hit the fence", "--severity", "major", "--robot", "arm_2")
    act = ["act", "lab/3", "a longer guard", "--owner", "Operator B", "--due", "2020-04-01"]
    incidents(*act)
    incidents("act", "lab/2", "a sign", "--owner", "Operator C", "--due", "2200-04-01")
    found = incidents("todo")
    assert [one["name"] for one in found["todo"]] == ["lab/3", "lab/2"], "overdue first"
    late = found["todo"][0]["steps"][0]
    assert (late["verb"], late["owner"], late["due"]) == ("check", "Operator B", "2020-04-01")
    today = date.fromisoformat(found["today"])
    assert late["overdue_days"] == (today - date(2020, 4, 1)).days
    table = run("incidents", "todo").out
    assert "needs a review by somebody else than Operator A" in table
    assert f"{late['overdue_days']} d" in table
    of_c = incidents("todo", "--owner", "operator c")["todo"]
    assert [(one["name"], len(one["steps"])) for one in of_c] == [("lab/2", 1)]
    lab.with_name("clocks.toml").write_text(
        '[near_miss]\nhours = 1e-5\nto = "the inspectorate"\ncounted_from = "happened"\n'
    )
    assert {one["kind"] for one in incidents("todo", "--overdue")["clocks"]} == {"near_miss"}
    wrong = run("incidents", "told", "lab/2", "--to", "the insurer")
    assert_refused(wrong, "--to: unknown recipient 'the insurer'", "the inspectorate")
    incidents("told", "lab/2", "--to", "the inspectorate", "--text", "their 4711")
    told = {one["name"]: one["told_by"] for one in incidents("todo")["clocks"]}
    assert told["lab/2"] == "Operator A"
    assert "the inspectorate was told, says Operator A" in run("incidents", "todo").out
    lab.with_name("clocks.toml").unlink()
    overdue = run("incidents", "todo", "--overdue", "--robot", "arm_1")
    assert (overdue.code, overdue.out) == (0, "lab/incidents.db: nothing is overdue of arm_1\n")
    nobody = run("incidents", "todo", "--owner", "Operator X")
    assert_refused(nobody, "unknown owner 'Operator X'; did you mean", "Operator B, Operator C")
    early = run("incidents", "todo", "--owner", "Operator C", "--overdue")
    assert early.out == "lab/incidents.db: nothing is overdue for Operator C\n"
    for name in ("lab/2", "lab/3"):
        incidents("review", name, "--dismiss", "--note", "a drill", "--by", "Operator B")
    incidents("review", "lab/3", "--dismiss", "--note", "a drill", "--by", "Operator C")
    done = run("incidents", "todo")
    assert (done.code, done.out) == (0, "lab/incidents.db: nothing is left to do\n")
    nobody = run("incidents", "todo", "--owner", "Operator X")
    assert nobody.out == "lab/incidents.db: nothing is left to do for Operator X\n"


def test_hours_rates_and_shifts_without_incidents(lab, run, incidents):
    before = run("incidents", "rates")
    assert "no hours were logged" in before.out
    nil = run("incidents", "nil", "--since", "-3h", "--until", "-1h")
    assert "lab/3: no incident of any robot of lab (real) from" in nil.out
    contrary = run("incidents", "nil", "--since", "-1h")
    assert "note: the log has incidents in that time: lab/2" in contrary.out
    assert "  no robot at work (real), 20" in run("incidents", "exposure").out
    worked = ["--mode", "autonomous", "--robot", "arm_1", "--since", "-2h"]
    found = incidents("exposure", *worked)
    assert found["hours"]["real"] == pytest.approx(2.0)
    text = run("incidents", "exposure").out
    assert text.count("within a shift") == 1
    assert "  lab/4 by Operator A (real), 20" in text
    said = run("incidents", "rates").out
    assert "  1 of the incidents is not reviewed; it counts as well\n" in said
    incidents("add", "again", "--when", "-1min")
    said = run("incidents", "rates").out
    assert "  2 of the incidents are not reviewed; they count as well\n" in said
    incidents("review", "lab/6", "--dismiss", "--note", "a drill")
    rates = incidents("rates")["sides"]["real"]
    assert rates["counts"]["near_miss"] == 1
    assert rates["rates_per_1000_h"]["near_miss"]["value"] == pytest.approx(500.0)
    assert rates["rates_per_1000_h"]["near_miss"]["method"] == "garwood"


@pytest.mark.parametrize("verb", ["rates", "trends", "todo", "exposure", "list", "show lab/2"])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_numbers_of_a_log_whose_lists_were_edited_come_with_the_problem(lab, run, verb, form):
    with closing(sqlite3.connect(lab)) as database, database:
        database.execute("UPDATE incidents SET severity = 'minor', counted_severity = 'minor'")
    done = run("incidents", *verb.split(), "--log", lab, *form)
    assert done.code == 1
    assert done.out
    (line,) = done.err.strip().splitlines()
    assert str(lab) in line
    assert "the lists show another" in line


def test_a_plain_day_is_a_day_of_hours_and_of_a_shift(lab, run, incidents):
    day = run("incidents", "nil", "--since", "2026-02-27", "--until", "2026-02-27")
    assert "from 2026-02-27T00:00:00Z to 2026-02-28T00:00:00Z" in day.out, day.err
    day = ["--mode", "idle", "--robot", "arm_9", "--since", "2026-02-27", "--until", "2026-02-27"]
    (row,) = [one for one in incidents("exposure", *day)["rows"] if one["robot"] == "arm_9"]
    assert row["hours"] == 24


@pytest.fixture
def trial(tmp_path) -> Path:
    """A trial on a twin: three episodes of half an hour."""
    made = TrialDirectory.create(tmp_path / "trial", parse_plan(PLAN, source="plan"))
    rows = [
        row_for(
            planned, made.plan, made.plan_digest, policy_digest="1" * 64, robot="gantry",
            start_ns=(1 + number) * HOUR_NS, duration_s=1_800.0, exposure_s=1_800.0, ticks=200,
            episode_return=1.0, quality=1.0, success=True, end_reason=EndReason.SUCCESS,
            software="robo-eval 1",
        )
        for number, planned in enumerate(schedule(made.plan, Side.TWIN))
    ]  # fmt: skip
    with EpisodeStore(made.path, durable=False) as store:
        store.append(rows)
        made.write_manifest(status="complete", store=store)
    return made.path


def test_hours_of_a_trial_are_logged_once(trial, run, incidents, tmp_path):
    found = incidents("exposure", trial)
    assert found["added"] == {str(trial): 3}
    assert found["hours"] == {"twin": pytest.approx(1.5), "real": 0}
    assert incidents("exposure", trial)["added"] == {str(trial): 0}
    assert incidents("rates")["sides"]["real"]["hours"] is None
    assert incidents("capture", trial) == {"trial": str(trial), "drafted": [], "known": 0}


def test_verify_looks_at_a_trial_and_its_incidents(trial, run, incidents, tmp_path):
    log = trial / "incidents.db"
    incidents("add", "touched the rail", "--robot", "gantry", "--side", "twin", "--log", trial)
    incidents("checkpoint", "--out", "kept.checkpoint", "--log", trial)
    done = run("verify", trial, "--checkpoint", "kept.checkpoint")
    assert done.code == 0, done.err
    assert "3 rows and 0 traces checked" in done.out
    assert "2 incident records of 1 station and 1 checkpoint checked" in done.out
    both = json.loads(run("verify", trial, "--json").out)
    assert (both["ok"], both["rows"], both["incidents"]["records"]) == (True, 3, 2)
    with sqlite3.connect(log) as database:
        change = "update records set content = replace(content, 'gantry', 'gantri')"
        database.execute(change)
    changed = run("verify", trial)
    assert_refused(changed, f"{trial}: ", "problem", code=1)
    assert "was changed: its SHA-256 is" in changed.out
    log.unlink()
    lost = run("verify", trial, "--checkpoint", "kept.checkpoint")
    assert_refused(lost, "incidents.db: is missing, and a checkpoint of it was given")
    log.symlink_to(tmp_path / "unplugged" / "incidents.db")
    unplugged = run("verify", trial)
    assert_refused(unplugged, f"{trial}: 1 problem found", code=1)
    assert "incidents.db: leads to " in unplugged.out


# Stations, checkpoints, tables -----------------------------------------------------------------


def test_a_checkpoint_kept_elsewhere_shows_a_lost_tail(lab, run, incidents, tmp_path):
    shutil.copy(lab, tmp_path / "old.db")
    incidents("add", "once more")
    made = incidents("checkpoint", "--out", "kept.checkpoint", "--key", "key.pem")
    assert made["stations"] == {"lab": 3}
    good = run("verify", lab, "--checkpoint", "kept.checkpoint", "--signed-by", made["signed_by"])
    assert good.code == 0, good.err
    other = run("verify", lab, "--checkpoint", "kept.checkpoint", "--signed-by", "0" * 16)
    assert_refused(other, "problem", code=1)
    assert f"was signed by {made['signed_by']}, not by" in other.out
    text = (tmp_path / "kept.checkpoint").read_text()
    (tmp_path / "edited.checkpoint").write_text(text.replace('sequence\\":3', 'sequence\\":2'))
    assert (tmp_path / "edited.checkpoint").read_text() != text
    edited = run("verify", lab, "--checkpoint", "edited.checkpoint")
    assert_refused(edited, "edited.checkpoint: 1 problem found; do not trust this check", code=1)
    assert "PROBLEM edited.checkpoint: was changed: its signature" in edited.out
    lost = run("verify", "old.db", "--checkpoint", "kept.checkpoint")
    assert_refused(lost, "old.db: 1 problem found", code=1)
    assert "station lab had 3 records, 1 of them are lost" in lost.out
    assert f"signed by key {made['signed_by']}, 20" in lost.out
    assert "covers 3 records; the log does not hold all of them" in lost.out
    incidents("add", "and again")
    grown = run("verify", lab, "--checkpoint", "kept.checkpoint")
    assert "Z, covers 3 of 4 records; 1 was added since" in grown.out
    (tmp_path / "junk").write_text("{}")
    junk = run("verify", lab, "--checkpoint", "junk")
    assert_refused(junk, "junk: is not a checkpoint of an incident log")
    assert "Error" not in junk.err
    again = run("incidents", "checkpoint", "--out", "kept.checkpoint")
    assert_refused(again, "kept.checkpoint: exists already; a checkpoint is never written over")


def test_a_key_beside_the_log_is_warned_of(lab, run, tmp_path):
    beside = run("incidents", "checkpoint", "--out", "a.checkpoint", "--key", "lab/key.pem")
    assert beside.code == 0, beside.err
    assert "warning: lab/key.pem lies beside the log" in beside.err
    elsewhere = run("incidents", "checkpoint", "--out", "b.checkpoint", "--key", "key.pem")
    assert "warning" not in elsewhere.err


def test_without_the_library_for_stamps_nothing_is_written(lab, environment, tmp_path):
    before = files(tmp_path)
    blocked = (
        "import sys; sys.modules['rfc3161_client'] = None; from robo_eval.cli.app import main;"
        " main()"
    )
    sign = ["checkpoint", "--out", "a", "--key", "new.pem", "--stamp", "https://tsa.example"]
    done = subprocess.run(
        [sys.executable, "-c", blocked, "incidents", *sign, "--log", str(lab)],
        cwd=tmp_path, env=environment(ROBO_EVAL_OPERATOR="Operator A"),
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    refused = SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr)
    assert_refused(refused, 'pip install "robo-eval-stack[stamp]"')
    assert files(tmp_path) == before


def test_stations_that_were_apart_are_brought_together(lab, run, incidents, tmp_path):
    truck = ["--log", "truck.db"]
    incidents("add", "tipped over", "--robot", "cart_1", "--station", "truck", *truck)
    (merged,) = incidents("merge", "truck.db")
    assert (merged["added"], merged["known"]) == ({"truck": 2}, 0)
    assert incidents("merge", "truck.db")[0]["added"] == {}
    assert run("incidents", "merge", "truck.db").out == "truck.db: nothing new\n"
    names = [one["name"] for one in incidents("list")["incidents"]]
    assert sorted(names) == ["lab/2", "truck/2"]
    away = ["--copy", "--log", "away/incidents.db"]
    for number in range(3):
        (tmp_path / f"{number}.jpg").write_text(f"photo {number}")
    shown = ["--evidence", "0.jpg", "--robot", "cart_2", "--station", "away"]
    incidents("add", "x", *shown, *away)
    assert "  1 file of evidence copied\n" in run("incidents", "merge", "away/incidents.db").out
    incidents("attach", "away/2", "1.jpg", "2.jpg", *away)
    assert "  2 files of evidence copied\n" in run("incidents", "merge", "away/incidents.db").out
    copies = [*lab.parent.rglob("incidents/*.jpg"), *tmp_path.rglob("away/incidents/*.jpg")]
    assert len(copies) == 6
    assert {file.stat().st_mode & 0o777 for file in copies} == {0o600}
    # As a file of records as well.
    assert incidents("export", "--out", "all.jsonl") == {"file": "all.jsonl", "rows": 7}
    (merged,) = incidents("merge", "all.jsonl", "--log", "copy.db")
    assert merged["added"] == {"away": 3, "lab": 2, "truck": 2}
    assert sorted(records(tmp_path / "copy.db")) == sorted(records(lab))
    assert run("verify", "copy.db").code == 0


def test_tables_go_out_and_come_in(lab, run, incidents, tmp_path):
    incidents("export", "--out", "all.csv")
    before = records(lab)
    assert incidents("import", "all.csv") == {"added": [], "known": 1, "corrected": []}
    assert records(lab) == before
    other = run("incidents", "import", "all.csv", "--log", "other.db")
    assert other.out.startswith("all.csv: 1 incident was added, 0 known\n")
    again = run("incidents", "import", "all.csv", "--log", "other.db")
    assert again.out == "all.csv: 0 incidents were added, 1 known\n"
    (tmp_path / "bad.csv").write_text(
        "source_id,time,severity,robot,description\n1,now,minor,a,b\n"
    )
    bad = run("incidents", "import", "bad.csv", "--log", "new.db")
    assert_refused(bad, "bad.csv: line 2, column time: 'now' is no time of its own")
    assert not (tmp_path / "new.db").exists()
    (tmp_path / "late.csv").write_text(
        "source_id,time,severity,robot,description\n1,2200-01-01,minor,a,b\n"
    )
    (tmp_path / "hours.csv").write_text("robot,period,hours\na,2200-01,1\n")
    for verb, file in (("import", "late.csv"), ("exposure", "hours.csv")):
        bad = run("incidents", verb, file, "--log", "new/new.db")
        assert_refused(bad, f"{file}: line 2, column ", "is still to come")
        assert list((tmp_path / "new").iterdir()) == []
    done = run("incidents", "export", "--out", "all.html", "--since", "-1d")
    assert done.code == 0, done.err
    assert (tmp_path / "all.html").read_text().startswith("<!doctype html>")
    schema = json.loads(run("incidents", "schema").out)
    assert schema["$id"] == "urn:robo-eval:incidents:1"


def test_accounts_are_made_and_closed_and_no_password_is_shown(lab, run, incidents):
    name = "R. Example"
    add = ["user", "add", name, "--role", "reviewer", "--role", "operator", "--password-stdin"]
    made = run("incidents", *add, stdin=PASSWORD + "\n")
    assert made.code == 0, made.err
    assert made.out == "account R. Example was made: operator, reviewer\n"
    assert incidents("user", "list") == [{"name": name, "roles": ["operator", "reviewer"]}]
    changed = run("incidents", "user", "passwd", name, "--password-stdin", stdin=PASSWORD + "2\n")
    assert changed.code == 0, changed.err
    other = run(
        "incidents", "user", "roles", "r. example", "--role", "auditor", "--by", "Operator B"
    )
    assert (other.code, other.out) == (0, "account R. Example has other roles: auditor\n")
    assert incidents("user", "list") == [{"name": name, "roles": ["auditor"]}]
    last = json.loads(records(lab)[-1])
    assert (last["by"], last["body"]["roles"]) == ("Operator B", ["auditor"])
    twice = run("incidents", *add, stdin=PASSWORD + "\n")
    assert_refused(twice, "'R. Example' is there already", "`robo-eval incidents user roles`")
    assert incidents("user", "remove", name)["roles"] == []
    assert "closed" in run("incidents", "user", "list").out
    assert PASSWORD.encode() not in lab.read_bytes()
    assert [json.loads(content)["body"].get("roles") for content in records(lab)[2:]] == [
        ["operator", "reviewer"], ["operator", "reviewer"], ["auditor"], [],
    ]  # fmt: skip


# What is refused -------------------------------------------------------------------------------

# What the command line itself refuses, and one refusal of the log through each verb; what a text,
# a field or a table may hold is asked in unit/incidents. Each with what the refusal names.
WRONG = [
    ("told lab/2 --to ' '", "--to: "),
    ("init", "lab/incidents.db: is there already"),
    ("init --log other.txt/x.db", "other.txt is not a folder"),
    ("init --log ''", "--log: is empty"),
    ("init --log x.db --station a/b", "station 'a/b'"),
    ("add", "say what happened"),
    ("add x -s minr", "did you mean 'minor'"),
    (f"add x -s {'x' * 9_000}", "unknown severity 'xxx"),
    ("add x -w 2026-03-01T09:30", "--when: '2026-03-01T09:30' names no zone; write it"),
    ("add x -w 2026-03-01T09:30:00+01:00:00.5", "not a time with its zone"),
    ("add x -w 2200-01-01T00:00:00Z", "--when: 2200-01-01T00:00:00Z is still to come"),
    (f"add x -w -{'9' * 400}h", "--when: "),
    ("add x\udcff", "is not UTF-8 text"),
    ("add x -q '81 N'", "is not a quantity; write it like force"),
    ("add x --by ' '", "--by: is empty"),
    ("add x -r a -e nowhere.jpg --log new.db", "nowhere.jpg: no such file"),
    ("add x -r a -e other.txt --log new/a.db", "add --copy"),
    ("add x -e other.txt", "add --copy"),
    ("add x -e 'a\nb'", "a\\nb: no such file of evidence"),
    ("add x -e /dev/zero --copy", "neither a file nor a folder"),
    ("nil --since -1h --until -2h", "-2h is not after --since"),
    ("nil --since -1h --until 2200-01-01T00:00Z", "--until: 2200-01-01T00:00Z is still to come"),
    ("withdraw lab/2 --reason x", "no hours and no shift"),
    ("list -r arm_9", "robot 'arm_9'; did you mean 'arm_1'"),
    ("list --severity bad", "unknown severity 'bad'"),
    (f"list --since -{'9' * 400}h", "--since: "),
    ("list lab --log new.db", "name one log"),
    ("list --log other.txt", "other.txt: "),
    (f"list --log 'mysql://a:{PASSWORD}@b/c'", "mysql: "),
    ("show lab/9", "no incident 'lab/9'"),
    ("todo --owner ' '", "--owner: is empty"),
    ("correct lab/2 --reason x", "name a field"),
    ("reclassify lab/2 --reason x", "name --severity"),
    ("attach lab/9 other.txt --copy", "no incident 'lab/9'"),
    ("attach lab/2 lab/incidents.db", "is the log itself"),
    ("attach lab/2 lab/incidents.db-shm", "is the log itself"),
    ("attach lab/2 lab/beside.json", "add --copy"),
    ("attach lab/2 a --since -1h", "both given or both"),
    ("review lab/2 --note x", "--confirm or --dismiss"),
    ("act lab/2 x --owner a --due 86400", "--due: '86400'"),
    ("check lab/2 --effective --how x", "no action that is open"),
    ("check lab/2 --effective --how x --action 3", "has 0 actions, given 3"),
    ("close lab/2 --note x", "cannot be closed: it needs a review"),
    ("capture nowhere", "nowhere: no such trial directory"),
    ("capture lab --log new.db", "is not a trial"),
    ("exposure nowhere", "nowhere: no such trial directory"),
    ("exposure --map m.yaml", "--map: is of a table"),
    ("exposure -r arm_1", "needs --mode"),
    ("exposure --mode idle", "needs --robot and --since"),
    ("exposure --mode idle -r a --since -80000h", "--since: one entry covers 366 days at most"),
    ("exposure --mode asleep -r a --since -1h --until now", "unknown mode 'asleep'"),
    ("rates -r arm_9", "unknown robot 'arm_9'"),
    ("trends -r mule", "unknown robot 'mule'"),
    ("checkpoint --out no/where --key new.pem", "there is no folder"),
    ("checkpoint --out new.pem --key ./new.pem", "is the key to sign with"),
    ("checkpoint --out a --key new.pem --stamp ftp://x", "--stamp: 'ftp://x'"),
    ("merge nowhere.db --log new.db", "nowhere.db: no such file to merge"),
    ("merge other.jsonl --log new.db", "other.jsonl, line 1: is not how an export begins"),
    ("merge . --log new.db", "incidents.db: no such file to merge"),
    ("merge ''", "name of a file to merge is empty"),
    ("import other.csv --map nowhere.yaml", "nowhere.yaml: no such"),
    ("export --out other.csv", "exists already"),
    ("export --out a.html -r x", "a page to print is of a period"),
    ("redact lab/2 --field robot --reason x", "it has description"),
    ("test lab/9", "no incident 'lab/9'"),
    ("pack lab/2 -o a.tar", "a.tar: the name must end in .zip"),
    ("pack lab/2 -o a.zip --trial nowhere", "nowhere: no such trial directory"),
    ("notify nowhere.toml", "nowhere.toml: no such settings file"),
    ("serve --evidence other.txt", "--evidence: other.txt is no"),
    ("user add a --role root", "password: nobody can be asked"),
    ("user passwd a --password-stdin", "no account 'a'"),
]


def test_wrong_input_is_refused_in_one_line_and_changes_nothing(lab, run, tmp_path):
    for name in ("other.txt", "other.csv", "other.jsonl"):
        (tmp_path / name).write_text("precious\n")
    lab.with_name("incidents.db-shm").touch()
    lab.with_name("beside.json").write_text("{}")
    before, there = records(lab), files(tmp_path)
    for line, said in WRONG:
        done = run("incidents", *shlex.split(line), stdin=PASSWORD + "\n")
        try:
            assert_refused(done, said)
            assert PASSWORD not in done.err
            assert "type=" not in done.err
            assert records(lab) == before
            assert files(tmp_path).keys() == there.keys()
        except AssertionError as err:
            raise AssertionError(f"{line:.80}: {err}") from err


def test_every_verb_is_among_what_is_refused(run):
    listed = run("incidents", "--help").out.partition("Commands:")[2].splitlines()
    verbs = {line.split()[0] for line in listed if line.strip()}
    assert verbs - {line.split()[0] for line, _ in WRONG} == {"schema"}


def test_without_a_name_nothing_is_filed(lab, run):
    before = records(lab)
    environment = {"ROBO_EVAL_OPERATOR": ""}
    for arguments in (["add", "x"], ["close", "lab/2", "--note", "x"]):
        done = run("incidents", *arguments, environment=environment)
        assert_refused(done, "ROBO_EVAL_OPERATOR: is empty")
    assert records(lab) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["add", "x"], ["list"], ["show", "lab/2"], ["todo"],
        ["review", "lab/2", "--confirm", "--note", "x"], ["exposure"], ["rates"],
        ["checkpoint", "--out", "a"], ["export", "--out", "a.csv"], ["user", "list"],
        ["serve"],
    ],
    ids=lambda arguments: arguments[0],
)  # fmt: skip
def test_a_log_of_another_version_is_named_and_left_alone(lab, run, arguments):
    with sqlite3.connect(lab) as database:
        database.execute("update meta set value = '99' where name = 'version'")
    before = records(lab)
    done = run("incidents", *arguments)
    assert_refused(done, "is a log of version 99", "use the robo-eval that made it")
    assert records(lab) == before


def test_a_write_protected_log_is_read_and_named_when_written(run, incidents, outside):
    folder = outside / "protected"
    incidents("add", "x", "--robot", "arm_1", "--log", folder / "incidents.db", "--station", "lab")
    log = folder / "incidents.db"
    before = log.read_bytes()
    folder.chmod(0o555)
    log.chmod(0o666)
    try:
        # The file alone is of no use: SQLite puts others beside it.
        assert incidents("list", "--log", log, as_nobody=True, folder=outside)["incidents"]
        log.chmod(0o444)
        for verb in (["list"], ["show", "lab/2"], ["todo"], ["exposure"], ["rates"]):
            incidents(*verb, "--log", log, as_nobody=True, folder=outside)
        assert run("verify", log, as_nobody=True, folder=outside).code == 0
        for verb in (["add", "y"], ["close", "lab/2", "--note", "x"], ["nil", "--since", "-1h"]):
            done = run("incidents", *verb, "--log", log, as_nobody=True, folder=outside)
            assert_refused(done, f"{log}: ", "read-only")
        assert log.read_bytes() == before
        outside.joinpath("keys").mkdir(mode=0o777)
        outside.joinpath("keys").chmod(0o777)
        sign = ["checkpoint", "--out", "keys/out", "--key", "keys/new.pem", "--log", log]
        done = run("incidents", *sign, as_nobody=True, folder=outside)
        assert_refused(done, f"{log}: ", "read-only")
        assert list(outside.joinpath("keys").iterdir()) == []
    finally:
        folder.chmod(0o755)


def test_a_full_disk_loses_nothing(lab, run, incidents, tmp_path):
    incidents("export", "--out", "all.csv")
    table = (tmp_path / "all.csv").read_bytes()
    acknowledged = 0
    for _ in range(40):
        # Stands in for a full disk: no file may grow beyond its size.
        done = run("incidents", "add", "y" * 7_900, most_bytes=150_000)
        if done.code:
            break
        acknowledged += 1
    assert_refused(done, "lab/incidents.db: ", "full")
    out = run("incidents", "export", "--out", "all.csv", "--force", most_bytes=1_000)
    assert out.code == 2
    assert "Traceback" not in out.err
    assert (tmp_path / "all.csv").read_bytes() == table
    assert run("verify", lab).code == 0
    assert len(incidents("list", "--limit", "100")["incidents"]) == acknowledged + 1
    incidents("add", "there is room again")


def test_a_correction_keeps_the_answers_and_quantities_that_it_does_not_name(lab, run, incidents):
    more = ["--answer", "fatality=no", "--quantity", "force=81.2 N (limit 80)", "--quantity",
            "speed=0.3 m/s"]  # fmt: skip
    incidents("correct", "lab/2", *more, "--reason", "measured")
    other = ["--answer", "hospital=no", "--quantity", "force=150 N"]
    incidents("correct", "lab/2", *other, "--reason", "another gauge")
    shown = incidents("show", "lab/2")
    assert shown["answers"] == {"fatality": "no", "hospital": "no"}
    assert [(one["name"], one["value"], one["limit"]) for one in shown["quantities"]] == [
        ("force", 150.0, 80.0), ("speed", 0.3, None),
    ]  # fmt: skip


def test_what_does_not_fit_is_said_at_once(lab, run):
    done = run("incidents", "correct", "lab/2", "--answer", "fatality=yes", "--reason", "late")
    assert "note: what it says of injuries is critical at least, and it is near miss" in done.err
    assert "Does not fit: what it says of injuries" in run("incidents", "show", "lab/2").out
    run("incidents", "reclassify", "lab/2", "--severity", "critical", "--reason", "x")
    done = run("incidents", "reclassify", "lab/2", "--severity", "minor", "--reason", "x")
    assert "it is minor and reported now, and counts as critical until it is reviewed" in done.out


def test_filters_and_periods_take_what_people_write(lab, run, incidents):
    when = ["--when", "2026-03-05T10:00:00Z", "--robot", "arm_1"]
    incidents("add", "fell over", *when, "--severity", "critical")
    both = incidents("list", "--severity", "critical", "--severity", "near_miss")["incidents"]
    assert len(both) == 2
    for since, until, count in (
        ("2026-03-05", "2026-03-05", 1),
        ("2026-03", "2026-03", 1),
        ("2026-02", "2026-02", 0),
        ("2026-03-05 11:00 Europe/Berlin", "2026-03-06", 1),
    ):
        found = incidents("list", "--since", since, "--until", until)["incidents"]
        assert len(found) == count, since
    done = run("incidents", "list", "--since", "unknown")
    assert (done.code, "--since: 'unknown' is no time that a period" in done.err) == (2, True)


def test_an_import_names_robots_that_are_new(lab, run, tmp_path):
    (tmp_path / "t.csv").write_text(
        "time,robot,severity,description,source_id\n2026-03-01T10:00:00Z,Arm 1,minor,fell,1\n"
    )
    done = run("incidents", "import", "t.csv")
    assert done.err == "note: Arm 1 is new in this log; known: arm_1\n"
    assert done.out.endswith("  lab/3\n")
