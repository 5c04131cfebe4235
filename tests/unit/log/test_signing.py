"""Signed bundles: what they find, and that a key is kept from others."""

from __future__ import annotations

import base64
import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval.log.signing import check_bundle, fingerprint, open_key, signer_of, write_bundle

HEADS = {1: "a" * 64, 2: "b" * 64}


def make(trial: Path, key: str = "key.pem", **files: bytes) -> Path:
    trial.mkdir(exist_ok=True)
    (trial / "plan.yaml").write_text("name: x\n")
    (trial / "tools.csv").write_text("category,episodes,successes\n")
    private, _ = open_key(trial.parent / key)
    write_bundle(
        trial / "assessment",
        files or {"assessment.json": b"{}\n"},
        key=private,
        rests_on=["plan.yaml", "tools.csv"],
        absent=["incidents.csv"],
        facts={"rows": 2, "head": "b" * 64},
    )
    return trial / "assessment"


def problems(folder: Path) -> list[tuple[str, str]]:
    return list(check_bundle(folder, HEADS))


def test_a_bundle_that_nobody_touched_is_whole(tmp_path: Path):
    folder = make(tmp_path / "trial")
    assert problems(folder) == []
    statement = json.loads((folder / "statement.json").read_text())
    assert signer_of(folder) == fingerprint(base64.b64decode(statement["public_key"]))
    assert [path.name for path in (tmp_path / "trial").iterdir() if "part" in path.name] == []


@pytest.mark.parametrize(
    ("spoil", "file", "what"),
    [
        (lambda t: (t / "tools.csv").write_text("category\n"), "tools.csv", "was changed since"),
        (lambda t: (t / "plan.yaml").unlink(), "plan.yaml", "is missing since"),
        (lambda t: (t / "incidents.csv").write_text("x"), "incidents.csv", "came after"),
        (
            lambda t: (t / "assessment" / "assessment.json").write_text("[]"),
            "assessment/assessment.json", "was changed since",
        ),
        (
            lambda t: (t / "assessment" / "statement.sig").unlink(),
            "assessment/statement.json", "cannot be read with its signature",
        ),
        (
            lambda t: (t / "assessment" / "statement.json").write_text("{}"),
            "assessment/statement.json", "cannot be read with its signature",
        ),
        (
            lambda t: (t / "assessment" / "statement.sig").write_text("AAAA"),
            "assessment/statement.json", "its signature is not over these bytes",
        ),
    ],
)  # fmt: skip
def test_what_changed_since_is_named(
    tmp_path: Path, spoil: Callable[[Path], object], file: str, what: str
):
    folder = make(tmp_path / "trial")
    spoil(tmp_path / "trial")
    ((found, why),) = problems(folder)
    assert found == file
    assert what in why


def test_other_rows_are_found(tmp_path: Path):
    folder = make(tmp_path / "trial")
    ((file, what),) = check_bundle(folder, {**HEADS, 2: "c" * 64})
    assert (file, "row 2" in what) == ("assessment/statement.json", True)
    assert len(list(check_bundle(folder, {1: "a" * 64}))) == 1
    assert list(check_bundle(folder, {**HEADS, 3: "d" * 64})) == []  # rows that came later


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_any_changed_bit_of_the_statement_is_found(
    tmp_path_factory: pytest.TempPathFactory, at: int, bit: int
):
    folder = make(tmp_path_factory.mktemp("bits") / "trial")
    data = bytearray((folder / "statement.json").read_bytes())
    data[at % len(data)] ^= 1 << bit
    (folder / "statement.json").write_bytes(bytes(data))
    assert problems(folder)


def test_a_statement_cannot_name_files_outside(tmp_path: Path):
    private, _ = open_key(tmp_path / "key.pem")
    (tmp_path / "trial").mkdir()
    write_bundle(
        tmp_path / "trial" / "assessment",
        {},
        key=private,
        rests_on=["../key.pem"],
        absent=[],
        facts={"rows": 0, "head": ""},
    )
    ((_, what),) = problems(tmp_path / "trial" / "assessment")
    assert what == "leads out of the trial"


def test_a_new_bundle_takes_the_place_of_the_old_as_a_whole(tmp_path: Path):
    make(tmp_path / "trial", **{"one.json": b"1"})
    before = signer_of(tmp_path / "trial" / "assessment")
    folder = make(tmp_path / "trial", key="other.pem", **{"two.json": b"2"})
    assert sorted(path.name for path in folder.iterdir()) == [
        "statement.json", "statement.sig", "two.json",
    ]  # fmt: skip
    assert problems(folder) == []
    assert signer_of(folder) != before


def test_a_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path):
    first, is_new = open_key(tmp_path / "deep" / "key.pem")
    second, again = open_key(tmp_path / "deep" / "key.pem")
    assert (is_new, again) == (True, False)
    assert first.private_bytes_raw() == second.private_bytes_raw()
    assert stat.S_IMODE((tmp_path / "deep" / "key.pem").stat().st_mode) == 0o600


def test_a_file_that_is_no_such_key_is_refused_by_name(tmp_path: Path):
    (tmp_path / "text.pem").write_text("hello")
    with pytest.raises(InputError, match=r"text\.pem: is not a PEM file of a private key"):
        open_key(tmp_path / "text.pem")
    other = generate_private_key(SECP256R1()).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    (tmp_path / "other.pem").write_bytes(other)
    with pytest.raises(InputError, match=r"other\.pem: holds another kind of key"):
        open_key(tmp_path / "other.pem")
    (tmp_path / "file").write_text("")
    with pytest.raises(TrialDirectoryError, match="cannot be written"):
        open_key(tmp_path / "file" / "key.pem")


def test_a_bundle_that_cannot_be_written_leaves_the_old_one(tmp_path: Path):
    folder = make(tmp_path / "trial")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    private, _ = open_key(tmp_path / "key.pem")
    with pytest.raises(TrialDirectoryError, match="cannot be written"):
        write_bundle(
            folder, {"no/such/folder.json": b""}, key=private, rests_on=[], absent=[],
            facts={"rows": 0, "head": ""},
        )  # fmt: skip
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert problems(folder) == []
