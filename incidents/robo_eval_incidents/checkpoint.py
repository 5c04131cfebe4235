"""Checkpoints: signed statements of how far each station had got, to be kept elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from sqlalchemy import select

from robo_eval.core import door
from robo_eval.core.canonical import canonical_json
from robo_eval.core.errors import InputError, MissingExtraError, pip_install
from robo_eval.log.chain import GENESIS, ChainLink
from robo_eval.log.files import explained, write_atomically
from robo_eval.log.signing import fingerprint, signed
from robo_eval_incidents.log import IncidentLog, heads_of
from robo_eval_incidents.record import content_digest, now
from robo_eval_incidents.schema import CHECKPOINTS
from robo_eval_incidents.text import LATEST_NS, name_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FORM: Final = 1
_NO_URL: Final = re.compile(r"[\s\x00-\x20\x7f]|[^\x00-\x7f]")
"""What a URL has only in another form."""
_LEAF: Final = b"\x00"
_NODE: Final = b"\x01"
_STAMP_S: Final = 20
_MOST_BYTES: Final = 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint.

    Attributes:
        content: Its canonical form, over which the signature is.
        signature: Ed25519 signature, base64.
        stamp: RFC 3161 time-stamp token over the content, base64; None if nobody stamped it.
    """

    content: str
    signature: str
    stamp: str | None = None

    def as_dict(self) -> dict[str, str]:
        """What a file of it holds."""
        stamp = {} if self.stamp is None else {"stamp": self.stamp}
        return {"checkpoint": self.content, "signature": self.signature, **stamp}

    @property
    def sha256(self) -> str:
        """Digest of its content."""
        return content_digest(self.content)

    @property
    def values(self) -> dict[str, Any]:
        """What it says."""
        found = json.loads(self.content)
        if not isinstance(found, dict):
            raise ValueError("is not a JSON object")
        return found

    @property
    def heads(self) -> dict[str, ChainLink]:
        """How far each station had got: number and digest of its newest record."""
        return heads_stated(self.values["heads"])

    @property
    def signer(self) -> str:
        """Fingerprint of the key it names."""
        return fingerprint(base64.b64decode(self.values["public_key"]))

    @property
    def time_ns(self) -> int | None:
        """When it was made, by the clock it was made at; None if it names no time."""
        found = self.values.get("time_ns")
        return found if type(found) is int and 0 <= found <= LATEST_NS else None

    def problems(self) -> list[str]:
        """What is wrong with it by itself: its signature, its root."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            values, heads = self.values, self.heads
            public = base64.b64decode(values["public_key"], validate=True)
            signature = base64.b64decode(self.signature, validate=True)
            Ed25519PublicKey.from_public_bytes(public).verify(signature, self.content.encode())
        except InvalidSignature:
            return ["was changed: its signature is not over these bytes"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
            return [f"is not a checkpoint with its signature: {err!r:.80}"]
        if values.get("merkle_root") != merkle_root(heads):
            return ["names a root that is not the one of its stations"]
        return []


def plain_heads(heads: Mapping[str, ChainLink]) -> dict[str, dict[str, Any]]:
    """Number and digest of the newest record of each station, as JSON has them."""
    return {name: head._asdict() for name, head in heads.items()}


def heads_stated(values: Mapping[str, Any]) -> dict[str, ChainLink]:
    """Number and digest of the newest record of each station, of `plain_heads`.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: If they are none.
    """
    found = {}
    for name, head in values.items():
        sequence, sha256 = head["sequence"], head["sha256"]
        is_number = type(sequence) is int and 1 <= sequence <= LATEST_NS
        if not (is_number and isinstance(sha256, str)):
            raise ValueError(f"heads of {name!r:.70} are not a number and a digest")
        found[name] = ChainLink(sequence, sha256)
    return found


def merkle_root(heads: Mapping[str, ChainLink]) -> str:
    """Root of the Merkle tree over the newest records of all stations, by their names.

    Args:
        heads: Number and digest of the newest record, by station.

    References:
        RFC 6962, section 2.1 (the shape of the tree, and the prefixes of leaves and nodes).

    Example:
        >>> merkle_root({})[:16]
        'e3b0c44298fc1c14'
    """
    leaves = [
        hashlib.sha256(_LEAF + canonical_json([name, *heads[name]])).digest()
        for name in sorted(heads)
    ]
    return _root(leaves).hex()


def _root(leaves: Sequence[bytes]) -> bytes:
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    # The largest power of two that is less than their number.
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(_NODE + _root(leaves[:split]) + _root(leaves[split:])).digest()


def make_checkpoint(log: IncidentLog, key: Ed25519PrivateKey, *, by: str) -> Checkpoint:
    """State how far each station has got, sign it, and keep it in the log.

    Args:
        log: The log.
        key: Who signs.
        by: Who asked for it.

    Returns:
        The checkpoint; write it to a file and keep that elsewhere.

    Raises:
        InputError: If `by` is no name.
        IncidentLogError: If the log cannot be written.
    """
    by = name_of(by, "by")
    with log.database.writing() as connection:
        last = connection.execute(
            select(CHECKPOINTS.c.content).order_by(CHECKPOINTS.c.number.desc()).limit(1)
        ).scalar()
        before = None if last is None else content_digest(last)
        heads = heads_of(connection)
        content, signature, _ = signed(
            {
                "by": by,
                "form": FORM,
                "heads": plain_heads(heads),
                "log_id": log.meta.get("log_id", ""),
                "merkle_root": merkle_root(heads),
                "previous_sha256": before or GENESIS,
                "time_ns": now().time_ns,
            },
            key,
        )
        found = Checkpoint(content=content.decode(), signature=signature.decode())
        connection.execute(
            CHECKPOINTS.insert().values(
                sha256=found.sha256, content=found.content, signature=found.signature, stamp=None
            )
        )
    return found


def checkpoints_of(log: IncidentLog) -> list[Checkpoint]:
    """The checkpoints a log keeps of itself, oldest first."""
    rows = log.database.rows(select(CHECKPOINTS).order_by(CHECKPOINTS.c.number))
    return [
        Checkpoint(content=row.content, signature=row.signature, stamp=row.stamp) for row in rows
    ]


def write_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint to a file of its own.

    Raises:
        TrialDirectoryError: If it cannot be written.
    """
    write_atomically(path, json.dumps(checkpoint.as_dict(), indent=2).encode() + b"\n")


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint from a file.

    Raises:
        InputError: If it is none; whether its signature holds is `Checkpoint.problems`.
        TrialDirectoryError: If it cannot be read.
    """
    with explained(path, "cannot be read"):
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: is not a checkpoint of an incident log: it is too long")
        data = door.written(path)
    try:
        values = json.loads(data)
        content, signature = values["checkpoint"], values["signature"]
        stamp = values.get("stamp")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        raise InputError(
            f"{path}: is not a checkpoint of an incident log: it is not what"
            " `robo-eval incidents checkpoint` writes"
        ) from err
    if not (isinstance(content, str) and isinstance(signature, str)):
        raise InputError(f"{path}: is not a checkpoint of an incident log: a field is not text")
    return Checkpoint(
        content=content, signature=signature, stamp=None if stamp is None else str(stamp)
    )


# Time stamps -----------------------------------------------------------------------------------


def check_stamping(url: str, field: str = "url") -> None:
    """Refuse where nothing can be stamped, before a checkpoint is made for it.

    Args:
        url: Where the authority answers.
        field: What the URL is called in messages.

    Raises:
        InputError: If it is no such URL.
        MissingExtraError: If the library for it is not installed.
    """
    try:
        parts = urlsplit(url)
        is_url = bool(parts.hostname) and parts.port != 0 and not _NO_URL.search(url)
    except ValueError:
        is_url = False
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{field}: {url!r:.200} does not begin with http:// or https://")
    if not is_url:
        raise InputError(f"{field}: {url!r:.200} is not a URL; it looks like https://host/path")
    _client()


def stamp(log: IncidentLog, checkpoint: Checkpoint, url: str) -> Checkpoint:
    """Have a time-stamping authority confirm when a checkpoint was there.

    Args:
        log: The log that keeps the checkpoint.
        checkpoint: The checkpoint.
        url: Where the authority answers, `http://` or `https://`.

    Returns:
        The checkpoint with its stamp.

    Raises:
        InputError: If the authority cannot be reached, or does not stamp it.
        MissingExtraError: If the library for it is not installed.
    """
    from http.client import HTTPException
    from urllib.request import Request, urlopen

    check_stamping(url)
    client = _client()
    asked = client.TimestampRequestBuilder().data(checkpoint.content.encode()).build()
    request = Request(  # noqa: S310 - of the two schemes only
        url, data=asked.as_bytes(), headers={"Content-Type": "application/timestamp-query"}
    )
    try:
        with urlopen(request, timeout=_STAMP_S) as answer:  # noqa: S310
            token = answer.read(1_000_000)
        response = client.decode_timestamp_response(token)
    except (OSError, HTTPException, ValueError) as err:
        why = getattr(err, "reason", err)
        raise InputError(f"{url}: does not stamp: {why}; the checkpoint itself is kept") from err
    problem = _stamp_problem(response, checkpoint.content)
    if problem is not None:
        raise InputError(f"{url}: {problem}; the checkpoint itself is kept")
    found = Checkpoint(
        content=checkpoint.content,
        signature=checkpoint.signature,
        stamp=base64.b64encode(token).decode(),
    )
    with log.database.writing() as connection:
        connection.execute(
            CHECKPOINTS.update()
            .where(CHECKPOINTS.c.sha256 == checkpoint.sha256)
            .values(stamp=found.stamp)
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class StampCheck:
    """What a time stamp says.

    Attributes:
        time: When, by the authority's clock, ISO 8601; None if it is no stamp of this content.
        problem: What is wrong with it; None if nothing is.
    """

    time: str | None
    problem: str | None


def check_stamp(checkpoint: Checkpoint) -> StampCheck | None:
    """Whether a stamp is over this checkpoint; None if there is no stamp.

    Whether the authority's signature is to be trusted is for its certificates to say:
    `openssl ts -verify` checks that.

    Raises:
        MissingExtraError: If the library for it is not installed.
    """
    if checkpoint.stamp is None:
        return None
    client = _client()
    try:
        response = client.decode_timestamp_response(base64.b64decode(checkpoint.stamp))
    except ValueError as err:
        return StampCheck(time=None, problem=f"its time stamp cannot be read: {err}")
    problem = _stamp_problem(response, checkpoint.content)
    if problem is not None:
        return StampCheck(time=None, problem=f"its time stamp: {problem}")
    return StampCheck(time=response.tst_info.gen_time.isoformat(), problem=None)


def _stamp_problem(response: Any, content: str) -> str | None:
    if response.status not in (0, 1):
        return f"was refused with status {response.status}"
    imprint = response.tst_info.message_imprint
    digest = {32: hashlib.sha256, 48: hashlib.sha384, 64: hashlib.sha512}.get(len(imprint.message))
    if digest is None or digest(content.encode()).digest() != imprint.message:
        return "is over something else"
    return None


def _client() -> Any:
    try:
        import rfc3161_client
    except ImportError as err:
        raise MissingExtraError(
            f"the library for time stamps is not installed; {pip_install('stamp')}"
        ) from err
    return rfc3161_client
