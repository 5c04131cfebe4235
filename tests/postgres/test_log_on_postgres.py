"""The same log on a real PostgreSQL server, with several stations, kills and power cuts."""

from __future__ import annotations

import random
import subprocess
import sys
import time
import uuid
from collections import Counter

import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import create_engine, inspect

from robo_eval.core.errors import InputError
from robo_eval_incidents import migration, open_log
from robo_eval_incidents.bodies import Action, Closure, Effectiveness, Nil, Report, Review
from robo_eval_incidents.checkpoint import make_checkpoint, write_checkpoint
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.log import make_log
from robo_eval_incidents.merge import merge
from robo_eval_incidents.migration import migrate, upgrade
from robo_eval_incidents.page import Filter, list_incidents, tally
from robo_eval_incidents.schema import METADATA
from robo_eval_incidents.taxonomy import Severity, Via
from robo_eval_incidents.times import shifts
from robo_eval_incidents.verify import verify_log

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
    assert tally(log) == {("real", "major"): 1, ("real", "minor"): 1}
    found = verify_log(url)
    assert found.ok, found.problems
    assert found.records == 7


def test_the_steps_lead_to_the_same_tables(server):
    kinds = {}
    for name in ("steps", "once"):
        engine = create_engine(server.make_database().replace("postgresql:", "postgresql+psycopg:"))
        with engine.begin() as connection:
            if name == "steps":
                upgrade(connection)
            else:
                METADATA.create_all(connection)
        inspector = inspect(engine)
        kinds[name] = {
            table: (
                [(one["name"], str(one["type"]), one["nullable"]) for one in
                 inspector.get_columns(table)],
                sorted(one["name"] for one in inspector.get_indexes(table)),
            )
            for table in METADATA.tables
        }  # fmt: skip
        engine.dispose()
    assert kinds["steps"] == kinds["once"]


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
        assert {text for _, text in log.contents()} == {text for _, text in offline.contents()}
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
        connection.execute("UPDATE records SET content = replace(content, 'event 1', 'event 9')")
        assert any("was changed" in problem.what for problem in verify_log(url).problems)
        connection.execute("UPDATE records SET content = replace(content, 'event 9', 'event 1')")
        assert verify_log(url).ok
        connection.execute("DELETE FROM records WHERE sequence = 5")
        connection.execute(
            "UPDATE stations SET sequence = 4,"
            " sha256 = (SELECT sha256 FROM records WHERE sequence = 4)"
        )
        connection.execute("DELETE FROM checkpoints")
        connection.execute("DELETE FROM paged")
        connection.execute("DELETE FROM page")
    assert verify_log(url).ok, "nothing inside says that there was more"
    problems = verify_log(url, checkpoints=[kept]).problems
    assert any("1 of them are lost" in problem.what for problem in problems)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE RULE quiet AS ON DELETE TO page DO ALSO DELETE FROM exposed",
        """CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        CREATE TRIGGER quiet BEFORE INSERT ON records FOR EACH ROW EXECUTE FUNCTION f()""",
    ],
)
def test_what_would_drop_records_quietly_is_found(log, url, say, statement):
    say(_report())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)
    assert any("'quiet'" in problem.what for problem in verify_log(url).problems)


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
    monkeypatch.setattr("robo_eval_incidents.database._PATIENCE_S", 0.1)
    with pytest.raises(IncidentLogError, match=said) as caught:
        open_log(target)
    assert PASSWORD not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_database_without_a_log_names_the_remedy(url):
    with pytest.raises(IncidentLogError, match="robo-eval incidents init"):
        open_log(url)


def test_a_newer_schema_is_refused(log, url):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0999'")
    with pytest.raises(IncidentLogError, match="install a newer"):
        open_log(url)
    with pytest.raises(IncidentLogError, match="newer than this program"):
        migrate(url)


def test_a_log_of_the_first_version_is_upgraded(log, say, server, monkeypatch):
    say(_report())
    say(Nil(start_ns=1, end_ns=2))
    before = [list_incidents(log), shifts(log), list(log.contents())]
    old = server.make_database()
    tables = ("records", "stations", "meta")
    engine = create_engine(old.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection, log.database.reading() as source:
        with monkeypatch.context() as patch:
            patch.setattr(migration, "CURRENT", "0001")
            upgrade(connection)
        for table in (METADATA.tables[name] for name in tables):
            rows = [dict(row) for row in source.execute(table.select()).mappings()]
            connection.execute(table.insert(), rows)
    engine.dispose()
    with pytest.raises(IncidentLogError, match="migrate --log"):
        open_log(old)
    assert migrate(old) == "0001"
    with open_log(old) as new:
        assert [list_incidents(new), shifts(new), list(new.contents())] == before
    assert verify_log(old).ok


# Kills -----------------------------------------------------------------------------------------

_NAMES = uuid.UUID("0f3c6a5e-7f55-4a3e-8d53-1d2c1c7f0a11")

_WRITER = """
import sys, uuid
from robo_eval_incidents import open_log
from robo_eval_incidents.bodies import Nil
from robo_eval_incidents.taxonomy import Via

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
