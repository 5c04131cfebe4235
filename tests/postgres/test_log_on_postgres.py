"""The same log on a real PostgreSQL server, with several stations, kills and power cuts."""

from __future__ import annotations

import random
import subprocess
import sys
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval_incidents import open_log
from robo_eval_incidents.checkpoint import make_checkpoint, write_checkpoint
from robo_eval_incidents.clocks import due
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.kinds import (
    Action,
    Closure,
    Effectiveness,
    Exposure,
    Nil,
    Report,
    Review,
)
from robo_eval_incidents.lists import Filter, list_incidents, tally
from robo_eval_incidents.log import make_log
from robo_eval_incidents.merge import merge
from robo_eval_incidents.record import GONE
from robo_eval_incidents.standing import standing
from robo_eval_incidents.state import RefusedError
from robo_eval_incidents.text import span_of
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.words import Severity, Status, Via

STATIONS = 8
PASSWORD = "a-word"


def _report(**fields):
    values = {
        "happened_ns": 1_772_000_000 * 10**9,
        "robot": "ur5e",
        "side": "real",
        "severity": "minor",
        "category": "collision",
        "description": "grazed the fixture — “ö”",
    }
    return Report.model_validate(values | fields)


@pytest.fixture
def log(url):
    """An empty log on the server."""
    make_log(url)
    with open_log(url, station="cell-1") as opened:
        yield opened


@pytest.fixture
def say(log):
    """Files a record as somebody."""

    def file(body, by="Operator A", about=None):
        return log.file(body, by=by, via=Via.API, incident_id=about)

    return file


def test_an_incident_goes_its_way(log, url, say):
    about = say(_report(severity="major"), "Operator A").record_id
    with pytest.raises(InputError, match="another person"):
        say(Review(verdict="confirmed", note="mine"), "Operator A", about)
    say(Review(verdict="confirmed", note="seen"), "Reviewer B", about)
    action = say(Action(what="move the fixture", owner="C"), "Reviewer B", about)
    say(
        Effectiveness(action_id=action.record_id, is_effective=True, how="no graze in 50 runs"),
        "Reviewer B",
        about,
    )
    say(Closure(note="done"), "Reviewer B", about)
    say(_report(), "Operator A")
    page = list_incidents(log)
    assert sorted(row.status for row in page.rows) == ["closed", "reported"]
    assert list_incidents(log, Filter(severity=Severity.MAJOR)).rows[0].incident_id == about
    assert tally(log) == {
        (Side.REAL, Severity.MAJOR, Status.CLOSED): 1,
        (Side.REAL, Severity.MINOR, Status.REPORTED): 1,
    }
    found = verify_log(url)
    assert found.ok, found.problems
    assert found.records == 7


def test_a_server_log_asks_for_a_station(log, url):
    with open_log(url) as unnamed, pytest.raises(InputError, match="ROBO_EVAL_STATION"):
        unnamed.file(_report(), by="Operator A", via=Via.CLI)
    assert log.heads() == {}


def test_chains_go_to_a_file_and_back(log, url, tmp_path):
    with open_log(tmp_path / "incidents.db", station="offline", make=True) as offline:
        about = offline.file(_report(), by="Operator A", via=Via.CLI).record_id
        log.file(_report(severity="near_miss"), by="Operator B", via=Via.CLI)
        assert merge(offline.database.path, log).added == {"offline": 2}
        log.file(Review(verdict="confirmed", note="seen"), by="B", via=Via.CLI, incident_id=about)
        assert merge(url, offline).added == {"cell-1": 3}
        assert offline.incident(about).status == "confirmed"
        assert {one[1:] for one in log.stored()} == {one[1:] for one in offline.stored()}
    assert verify_log(url).ok
    assert verify_log(tmp_path / "incidents.db").ok


def test_changes_behind_its_back_are_found(log, url, tmp_path):
    for number in range(4):
        log.file(_report(description=f"event {number}"), by="A", via=Via.CLI)
    kept = tmp_path / "kept.json"
    write_checkpoint(make_checkpoint(log, Ed25519PrivateKey.generate(), by="A"), kept)
    log.close()
    assert verify_log(url, checkpoints=[kept]).ok
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in (
            "UPDATE records SET content = replace(content, 'ur5e', 'ur6e')",
            "UPDATE records SET sha256 = 'x'",
            "DELETE FROM records",
            "TRUNCATE records",
        ):
            with pytest.raises(psycopg.errors.RaiseException, match="are never changed"):
                connection.execute(statement)
        assert verify_log(url).ok
        # Whoever owns the tables can take that away.
        connection.execute("ALTER TABLE records DISABLE TRIGGER USER")
        named = {problem.what for problem in verify_log(url).problems}
        assert any("trigger records_stay of the database is missing" in what for what in named)
        connection.execute("UPDATE records SET content = replace(content, 'ur5e', 'ur6e')")
        assert any("was changed" in problem.what for problem in verify_log(url).problems)
        connection.execute("UPDATE records SET content = replace(content, 'ur6e', 'ur5e')")
        connection.execute("DELETE FROM records WHERE sequence = 5")
        connection.execute(
            "UPDATE stations SET sequence = 4,"
            " sha256 = (SELECT sha256 FROM records WHERE sequence = 4)"
        )
        connection.execute("DELETE FROM checkpoints")
        connection.execute("DELETE FROM incidents WHERE sequence = 5")
        connection.execute("ALTER TABLE records ENABLE TRIGGER USER")
    assert verify_log(url).ok, "nothing inside says that there was more"
    problems = verify_log(url, checkpoints=[kept]).problems
    assert any("1 of them are lost" in problem.what for problem in problems)


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("CREATE RULE quiet AS ON DELETE TO incidents DO ALSO DELETE FROM times", "rule quiet"),
        (
            """CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
            CREATE TRIGGER quiet BEFORE INSERT ON records FOR EACH ROW EXECUTE FUNCTION f()""",
            "trigger quiet",
        ),
        ("CREATE VIEW mild AS SELECT * FROM incidents WHERE rank = 0", "view mild"),
        ("CREATE INDEX quick ON records (kind)", "index quick"),
        ("DROP INDEX records_subject", "index records_subject"),
        ("ALTER TABLE records DROP CONSTRAINT records_id", "constraint records_id"),
        ("ALTER TABLE stations DROP CONSTRAINT stations_pkey", "constraint stations_pkey"),
        ("DROP TRIGGER records_stay_all ON records", "trigger records_stay_all"),
        (
            """DROP TRIGGER records_stay ON records;
            CREATE TRIGGER records_stay BEFORE UPDATE OR DELETE ON records FOR EACH ROW
            WHEN (false) EXECUTE FUNCTION records_stay()""",
            "trigger records_stay",
        ),
        (
            """DROP TRIGGER records_stay ON records;
            CREATE TRIGGER records_stay BEFORE UPDATE ON records FOR EACH ROW
            EXECUTE FUNCTION records_stay()""",
            "trigger records_stay",
        ),
        (
            """DROP INDEX incidents_by_time;
            CREATE INDEX incidents_by_time ON incidents (side)""",
            "index incidents_by_time",
        ),
        (
            """ALTER TABLE records DROP CONSTRAINT records_chain;
            ALTER TABLE records ADD CONSTRAINT records_chain UNIQUE (number, station, sequence)""",
            "index records_chain",
        ),
        (
            "ALTER TABLE incidents ADD CONSTRAINT mild CHECK (rank < 9)",
            "constraint mild",
        ),
        (
            """ALTER TABLE records ENABLE ROW LEVEL SECURITY;
            CREATE POLICY mine ON records USING (true)""",
            "row security records",
        ),
        (
            """CREATE OR REPLACE FUNCTION records_stay() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN RETURN NEW; END'""",
            "function records_stay",
        ),
    ],
)
def test_a_database_that_is_not_that_of_a_log_is_found(log, url, say, statement, named):
    say(_report())
    assert verify_log(url).ok
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)
    assert any(f"{named} of the database" in problem.what for problem in verify_log(url).problems)


def test_tables_of_other_programs_are_no_problem(log, url, say):
    say(_report())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE notes (id integer PRIMARY KEY)")
    assert verify_log(url).ok


def test_hours_that_nobody_knows_are_unknown_on_a_server_too(log, say):
    begin, end = span_of("2026-01")
    month = {"side": "real", "mode": "autonomous", "start_ns": begin, "until_ns": end}
    say(Exposure.model_validate({**month, "robot": "a", "seconds": 36_000.0, "km": 100.0}))
    say(Exposure.model_validate({**month, "robot": "b", "km": 50.0}))
    say(_report(robot="b", happened_ns=begin + 1))
    real = standing(log).real
    assert (real.hours, real.km) == (10.0, 150.0)
    assert real.without == {"h": {"b": {"minor": 1}}, "km": {}}
    assert due(log) == []


def test_a_text_is_taken_out_of_a_server_by_its_owner(log, url, say):
    about = say(_report(description="Zarathustra was near")).record_id
    for by in ("R. Example", "S. Example"):
        _, is_out = log.redact(about, "description", "names a person", by=by, via=Via.CLI)
    assert is_out
    assert log.incident(about).report.description == GONE
    found = verify_log(url)
    assert found.ok, found.problems
    assert any("description was taken out" in note for note in found.notes)
    with psycopg.connect(url) as connection:
        for table in ("records", "incidents", "times"):
            rows = connection.execute(f"SELECT t::text FROM {table} t").fetchall()
            assert not any("arathustra" in row[0] for row in rows)


def test_of_two_that_check_at_once_one_is_refused(log, url, say):
    """Both see an incident that may be closed; only one of them closes it."""
    with open_log(url, station="cell-2") as other, ThreadPoolExecutor(2) as pool:
        for number in range(10):
            about = say(_report(description=f"event {number}")).record_id
            say(Review(verdict="confirmed", note="seen"), "B", about)

            def close(one, about=about):
                try:
                    return one.file(Closure(note="done"), by="B", via=Via.API, incident_id=about)
                except RefusedError as err:
                    return str(err)

            done = list(pool.map(close, (log, other)))
            refused = [one for one in done if isinstance(one, str)]
            assert len(refused) == 1, done
            assert "is closed already" in refused[0]
    assert verify_log(url).ok


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (f"postgresql://nobody:{PASSWORD}@127.0.0.1:9/none", "cannot be reached"),
        (f"postgresql://nobody@127.0.0.1:9/none?password={PASSWORD}", "cannot be reached"),
        ("postgresql://[", "failed to resolve host"),
        ("postgresql://x:y", "cannot be read"),
        ("mysql://127.0.0.1/x", "in PostgreSQL"),
    ],
)
def test_a_server_that_is_not_there_is_named_without_its_password(monkeypatch, target, said):
    monkeypatch.setattr("robo_eval.log.sql._PATIENCE_S", 0.1)
    with pytest.raises(IncidentLogError, match=said) as caught:
        open_log(target)
    assert PASSWORD not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_database_without_a_log_names_the_remedy(url):
    with pytest.raises(IncidentLogError, match="robo-eval incidents init"):
        open_log(url)


def test_a_log_of_another_version_is_refused(log, url):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE name = 'version'")
    with pytest.raises(IncidentLogError, match="is a log of version 99"):
        open_log(url)


# Kills -----------------------------------------------------------------------------------------

_NAMES = uuid.UUID("0f3c6a5e-7f55-4a3e-8d53-1d2c1c7f0a11")

_WRITER = """
import sys, uuid
from robo_eval_incidents import open_log
from robo_eval_incidents.kinds import Nil
from robo_eval_incidents.words import Via

url, station, start, end, names = sys.argv[1:]
with open_log(url, station=station) as log:
    for number in range(int(start), int(end)):
        record_id = str(uuid.uuid5(uuid.UUID(names), f"{station} {number}"))
        body = Nil(start_ns=number, end_ns=number + 1)
        log.file(body, by="Operator A", via=Via.CLI, record_id=record_id)
        print(number, flush=True)
"""


class Writer:
    """A station in a process of its own; killed, it goes on after what was acknowledged."""

    def __init__(self, url, station, count, folder):
        self.url, self.station, self.count = url, station, count
        self._output = folder / f"{station}.txt"
        self._errors = folder / f"{station}.err"
        self._output.touch()
        self.process = None
        self.go_on()

    @property
    def acknowledged(self):
        """Numbers that were acknowledged; a line that was cut off is none."""
        lines = self._output.read_text().splitlines(keepends=True)
        return [int(line) for line in lines if line.endswith("\n")]

    def go_on(self):
        """Start, or start again after a kill."""
        done = self.acknowledged
        self._output.write_text("".join(f"{number}\n" for number in done))
        arguments = [self.url, self.station, str(len(done)), str(self.count), str(_NAMES)]
        with self._output.open("a") as output, self._errors.open("a") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _WRITER, *arguments], stdout=output, stderr=errors
            )

    def kill(self):
        """Kill -9."""
        self.process.kill()
        self.process.wait()

    def finish(self, timeout):
        """Wait until everything is written."""
        code = self.process.wait(timeout)
        assert code == 0, self._errors.read_text()


def _play(url, server, folder, *, count, server_kills, writer_kills, seed=3):
    draw = random.Random(seed)
    make_log(url)
    writers = [Writer(url, f"cell-{place}", count, folder) for place in range(STATIONS)]
    total = STATIONS * count
    marks = sorted(draw.uniform(0.05, 0.9) * total for _ in range(server_kills + writer_kills))
    kinds = ["server"] * server_kills + ["writer"] * writer_kills
    draw.shuffle(kinds)
    deadline = time.monotonic() + 800
    for mark, kind in zip(marks, kinds, strict=True):
        while sum(len(writer.acknowledged) for writer in writers) < mark:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        if kind == "server":
            server.kill()
            server.start()
        else:
            victim = draw.choice(writers)
            if victim.process.poll() is None:
                victim.kill()
                victim.go_on()
    for writer in writers:
        writer.finish(max(1.0, deadline - time.monotonic()))
    _check(url, writers, count)


def _check(url, writers, count):
    found = verify_log(url)
    assert found.ok, found.problems
    assert found.records == STATIONS * (count + 1)
    with open_log(url) as log:
        ids = Counter(record.record_id for record in log.records() if isinstance(record.body, Nil))
    for writer in writers:
        assert writer.acknowledged == list(range(count))
        for number in range(count):
            assert ids[str(uuid.uuid5(_NAMES, f"{writer.station} {number}"))] == 1


@pytest.mark.slow
def test_eight_stations_survive_a_kill_of_a_writer_and_of_the_server(server, url, tmp_path):
    _play(url, server, tmp_path, count=20, server_kills=1, writer_kills=1)


@pytest.mark.slow
def test_ten_thousand_records_survive_kills_of_writers_and_of_the_server(server, url, tmp_path):
    _play(url, server, tmp_path, count=1_250, server_kills=5, writer_kills=12)


def test_two_programs_may_write_as_one_station(log, url):
    command = [sys.executable, "-c", _WRITER, url, "cell-1"]
    ranges = [("0", "40"), ("40", "80")]
    writers = [subprocess.Popen([*command, *one, str(_NAMES)], stdout=-1) for one in ranges]
    for writer in writers:
        writer.communicate(timeout=240)
        assert writer.returncode == 0
    found = verify_log(url)
    assert found.ok, found.problems
    assert found.records == 81
