"""Signed bundles: a folder of results, what they rest on, and who stands for it (Ed25519).

A bundle is a folder of a trial directory. Its statement names every file the results were made of,
with the SHA-256 of each, the end of the chain of rows, and the records of the incident log that say
which incidents there are. Its signature is over the statement.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core import door
from robo_eval.core.canonical import canonical_json, file_digest
from robo_eval.core.errors import InputError
from robo_eval.log import incident_log
from robo_eval.log.files import PART_SUFFIX, explained, home_folder, write_atomically

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_VARIABLE: Final = "ROBO_EVAL_KEY"
"""Environment variable that names the file of the key to sign with."""
STATEMENT: Final = "statement.json"
SIGNATURE: Final = "statement.sig"
ASSESSMENT: Final = "assessment"
BUNDLES: Final = (ASSESSMENT,)
"""Folders of a trial directory that hold signed bundles."""
FORMAT: Final = 1
_SHOWN: Final = 16
"""Hexadecimal digits of a fingerprint that people compare."""


def default_key() -> Path:
    """Where the key to sign with lies if none is named.

    Raises:
        InputError: If there is no home folder to look in.
    """
    named = os.environ.get(KEY_VARIABLE)
    if named:
        return Path(named)
    config = os.environ.get("XDG_CONFIG_HOME") or home_folder(KEY_VARIABLE) / ".config"
    return Path(config) / "robo-eval" / "signing-key.pem"


def open_key(path: Path) -> tuple[Ed25519PrivateKey, bool]:
    """The private key in a file; a new one if there is no such file.

    Args:
        path: PEM file, readable by its owner alone.

    Returns:
        The key, and whether it is new.

    Raises:
        InputError: If the file holds no Ed25519 key without a password.
        TrialDirectoryError: If it cannot be read or written.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if not path.exists():
        return _new_key(path), True
    with explained(path, "cannot be read"):
        data = door.written(path)
    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError) as err:
        raise InputError(f"{path}: is not a PEM file of a private key without password") from err
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{path}: holds another kind of key; an Ed25519 key is needed")
    return key, False


def _new_key(path: Path) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with explained(path, "cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Nobody else may read it, not even for a moment.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
    return key


def fingerprint(public: bytes) -> str:
    """What people compare of a public key."""
    return hashlib.sha256(public).hexdigest()[:_SHOWN]


def signed(
    statement: Mapping[str, Any],
    key: Ed25519PrivateKey,
    form: Callable[[dict[str, Any]], bytes] = canonical_json,
) -> tuple[bytes, bytes, str]:
    """A statement that names the key it is signed by.

    Args:
        statement: What is stated.
        key: Who signs.
        form: What makes bytes of it.

    Returns:
        Its bytes, the signature over them (base64), and the fingerprint of the key.
    """
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    text = form({**statement, "public_key": base64.b64encode(public).decode()})
    return text, base64.b64encode(key.sign(text)), fingerprint(public)


def write_bundle(
    folder: Path,
    files: Mapping[str, bytes],
    *,
    key: Ed25519PrivateKey,
    rests_on: Iterable[str],
    absent: Iterable[str],
    facts: Mapping[str, Any],
) -> str:
    """Write a bundle in the place of the one before, whole or not at all.

    Args:
        folder: The bundle, a folder of a trial directory.
        files: What is in it, by name.
        key: Who signs.
        rests_on: Files of the trial directory the results were made of.
        absent: Files that would have been read and were not there.
        facts: What else is stated.

    Returns:
        Fingerprint of the key.

    Raises:
        TrialDirectoryError: If it cannot be written.
    """
    trial = folder.parent
    digests = {name: file_digest(trial / name) for name in rests_on}
    own = {
        f"{folder.name}/{name}": hashlib.sha256(data).hexdigest() for name, data in files.items()
    }
    statement = {
        "format": FORMAT,
        **facts,
        "files": {**digests, **own},
        "absent": sorted(absent),
    }
    text, signature, signer = signed(statement, key, _readable)
    part = trial / f".{folder.name}.{os.getpid()}{PART_SUFFIX}"
    with explained(folder, "cannot be written"):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            for name, data in (*files.items(), (STATEMENT, text)):
                write_atomically(part / name, data)
            write_atomically(part / SIGNATURE, signature + b"\n")
            old = trial / f".{folder.name}.old{PART_SUFFIX}"
            shutil.rmtree(old, ignore_errors=True)
            if folder.exists():
                folder.rename(old)
            part.rename(folder)
            shutil.rmtree(old, ignore_errors=True)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
    return signer


def _readable(statement: dict[str, Any]) -> bytes:
    return json.dumps(statement, indent=2, sort_keys=True, allow_nan=False).encode() + b"\n"


def check_bundle(folder: Path, heads: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    """What is wrong with a bundle.

    Args:
        folder: The bundle.
        heads: Digest of each row of the trial, by its number.

    Yields:
        Files, relative to the trial directory, and what is wrong with each.
    """
    place = f"{folder.name}/{STATEMENT}"
    try:
        text = door.bytes_of(folder / STATEMENT)
        signature = base64.b64decode(door.bytes_of(folder / SIGNATURE))
        statement = door.json_of(text)
        public = base64.b64decode(statement["public_key"])
        files, absent = dict(statement["files"]), list(statement["absent"])
        rows, head = int(statement["rows"]), str(statement["head"])
    except (OSError, ValueError, KeyError, TypeError) as err:
        yield place, f"cannot be read with its signature: {err!r:.80}"
        return
    if not is_signed(text, signature, public):
        yield place, "was changed: its signature is not over these bytes"
    for name, sha256 in files.items():
        yield from _check_file(folder.parent, str(name), str(sha256))
    for name in absent:
        if (folder.parent / str(name)).exists():
            yield str(name), f"came after {folder.name}/ was signed, which does not know it"
    if rows and heads.get(rows) != head:
        yield place, f"was made of other rows: row {rows} is not the one it names"
    for what in incident_log.changes_since(folder.parent, statement.get("incidents")):
        yield incident_log.DATABASE, what


def is_signed(text: bytes, signature: bytes, public: bytes) -> bool:
    """Whether an Ed25519 signature by a public key is over these bytes."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True


def _check_file(trial: Path, name: str, sha256: str) -> Iterator[tuple[str, str]]:
    if Path(name).is_absolute() or ".." in Path(name).parts:
        yield name[:80], "leads out of the trial"
        return
    try:
        found = file_digest(trial / name)
    except OSError as err:
        yield name, f"is missing since it was signed: {err.strerror or err}"
        return
    if found != sha256:
        yield name, f"was changed since it was signed: its SHA-256 is {found}, not {sha256}"


def signer_of(folder: Path) -> str | None:
    """Fingerprint of the key a bundle names; None if it cannot be read."""
    try:
        statement = door.json_of(door.bytes_of(folder / STATEMENT))
        return fingerprint(base64.b64decode(statement["public_key"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
