"""What verification finds: every byte, and every record that is not where it was."""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from robo_eval.core.errors import InputError
from robo_eval.log.signing import open_key
from robo_eval_incidents import open_log
from robo_eval_incidents.accounts import Accounts
from robo_eval_incidents.kinds import Evidence, Exposure, Review
from robo_eval_incidents.record import new_id, record_of
from robo_eval_incidents.verify import verify_log


@pytest.fixture
def filled(log, report, nil, say) -> Path:
    """A small closed log with records of several kinds, all of them listed."""
    about = say(log, report(severity="minor", description="Öl — “nass”")).record_id
    say(log, nil(1))
    say(log, Review(verdict="confirmed", note="seen"), by="B", incident_id=about)
    say(log, report())
    say(
        log,
        Exposure(robot="ur5e", side="real", mode="autonomous", start_ns=10**18, seconds=5.5),
    )
    log.close()
    return log.database.path


def _problems(path):
    return [str(problem) for problem in verify_log(path).problems]


def test_a_log_as_it_was_written_is_sound(filled):
    found = verify_log(filled)
    assert found.ok, found.problems
    assert found.records == 6
    assert "no checkpoint" in found.notes[-1]
    assert found.as_dict()["stations"]["cell-1"]["sequence"] == 6


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_log_that_others_can_write_is_noted(filled, mode):
    filled.chmod(mode)
    found = verify_log(filled)
    assert found.ok, found.problems
    assert f"others can write {filled}; take that away: chmod go-w {filled}" in found.notes
    filled.chmod(0o644)
    assert not any("chmod" in note for note in verify_log(filled).notes)


def test_a_key_that_others_can_read_is_noted(filled, tmp_path, monkeypatch):
    key = tmp_path / "key.pem"
    monkeypatch.setenv("ROBO_EVAL_KEY", str(key))
    open_key(key)
    assert not any("chmod" in note for note in verify_log(filled).notes)
    key.chmod(0o640)
    assert any(note.endswith(f"chmod go-rw {key}") for note in verify_log(filled).notes)


@pytest.mark.slow
def test_every_byte_of_every_record_is_found(filled):
    """Each byte of each canonical form is changed, by its lowest bit.

    The same byte of all records at once, so that each has to be named; where bytes that are no
    UTF-8 end the reading, one record after the other.
    """
    connection = sqlite3.connect(filled)
    stored = dict(connection.execute("SELECT number, CAST(content AS BLOB) FROM records"))
    for place in range(max(map(len, stored.values()))):
        changed = {
            number: content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
            for number, content in stored.items()
            if place < len(content)
        }
        _put(connection, stored | changed)
        named = {problem.row for problem in verify_log(filled).problems}
        for number in changed.keys() - named:
            _put(connection, stored | {number: changed[number]})
            assert not verify_log(filled).ok, f"record {number}, byte {place}"
    _put(connection, stored)
    connection.close()
    assert verify_log(filled).ok
    assert sum(map(len, stored.values())) > 2_500


def _put(connection, contents):
    # As text, as it was: bytes that are no UTF-8 included.
    connection.executemany(
        "UPDATE records SET content = CAST(? AS TEXT) WHERE number = ?",
        [(content, number) for number, content in contents.items()],
    )
    connection.commit()


@pytest.mark.parametrize(
    "column", ["station", "sequence", "record_id", "subject", "kind", "texts", "sha256", "number"]
)
def test_every_cell_beside_a_record_is_found(filled, tamper, column):
    tamper(f"UPDATE records SET {column} = {column} + 100 WHERE number = 4")
    assert _problems(filled)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_a_removed_record_is_found(filled, tamper, number):
    tamper(f"DELETE FROM records WHERE number = {number}")
    assert any(
        "missing" in problem or "does not follow" in problem for problem in _problems(filled)
    )


@pytest.mark.parametrize("count", [1, 3, 5])
def test_the_loss_of_the_tail_is_found_by_the_table_of_stations(filled, tamper, count):
    tamper(f"DELETE FROM records WHERE sequence > {6 - count}")
    assert f"had 6 records, the newest {count} are missing" in _problems(filled)[0]


def test_two_records_that_were_swapped_are_found(filled, tamper):
    tamper(
        "UPDATE records SET number = 100 WHERE number = 2",
        "UPDATE records SET number = 2 WHERE number = 3",
        "UPDATE records SET number = 3 WHERE number = 100",
    )
    assert any("records were moved" in problem for problem in _problems(filled))


def test_an_inserted_record_is_found(filled, tamper):
    tamper(
        "INSERT INTO records (number, station, sequence, record_id, subject, kind, content, texts,"
        " sha256)"
        f" SELECT 50, station, 7, '{new_id()}', subject, kind, content, texts, sha256 FROM records"
        " WHERE number = 3"
    )
    problems = _problems(filled)
    assert any("is filed as another record" in problem for problem in problems)


def test_a_doubled_record_is_found(filled, tamper):
    connection = sqlite3.connect(filled)
    with pytest.raises(sqlite3.IntegrityError):  # the tables themselves refuse it
        connection.execute(
            "INSERT INTO records SELECT 50, station, sequence, record_id, subject, kind,"
            " content, texts, sha256 FROM records WHERE number = 3"
        )
    connection.close()
    tamper(
        "PRAGMA foreign_keys = OFF",
        "CREATE TABLE copy AS SELECT * FROM records",
        "DROP TABLE records",
        "INSERT INTO copy SELECT 50, station, sequence, record_id, subject, kind, content, texts,"
        " sha256 FROM copy WHERE number = 3",
        "ALTER TABLE copy RENAME TO records",
    )
    assert any("is there twice" in problem for problem in _problems(filled))


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "UPDATE incidents SET severity = 'near_miss' WHERE severity = 'minor'",
            "another severity",
        ),
        ("UPDATE incidents SET words = 'nothing' WHERE sequence = 5", "another words"),
        ("DELETE FROM incidents WHERE sequence = 2", "is left out of the lists"),
        ("DELETE FROM incidents WHERE sequence = 5", "is left out of the lists"),
        ("UPDATE incidents SET id = 'x' || id", "of which there is no report"),
        ("UPDATE times SET end_ns = end_ns + 1000000000000", "another end_ns"),
        ("DELETE FROM times", "is left out of the lists"),
        ("UPDATE times SET id = id || 'x'", "of which there is no exposure"),
        ("UPDATE stations SET sequence = 5", "is not the one it stated"),
        ("UPDATE stations SET sha256 = 'x'", "is not the one it stated"),
        ("DELETE FROM stations", "is not in the table of stations"),
    ],
)
def test_lists_that_say_something_else_are_found(filled, tamper, statement, said):
    tamper(statement)
    assert any(said in problem for problem in _problems(filled))


@pytest.mark.parametrize(
    "statements",
    [
        (
            "UPDATE records SET number = number - 1000",
            "UPDATE incidents SET severity = 'near_miss'",
        ),
        ("UPDATE incidents SET counts = 2",),
        ("UPDATE incidents SET counts = 'x'",),
        ("CREATE TRIGGER t AFTER UPDATE ON stations BEGIN DELETE FROM incidents; END",),
        ("CREATE VIEW v AS SELECT 1",),
        ("CREATE TABLE notes (id INTEGER)",),
        ("DROP INDEX records_subject",),
        ("INSERT INTO users VALUES ('m', 'M', 'x', 'reviewer', 0, 0)",),
        ("UPDATE records SET station = CAST(station AS BLOB)",),
        ("UPDATE records SET sequence = 'two' WHERE number = 2",),
        ("UPDATE stations SET station = CAST(station AS BLOB)",),
        ("UPDATE stations SET sequence = 'two'",),
        ("UPDATE meta SET value = X'00' WHERE name = 'log_id'", "UPDATE stations SET sha256 = 'x'"),
        ("INSERT INTO checkpoints VALUES (1, 'x', CAST('[' AS BLOB), 'y', NULL)",),
        ("INSERT INTO checkpoints VALUES (1, 'x', '{\"heads\": {\"a\": 1e999}}', 'y', NULL)",),
    ],
)
def test_what_else_may_be_done_to_a_file_is_a_problem_and_no_crash(filled, tamper, statements):
    tamper(*statements)
    assert not verify_log(filled).ok


def test_roles_that_no_record_gave_are_found(log, path, tamper):
    Accounts(log).add("R. Example", "a long password", ["operator"], by="Operator A")
    assert verify_log(path).ok
    log.close()
    tamper("UPDATE users SET roles = 'operator reviewer auditor'")
    assert "has roles that no record gave to it" in _problems(path)[0]


@pytest.mark.parametrize(
    "change",
    [{"via": "x"}, {"time_ns": "x"}, {"more": 1}, {"body": {"start_ns": 1}}, {"after": "x"}],
)
def test_a_record_no_program_can_read_is_a_problem_even_if_its_chain_fits(filled, tamper, change):
    """The newest one, so that whoever forges it has but one digest to make anew."""
    connection = sqlite3.connect(filled)
    (content,) = connection.execute("SELECT content FROM records WHERE number = 6").fetchone()
    connection.close()
    changed = json.dumps(json.loads(content) | change, separators=(",", ":"), sort_keys=True)
    digest = hashlib.sha256(changed.encode()).hexdigest()
    tamper(
        "UPDATE records SET content = ?, sha256 = ? WHERE number = 6", parameters=(changed, digest)
    )
    tamper("UPDATE stations SET sha256 = ?", parameters=(digest,))
    assert any(problem.row == 6 for problem in verify_log(filled).problems)


def test_a_log_of_nothing_but_zeros_in_the_middle_is_reported(filled):
    data = bytearray(filled.read_bytes())
    half = len(data) // 2
    data[half : half + 4096] = bytes(4096)
    filled.write_bytes(data)
    assert _noticed_or_identical(filled, set()) == "noticed"


@pytest.mark.parametrize(
    "content",
    ["[]", "1", '"x"', "null", "{}", '{"kind": []}', "[" * 90_000, '{"body": 1}', "\x00"],
)
def test_a_record_of_any_other_json_is_a_problem_and_no_crash(filled, tamper, content):
    tamper("UPDATE records SET content = ? WHERE number = 3", parameters=(content,))
    assert any(problem.row == 3 for problem in verify_log(filled).problems)


@pytest.mark.parametrize("key", ["kind", "station", "body", "sequence", "incident_id", "form"])
@pytest.mark.parametrize("value", [[], {}, None, 1.5, "x"])
def test_a_record_with_any_other_field_is_a_problem_and_no_crash(filled, tamper, key, value):
    connection = sqlite3.connect(filled)
    (content,) = connection.execute("SELECT content FROM records WHERE number = 2").fetchone()
    connection.close()
    changed = json.dumps(json.loads(content) | {key: value})
    digest = hashlib.sha256(changed.encode()).hexdigest()
    tamper(
        "UPDATE records SET content = ?, sha256 = ? WHERE number = 2", parameters=(changed, digest)
    )
    assert not verify_log(filled).ok


def test_evidence_that_was_changed_is_found(log, path, report, say):
    data = b"what happened"
    place = path.parent / "incidents" / "piece.mcap"
    place.parent.mkdir()
    place.write_bytes(data)
    piece = Evidence(uri="incidents/piece.mcap", sha256=hashlib.sha256(data).hexdigest())
    say(log, report(evidence=(piece,)))
    assert verify_log(path).ok
    place.write_bytes(b"What happened")
    assert "its evidence incidents/piece.mcap was changed" in _problems(path)[0]
    place.unlink()
    found = verify_log(path)
    assert found.ok
    assert any("1 of 1 pieces of evidence are not beside the log" in note for note in found.notes)


def _noticed_or_identical(path, before):
    try:
        found = verify_log(path)
    except InputError as err:
        text = str(err)
        return "noticed" if str(path) in text and "\n" not in text else text
    if not found.ok:
        return "noticed"
    with open_log(path, read_only=True) as log:
        return "identical" if {tuple(one) for one in log.stored()} == before else "changed"


def test_a_salt_in_capital_letters_is_found(log, path, report, say):
    say(log, report(description="it fell"))
    [(number, content, texts)] = [one for one in log.stored() if one[2]]
    salt = json.loads(texts)["description"][0]
    # Of 16 random bytes, one in a few million has no letter at all.
    shouted = texts.replace(salt, salt.upper())
    with pytest.raises(InputError, match=r"body\.description: was changed"):
        record_of(content, shouted, where=f"row {number}")
    assert record_of(content, texts, where=f"row {number}").forms()[1] == texts


def test_an_escape_in_capital_letters_is_found(log, path, report, say):
    say(log, report(description="it\tfell"))
    say(log, report(description='"it\u2029fell"'))
    for number, content, texts in (one for one in log.stored() if one[2]):
        escaped = texts.replace("\\t", "\\u0009").replace('\\"', "\\u0022")
        with pytest.raises(InputError, match=r"its texts: is not in its canonical form"):
            record_of(content, escaped, where=f"row {number}")
        spaced = texts.replace(":", ": ", 1)
        with pytest.raises(InputError, match=r"its texts: is not in its canonical form"):
            record_of(content, spaced, where=f"row {number}", is_exact=True)
        record_of(content, texts, where=f"row {number}", is_exact=True)


def test_null_in_the_place_of_nothing_is_not_the_canonical_form(log, report, say):
    say(log, report(description="it fell"))
    [(_, content, texts)] = [one for one in log.stored() if one[2]]
    more = content.replace('"robot":', '"place":null,"robot":')
    with pytest.raises(InputError, match="is not in its canonical form"):
        record_of(more, texts, where="line 2", is_exact=True)


@pytest.mark.slow
def test_a_flip_anywhere_in_a_large_file_is_found_or_changes_no_record(tmp_path, say, report, nil):
    """5,000 positions of canonical forms, and 1,000 anywhere in the file.

    Many records have a flip at once, and each has to be named. A flip that makes bytes no UTF-8
    ends the reading, so such a one is alone in its file.
    """
    path = tmp_path / "incidents.db"
    with open_log(path, station="cell-1", make=True) as log:
        for number in range(200):
            say(log, report(description=f"event {number}: " + "word " * (number % 60)))
            say(log, nil(number))
    whole = path.read_bytes()
    with open_log(path, read_only=True) as log:
        before = {tuple(one) for one in log.stored()}
    with closing(sqlite3.connect(path)) as connection:
        stored = connection.execute("SELECT number, CAST(content AS BLOB) FROM records").fetchall()
    places = [
        (number, start + offset)
        for number, content in stored
        if (start := whole.find(content)) >= 0
        for offset in range(len(content))
    ]
    assert len(places) > 100_000, "records lie in the file as they are"
    draw = random.Random(7)
    together: list[dict[int, tuple[int, int]]] = []
    for number, place in draw.sample(places, 5_000):
        flip = (place, draw.randrange(8))
        if flip[1] == 7:
            assert _flipped(path, whole, [flip], before) == "noticed", flip
            continue
        # No neighbours: a record may be named for the one before it. And 100 problems are told.
        near = {number - 1, number, number + 1}
        free = next((one for one in together if len(one) < 25 and near.isdisjoint(one)), None)
        if free is None:
            together.append(free := {})
        free[number] = flip
    for flips in together:
        path.write_bytes(_with(whole, flips.values()))
        named = {problem.row for problem in verify_log(path).problems}
        assert named >= flips.keys(), flips
    outcomes = [
        _flipped(path, whole, [(draw.randrange(len(whole)), draw.randrange(8))], before)
        for _ in range(1_000)
    ]
    assert set(outcomes) <= {"noticed", "identical"}
    assert outcomes.count("noticed") > 300


def _with(whole, flips):
    """Bytes with bits turned at some places."""
    data = bytearray(whole)
    for place, bit in flips:
        data[place] ^= 1 << bit
    return data


def _flipped(path, whole, flips, before):
    path.write_bytes(_with(whole, flips))
    return _noticed_or_identical(path, before)


@pytest.mark.parametrize("table", ["times", "incidents"])
def test_a_number_of_the_lists_with_the_same_hash_is_found(log, path, report, say, tamper, table):
    say(log, report())
    body = Exposure(robot="ur5e", side="real", mode="idle", start_ns=0, seconds=7200.0)
    say(log, body)
    log.close()
    names = {"times": ("end_ns",), "incidents": ("happened_ns", "latest_ns")}[table]
    same = 2**61 - 1  # what Python's hash of a number leaves over
    tamper(*(f"UPDATE {table} SET {name} = {name} + {same}" for name in names))
    assert any("the lists show another" in what for what in _problems(path))


def test_only_the_record_that_was_changed_is_blamed(log, path, report, say, tamper):
    about = say(log, report())
    for by in ("B", "C"):
        say(log, Review(verdict="confirmed", note="seen"), incident_id=about.record_id, by=by)
    log.close()
    tamper("UPDATE records SET texts = replace(texts, 'fixture', 'visitor') WHERE number = 2")
    (what,) = _problems(path)
    assert "body.description: was changed" in what


def test_a_number_written_in_another_way_is_not_the_canonical_form(log, say):
    say(log, Exposure(robot="a", side="real", mode="idle", start_ns=0, seconds=7200.0))
    *_, (_, content, texts) = log.stored()
    whole = content.replace("7200.0", "7200")
    assert whole != content
    with pytest.raises(InputError, match="is not in its canonical form"):
        record_of(whole, texts, where="line 2", is_exact=True)


def test_a_trigger_named_as_one_of_sqlite_is_found(log, path):
    log.close()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TRIGGER mild AFTER INSERT ON incidents BEGIN SELECT 1; END")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_schema SET name = 'sqlite_stat_x',"
        " sql = replace(sql, 'mild', 'sqlite_stat_x') WHERE name = 'mild'"
    )
    connection.commit()
    connection.close()
    assert any("trigger sqlite_stat_x" in what for what in _problems(path))


def test_accounts_are_those_of_their_newest_records(path, log, tamper):
    accounts = Accounts(log)
    accounts.add("R. Example", "some words in a row", ["reviewer"], by="x")
    accounts.add("Bob", "other words in a row", ["operator"], by="x")
    accounts.set_roles("R. Example", ["operator"], by="x")
    assert verify_log(path).ok
    for change, what in (
        ("roles = 'reviewer' WHERE shown_name = 'R. Example'", "has roles that no record gave"),
        ("shown_name = 'R. Example' WHERE shown_name = 'Bob'", "goes by another name"),
    ):
        tamper("CREATE TABLE kept AS SELECT * FROM users", f"UPDATE users SET {change}")
        tamper("PRAGMA user_version = 0")
        found = _problems(path)
        tamper("DELETE FROM users", "INSERT INTO users SELECT * FROM kept", "DROP TABLE kept")
        assert any(what in one for one in found), found
    assert verify_log(path).ok
