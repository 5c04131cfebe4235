"""Evidence to hand on: all there is of one incident, in one signed file."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.errors import InputError
from robo_eval.log.directory import PLAN, TrialDirectory
from robo_eval.log.files import explained, write_atomically
from robo_eval.log.provenance import software
from robo_eval.log.rows import cells_of
from robo_eval.log.signing import signed
from robo_eval.log.store import EpisodeStore
from robo_eval_incidents.kinds import plain
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.record import line_of, now
from robo_eval_incidents.rule import Rule, read_rules
from robo_eval_incidents.state import Incident
from robo_eval_incidents.tables import row_of
from robo_eval_incidents.words import Via

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KIND: Final = "robo-eval incident pack"
FORM: Final = 1
STATEMENT: Final = "statement.json"
SIGNATURE: Final = "statement.sig"
RECORDS: Final = "records.jsonl"
RULES: Final = "rules.json"
EPISODE: Final = "settings/episode.json"
SETTINGS: Final = f"settings/{PLAN}"
EVIDENCE: Final = "evidence/"
MOST_BYTES: Final = 2_000_000_000
_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""What entries have for a time, so that the same incident makes the same bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """What was packed.

    Attributes:
        file: The file.
        signer: Fingerprint of the key that signed it.
        records: How many records it holds.
        files: Evidence that it holds.
        left: Evidence that it does not hold, each with the reason.
        settings: Whether it holds the plan and the row of the episode.
    """

    file: Path
    signer: str
    records: int
    files: tuple[str, ...]
    left: tuple[str, ...]
    settings: bool


def pack(
    log: IncidentLog,
    name: str,
    out: Path,
    *,
    key: Ed25519PrivateKey,
    by: str,
    trial: Path | None = None,
    rules: Path | None = None,
    evidence: Path | None = None,
) -> Packed:
    """Write all there is of an incident to one file.

    Args:
        log: The log.
        name: The incident; see `IncidentLog.incident`.
        out: File to write.
        key: Who signs.
        by: Who packs it.
        trial: Trial directory of its episode, for the settings; None for none.
        rules: Folder of rules that went before those of robo-eval.
        evidence: Folder that evidence is relative to; that of the log if not given.

    Raises:
        InputError: If there is no such incident, or the trial has no such episode.
        TrialDirectoryError: If a file cannot be read or written.
    """
    incident = log.incident(name)
    files, left = _evidence_of(incident, evidence or log.evidence_folder)
    parts = {
        RECORDS: "".join(line_of(*one.forms()) for one in incident.records).encode(),
        **files,
    }
    if trial is not None and incident.report.episode_id is not None:
        parts |= _settings(trial, incident)
    if incident.record.via is Via.RULE:
        entries = read_rules(rules).entries
        parts[RULES] = _pretty(
            [{"rule" if isinstance(one, Rule) else "ignore": plain(one)} for one in entries]
        )
    statement, signature, signer = signed(
        {
            "by": by,
            "files": {place: digest(data) for place, data in parts.items()},
            "form": FORM,
            "incident_id": incident.incident_id,
            "kind": KIND,
            "left": left,
            "log_id": log.meta.get("log_id", ""),
            "software": software(),
            "stands": stands_of(incident),
            "time_ns": now().time_ns,
        },
        key,
    )
    parts = {STATEMENT: statement, SIGNATURE: signature, **parts}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for place, data in parts.items():
            file.writestr(zipfile.ZipInfo(place, _TIME), data, zipfile.ZIP_DEFLATED)
    write_atomically(out, buffer.getvalue())
    return Packed(
        file=out,
        signer=signer,
        records=len(incident.records),
        files=tuple(one.removeprefix(EVIDENCE) for one in files),
        left=tuple(f"{uri}: {why}" for uri, why in left.items()),
        settings=SETTINGS in parts,
    )


def _evidence_of(
    incident: Incident, folder: Path | None
) -> tuple[dict[str, bytes], dict[str, str]]:
    """Files of evidence by their place in the pack, and why others are left out."""
    files: dict[str, bytes] = {}
    left: dict[str, str] = {}
    room = MOST_BYTES
    for piece in incident.evidence:
        path = None if folder is None else folder / piece.uri
        if piece.sha256 is None:
            left[piece.uri] = "has no digest in the log: it was still being written"
        elif path is None or not path.is_file():
            left[piece.uri] = "is not here"
        elif path.stat().st_size > room:
            left[piece.uri] = "is too large"
        else:
            with explained(path, "cannot be read"):
                data = path.read_bytes()
            if digest(data) == piece.sha256:
                files[EVIDENCE + piece.uri] = data
                room -= len(data)
            else:
                left[piece.uri] = "was changed since it was attached"
    return files, left


def _settings(trial: Path, incident: Incident) -> dict[str, bytes]:
    """Plan and row of the episode that an incident happened in."""
    opened = TrialDirectory.open(trial)
    episode_id = incident.report.episode_id
    with EpisodeStore(trial, durable=False, read_only=True) as store:
        found = next((one for one in store.episodes() if one.episode_id == episode_id), None)
    if found is None:
        raise InputError(f"{trial}: has no episode {episode_id!r:.80}, in which it happened")
    return {
        SETTINGS: (opened.path / PLAN).read_bytes(),
        EPISODE: _pretty(cells_of(found, where=f"{trial}")),
    }


def stands_of(incident: Incident) -> dict[str, Any]:
    """How an incident stands, as an export has it."""
    return row_of(incident).model_dump(mode="json")


def _pretty(value: object) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def digest(data: bytes) -> str:
    """SHA-256 as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
