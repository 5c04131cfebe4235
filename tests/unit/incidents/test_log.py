"""Appending to the log, reading it back, and what happens when the machine does not go along."""

from __future__ import annotations

import collections
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from robo_eval.core.errors import InputError
from robo_eval.log.chain import GENESIS
from robo_eval_incidents import open_log
from robo_eval_incidents import record as record_module
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.kinds import Correction, Exposure, Nil, Review
from robo_eval_incidents.log import make_log
from robo_eval_incidents.record import content_digest, new_id, record_of
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.words import Via


def test_each_record_commits_to_the_one_before(log, report, nil, say):
    say(log, report())
    say(log, nil(1))
    say(log, report(severity="minor"))
    contents = [one.content for one in log.stored(station="cell-1")]
    records = list(log.records(station="cell-1"))
    assert [record.kind for record in records] == ["opened", "report", "nil", "report"]
    assert [record.sequence for record in records] == [1, 2, 3, 4]
    digests = [GENESIS, *(content_digest(content) for content in contents)]
    assert [record.previous_sha256 for record in records] == digests[:-1]
    assert log.heads()["cell-1"].sha256 == digests[-1]


@pytest.mark.parametrize("umask", [0o000, 0o027, 0o077])
def test_nobody_but_its_owner_reads_a_new_log(path, umask, report, say):
    before = os.umask(umask)
    try:
        make_log(path)
        with open_log(path) as log:
            say(log, report())
            files = list(path.parent.glob(f"{path.name}*"))
            assert len(files) == 3, "SQLite keeps two files beside it"
            assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    finally:
        os.umask(before)


def test_a_record_is_stored_as_the_text_its_digest_is_over(log, report, say):
    record = say(log, report(description="Öl auf dem Boden — “nass”"))
    stored = {one.number: one.content for one in log.stored()}[2]
    assert stored == record.content()
    assert stored == json.dumps(
        json.loads(stored), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    assert record_of(stored, record.forms()[1], where="here") == record
    assert "nass" not in stored, "free text lies beside it, and its salted digest is in it"


def test_the_same_entry_twice_is_one_record(log, report):
    said = {"by": "Operator A", "via": Via.API, "record_id": new_id()}
    assert log.file(report(), **said) == log.file(report(), **said)
    assert log.heads()["cell-1"].sequence == 2
    with pytest.raises(InputError, match="says something else"):
        log.file(report(robot="franka"), **said)
    assert log.heads()["cell-1"].sequence == 2


def test_the_same_review_twice_is_one_record(log, report, say):
    about = say(log, report()).record_id
    said = {"by": "Reviewer B", "via": Via.WEB, "about": about, "record_id": new_id()}
    fields = {"verdict": "confirmed", "note": "seen"}
    assert log.record("review", fields, **said) == log.record("review", fields, **said)
    assert len(log.incident(about).reviews) == 1


def test_an_incident_is_found_by_id_beginning_and_number(log, report, say):
    first, second = say(log, report()), say(log, report())
    assert log.incident(first.record_id).incident_id == first.record_id
    assert log.incident("cell-1/3").incident_id == second.record_id
    for name in ("cell-1/9", "nothing", "0" * 8, "%", "' OR 1=1 --"):
        with pytest.raises(InputError, match="no incident"):
            log.incident(name)
    assert first.record_id[:8] == second.record_id[:8], "ids of one minute begin alike"
    with pytest.raises(InputError, match="several incidents"):
        log.incident(first.record_id[:8])


@pytest.mark.parametrize("record_id", ["abc", "", "A" * 36, "x" * 36])
def test_an_id_that_is_none_is_refused(log, nil, say, record_id):
    with pytest.raises(InputError, match="record_id"):
        log.file(nil(1), by="A", via=Via.CLI, record_id=record_id)
    assert log.heads() == {}


def test_the_beginning_of_an_id_is_looked_for_among_incidents(log, report, say):
    about = say(log, report()).record_id
    assert log.incident(about[:8]).incident_id == about, "the chain's first record begins alike"


def test_exposure_ends_within_64_bits():
    with pytest.raises(ValueError, match="after the year 2262"):
        Exposure(robot="r", side="real", mode="autonomous", start_ns=2**63 - 1, seconds=1e7)


def test_who_comes_second_opens_what_the_first_has_made(tmp_path):
    found = []

    def work():
        with open_log(tmp_path / "incidents.db", make=True) as opened:
            found.append(opened.station)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len(set(found)) == 1


def test_threads_of_one_program_share_a_log(log, nil, say):
    def work(number):
        for place in range(25):
            say(log, nil(100 * number + place))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.heads()["cell-1"].sequence == 101
    assert verify_log(log.database.path).ok


_WRITER = """
import sys
from robo_eval_incidents import open_log
from robo_eval_incidents.kinds import Nil
from robo_eval_incidents.words import Via

path, station, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open_log(path, station=station) as log:
    for number in range(count):
        record = log.file(Nil(start_ns=number, end_ns=number + 1), by="Operator A", via=Via.CLI)
        print(record.record_id, flush=True)
"""


def _write(path, station, count):
    command = [sys.executable, "-c", _WRITER, str(path), station, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_processes_write_one_chain(log, path):
    writers = [_write(path, "cell-1", 60) for _ in range(2)]
    acknowledged = [line for writer in writers for line in writer.communicate()[0].split()]
    assert [writer.returncode for writer in writers] == [0, 0]
    assert len(acknowledged) == len(set(acknowledged)) == 120
    assert {record.record_id for record in log.records()} >= set(acknowledged)
    found = verify_log(path)
    assert found.ok, found.problems
    assert found.records == 121


def test_who_wrote_last_goes_on_after_what_others_wrote(log, path):
    with open_log(path, station=log.station) as other:
        for number in range(6):
            writer = other if number % 3 else log
            written = writer.file(
                Nil(start_ns=number, end_ns=number + 1), by="Operator A", via=Via.CLI
            )
            assert written.sequence == number + 2
    found = verify_log(path)
    assert found.ok, found.problems
    assert found.records == 7


@pytest.mark.parametrize("wait_s", [0.0, 0.01, 0.1])
def test_what_was_acknowledged_survives_a_kill(log, path, wait_s):
    writer = _write(path, "cell-1", 100_000)
    acknowledged = [writer.stdout.readline().strip() for _ in range(20)]
    time.sleep(wait_s)
    writer.kill()
    acknowledged += writer.communicate()[0].splitlines()[:-1]
    assert {record.record_id for record in log.records()} >= set(acknowledged)
    found = verify_log(path)
    assert found.ok, found.problems


# Clocks ----------------------------------------------------------------------------------------


def test_a_clock_that_goes_backwards_is_noted_and_moves_nothing(log, report, say, monkeypatch):
    say(log, report())
    real = record_module.time.time_ns
    monkeypatch.setattr(record_module.time, "time_ns", lambda: real() - 3_600 * 10**9)
    back = say(log, report(description="an hour earlier, says the clock"))
    assert back.clock_step_ns == pytest.approx(-3_600 * 10**9, abs=600 * 10**9)
    monkeypatch.undo()
    forth = say(log, report(description="set right"))
    assert forth.clock_step_ns == pytest.approx(3_600 * 10**9, abs=600 * 10**9)
    assert [record.sequence for record in log.records()] == [1, 2, 3, 4]
    found = verify_log(log.database.path)
    assert found.ok
    assert any("the clock was set before 2 records" in note for note in found.notes)


def test_what_was_said_later_counts_later_whatever_the_clock_said(log, report, say, monkeypatch):
    about = say(log, report(severity="minor")).record_id
    real = record_module.time.time_ns
    monkeypatch.setattr(record_module.time, "time_ns", lambda: real() - 86_400 * 10**9)
    say(log, Review(verdict="confirmed", note="seen"), by="B", incident_id=about)
    assert log.incident(about).verdict == "confirmed"


# Storage that does not go along ----------------------------------------------------------------


def test_a_database_for_reading_refuses_records(path, log, report, say):
    say(log, report())
    with open_log(path, read_only=True) as other:
        with pytest.raises(IncidentLogError, match=r"incidents\.db: was opened for reading only"):
            say(other, report())
        assert len(other.incidents()) == 1


@contextmanager
def _as_nobody() -> Iterator[None]:
    """Without the privileges by which root writes whatever the mode says."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_write_protected_media_can_be_read_and_are_named_when_written(report, say):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "incidents.db"
        with open_log(path, station="cell-1", make=True) as log:
            about = say(log, report()).record_id
        path.chmod(0o444)
        folder.chmod(0o555)
        before = path.read_bytes()
        with _as_nobody():
            with pytest.raises(IncidentLogError, match="is read-only") as caught:
                open_log(path)
            with open_log(path, read_only=True) as log:
                assert log.incident(about).name == "cell-1/2"
            assert verify_log(path).ok
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)
        assert path.read_bytes() == before
        folder.chmod(0o755)


def test_a_full_disk_loses_nothing_and_says_so(log, path, report, say):
    before = say(log, report())
    with log.database.reading() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
    # SQLite's own limit fails in the way a full disk does: SQLITE_FULL in the middle of a commit.
    with log.database.reading() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    long = [report(description="x" * 7_000)] * 50
    with pytest.raises(IncidentLogError, match=r"incidents\.db: .*full"):
        collections.deque(say(log, body) for body in long)
    count = log.heads()["cell-1"].sequence
    with log.database.reading() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 10_000}")
    assert say(log, report()).sequence == count + 1
    assert log.incident(before.record_id)
    assert verify_log(path).ok


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE meta SET value = '99' WHERE name = 'version'", "is a log of version 99"),
        ("DELETE FROM meta WHERE name = 'version'", "is a log of version 2 or older"),
    ],
)
def test_a_log_of_another_version_is_refused_in_one_line(log, path, tamper, statement, said):
    log.close()
    tamper(statement)
    with pytest.raises(IncidentLogError, match=f"{said}, .* use the robo-eval that made it"):
        open_log(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"severity,what\nminor,oil\n", "not an SQLite database|not a database|damaged"),
        (b"SQLite format 3\x00" + b"\xff" * 200, "is cut short"),
    ],
)
def test_a_file_that_is_no_log_is_refused(tmp_path, content, said):
    path = tmp_path / "other.db"
    path.write_bytes(content)
    with pytest.raises(IncidentLogError, match=said) as caught:
        open_log(path)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


def test_another_programs_database_is_refused(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE records (id INTEGER)")
    connection.close()
    with pytest.raises(IncidentLogError, match="is not an incident log"):
        open_log(path)


def test_a_log_is_not_made_over_another(log, path):
    with pytest.raises(IncidentLogError, match="is there already"):
        make_log(path)


def test_a_missing_log_names_the_remedy(tmp_path):
    with pytest.raises(IncidentLogError, match="robo-eval incidents init"):
        open_log(tmp_path / "none.db")


@pytest.mark.parametrize("name", ["", "a b", "../x", "x" * 65, "-x", "a/b", "a\nb"])
def test_stations_are_named_plainly(path, name):
    with pytest.raises(InputError, match="station"):
        open_log(path, station=name or " ", make=True)
    assert not path.exists()


def test_two_machines_make_logs_of_different_stations(tmp_path):
    stations = set()
    for name in ("a", "b"):
        with open_log(tmp_path / name / "incidents.db", make=True) as opened:
            stations.add(opened.station)
    assert len(stations) == 2


# Times to come ---------------------------------------------------------------------------------


def _in_a_day():
    return time.time_ns() + 24 * 3_600 * 10**9


@pytest.mark.parametrize("via", [Via.CLI, Via.WEB, Via.API, Via.IMPORT])
def test_what_is_still_to_come_is_refused_at_every_door(log, report, via):
    filed = log.file(report(), by="Operator A", via=Via.CLI)
    correction = Correction(fields={"happened_ns": _in_a_day()}, reason="mistyped")
    for body, about in (
        (report(happened_ns=_in_a_day()), None),
        (Nil(start_ns=1, end_ns=_in_a_day()), None),
        (Exposure(robot="a", side="real", mode="idle", start_ns=_in_a_day(), seconds=1.0), None),
        (correction, filed.record_id),
    ):
        with pytest.raises(InputError, match="is still to come by the clock of this machine"):
            log.file(body, by="Operator A", via=via, incident_id=about)
    assert log.heads()["cell-1"].sequence == 2


def test_a_rule_speaks_by_the_clock_of_its_robot(log, report):
    log.file(report(happened_ns=_in_a_day()), by="robo-eval", via=Via.RULE)
    assert log.heads()["cell-1"].sequence == 2


# What was refused ------------------------------------------------------------------------------


def refused_after(path, *bodies, meanwhile=lambda: None):
    """Make a log, file something in it, and refuse the rest."""
    with open_log(path, make=True) as log:
        for body in bodies:
            log.file(body, by="Operator A", via=Via.CLI)
        meanwhile()
        raise InputError("no good")


def test_a_log_that_was_made_for_what_was_refused_is_gone(path, report):
    with pytest.raises(InputError, match="no good"):
        refused_after(path)
    assert list(path.parent.iterdir()) == []
    with pytest.raises(InputError, match="no good"):
        refused_after(path, report())
    assert path.exists(), "something is in it"


def test_a_log_that_another_one_uses_stays_when_the_rest_was_refused(path, report):
    others = []
    with pytest.raises(InputError, match="no good"):
        refused_after(path, meanwhile=lambda: others.append(open_log(path)))
    with others.pop() as other:
        other.file(report(), by="Operator A", via=Via.CLI)
    assert verify_log(path).ok
    path.unlink()

    def told() -> None:
        with open_log(path, station="cell-2") as log:
            log.file(report(), by="Operator A", via=Via.CLI)

    with pytest.raises(InputError, match="no good"):
        refused_after(path, meanwhile=told)
    with open_log(path) as log:
        assert list(log.heads()) == ["cell-2"], "another one has something in it"
