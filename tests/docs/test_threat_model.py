"""The page on threats documents the form as it is; its program and its roles do what it says."""

from __future__ import annotations

import base64
import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import make_url

from robo_eval_incidents import open_log
from robo_eval_incidents.checkpoint import make_checkpoint, write_checkpoint
from robo_eval_incidents.kinds import KINDS, Evidence, Nil, Quantity
from robo_eval_incidents.lists import Filter, list_incidents
from robo_eval_incidents.log import make_log
from robo_eval_incidents.merge import export_records
from robo_eval_incidents.record import MOST_BYTES
from robo_eval_incidents.schema import METADATA
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.words import Via

TEXT = (Path(__file__).parents[2] / "docs" / "threat_model.md").read_text()
SHIFT = Nil(start_ns=0, end_ns=1)


def section(title: str) -> str:
    """What is under a heading, up to the next one."""
    _, found, rest = TEXT.partition(f"# {title}\n")
    assert found, f"no heading {title!r}"
    return rest.partition("\n#")[0]


def rows(title: str) -> dict[str, str]:
    """Second cells of the table under a heading by the first."""
    lines = [line.strip("|").split("|") for line in section(title).splitlines() if "|" in line]
    return {first.strip(" `"): second for first, second, *_ in lines[2:]}


def names(text: str) -> set[str]:
    """What is marked as code, but for what is in brackets."""
    return set(re.findall("`([a-z0-9_]+)`", re.sub(r"\([^)]*\)", "", text)))


def test_fields_of_records_and_checkpoints_are_all_on_the_page(tmp_path: Path) -> None:
    with open_log(tmp_path / "incidents.db", make=True) as log:
        record = log.file(SHIFT, by="Operator A", via=Via.CLI)
        checkpoint = make_checkpoint(log, Ed25519PrivateKey.generate(), by="R. Example")
        exported = list(export_records(log))
    assert set(rows("Fields of a record")) == set(json.loads(record.content()))
    assert set(rows("Checkpoints")) == set(checkpoint.values)
    assert set(json.loads(exported[0])) <= names(section("In an export"))
    assert exported[-1] == f"{record.content()}\n"
    assert f"{MOST_BYTES:,} bytes" in section("Fields of a record")


def test_fields_of_every_body_are_on_the_page() -> None:
    assert {kind: names(cell) for kind, cell in rows("Bodies").items()} == {
        kind: set(body.model_fields) for kind, body in KINDS.items()
    }
    for part in (Quantity, Evidence):
        assert set(part.model_fields) <= names(section("Bodies"))


# The program of the page ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def check() -> Callable[[Path, Path, str], dict[str, int]]:
    """The program of the page that knows nothing of ours."""
    found = re.search(r"<!-- file: check_log.py -->\n```python\n(.*?)```", TEXT, re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found[1], names)
    program: Callable[[Path, Path, str], dict[str, int]] = names["check"]
    return program


@pytest.fixture
def kept(tmp_path: Path) -> str:
    """Writes a log of three records and a checkpoint of it; the key that signed it, base64."""
    with open_log(tmp_path / "incidents.db", station="cell-1", make=True) as log:
        for _ in range(2):
            log.file(SHIFT, by="Operator A", via=Via.CLI)
        checkpoint = make_checkpoint(log, Ed25519PrivateKey.generate(), by="R. Example")
    write_checkpoint(checkpoint, tmp_path / "kept.json")
    return str(checkpoint.values["public_key"])


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE records SET content = replace(content, 'tor A', 'tor B')", "was changed"),
        ("UPDATE records SET sequence = sequence + 7", "says it is another one"),
        ("DELETE FROM records WHERE sequence = 2", "comes after number 1"),
        ("DELETE FROM records WHERE sequence = 3", "is gone or another one"),
        ("DELETE FROM records", "is gone or another one"),
    ],
)
def test_the_program_of_the_page_finds_changes(
    check: Callable[..., dict[str, int]], kept: str, tmp_path: Path, statement: str, problem: str
) -> None:
    path, file = tmp_path / "incidents.db", tmp_path / "kept.json"
    assert check(path, file, kept) == {"cell-1": 3}
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(ValueError, match=problem):
        check(path, file, kept)


def test_the_program_of_the_page_knows_the_signer(
    check: Callable[..., dict[str, int]], kept: str, tmp_path: Path
) -> None:
    path, file = tmp_path / "incidents.db", tmp_path / "kept.json"
    other = base64.b64encode(bytes(32)).decode()
    with pytest.raises(ValueError, match="somebody else"):
        check(path, file, other)
    changed = file.read_text().replace("R. Example", "S. Example")
    file.write_text(changed)
    with pytest.raises(InvalidSignature):
        check(path, file, kept)


# PostgreSQL ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(pgserver: Any, server_folder: Path) -> Iterator[str]:
    """URL of a server with an empty log and the roles of the page, by its owner."""
    with pgserver.get_server(server_folder / "threats", cleanup_mode="stop") as running:
        make_log(running.get_uri())
        blocks = re.findall(r"```sql\n(.*?)```", section("PostgreSQL"), re.DOTALL)
        with psycopg.connect(running.get_uri(), autocommit=True) as connection:
            for block in blocks:
                connection.execute(block)
        yield running.get_uri()


def as_role(server: str, role: str) -> str:
    return make_url(server).set(username=role).render_as_string(hide_password=False)


def test_roles_of_the_page_cover_every_table() -> None:
    granted = " ".join(re.findall(r"GRANT [^;]* ON ([^;]*?) TO", section("PostgreSQL")))
    assert set(METADATA.tables) <= set(re.findall(r"\w+", granted))


def test_the_writer_adds_records_and_the_reader_verifies_them(server: str) -> None:
    with open_log(as_role(server, "incident_writer"), station="cell-1") as log:
        log.file(SHIFT, by="Operator A", via=Via.CLI)
        make_checkpoint(log, Ed25519PrivateKey.generate(), by="R. Example")
        assert not list_incidents(log, Filter(), limit=10).rows
    report = verify_log(as_role(server, "incident_reader"))
    assert report.ok
    assert (report.records, report.checkpoints) == (2, 1)


@pytest.mark.parametrize("table", ["records", "checkpoints"])
@pytest.mark.parametrize(
    "statement", ["DELETE FROM {}", "TRUNCATE {}", "UPDATE {} SET content = ''", "DROP TABLE {}"]
)
def test_the_writer_cannot_take_back(server: str, table: str, statement: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    with (
        psycopg.connect(as_role(server, "incident_writer")) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(statement.format(table))
