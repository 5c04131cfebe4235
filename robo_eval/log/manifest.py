"""The state of a trial and what it came from, as kept in manifest.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from robo_eval.core import door
from robo_eval.core.canonical import digest
from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval.log.files import explained, write_atomically

MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
STATUSES: Final = ("created", "running", "interrupted", "complete")
_REMEDY: Final = (
    "delete it, and `robo-eval resume` writes it anew; the check that no rows were cut off the end"
    " is lost then"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What manifest.json says.

    Attributes:
        format: Version of this file's form.
        status: `created`, `running`, `interrupted` or `complete`, when it was last written.
        plan_digest: SHA-256 of plan.yaml.
        planned: Episodes the plan asks for.
        rows: Rows of the log when a run last ended or paused; 0 before.
        head: SHA-256 of the newest of these rows.
        created_utc: When the trial was created, ISO 8601.
        updated_utc: When this file was written.
        software: Version and revision that created the trial.
        versions: Versions of what the log depends on.
        git_revision: Revision of the checkout, if it ran from one.
        machine: Processor, cores, operating system.
        beside: Files of evidence that lay beside the rows when a run last ended or paused, with
            their SHA-256; empty of the incident log, which has a chain of its own.
        incidents: What names the incident log of then, see `log.incident_log.identity_of`.
    """

    format: int = FORMAT
    status: str
    plan_digest: str
    planned: int
    rows: int
    head: str
    created_utc: str
    updated_utc: str
    software: str
    versions: Mapping[str, str] = field(default_factory=dict)
    git_revision: str | None = None
    machine: Mapping[str, Any] = field(default_factory=dict)
    beside: Mapping[str, str] = field(default_factory=dict)
    incidents: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, ready for JSON."""
        return asdict(self)


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write manifest.json; it also holds the SHA-256 of its own content.

    Raises:
        TrialDirectoryError: If it cannot be written; an older one stays.
    """
    data = manifest.as_dict()
    data["sha256"] = digest(data)
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(path, text.encode())


def read_manifest(path: Path) -> Manifest | None:
    """The content of manifest.json; None if there is no such file.

    Raises:
        TrialDirectoryError: If it is damaged or of a newer form.
    """
    try:
        with explained(path, "cannot be read"):
            data = door.json_of(door.bytes_of(path))
    except TrialDirectoryError as err:
        if isinstance(err.__cause__, FileNotFoundError):
            return None
        raise
    except ValueError as err:
        raise TrialDirectoryError(f"{path}: is not valid JSON ({err}); {_REMEDY}") from err
    if not isinstance(data, dict):
        raise TrialDirectoryError(f"{path}: is not a JSON object; {_REMEDY}")
    return _checked(path, data)


def _checked(path: Path, data: dict[str, Any]) -> Manifest:
    if isinstance(data.get("format"), int) and data["format"] > FORMAT:
        raise TrialDirectoryError(
            f"{path}: has form {data['format']}, which is newer than this program's {FORMAT};"
            " install a newer robo-eval to read it"
        )
    stated = data.pop("sha256", None)
    kinds = {
        "format": int, "status": str, "plan_digest": str, "planned": int, "rows": int, "head": str,
        "created_utc": str, "updated_utc": str, "software": str, "versions": dict, "machine": dict,
    }  # fmt: skip
    for name, kind in kinds.items():
        if not isinstance(data.get(name), kind):
            given = "is missing" if name not in data else f"is {data[name]!r:.40}"
            raise TrialDirectoryError(f"{path}: field {name!r} {given}; {_REMEDY}")
    if data["status"] not in STATUSES:
        raise TrialDirectoryError(
            f"{path}: field 'status' is {data['status']!r:.40}, not one of {', '.join(STATUSES)}"
        )
    try:
        actual = digest(data)
    except InputError:
        actual = None
    if actual != stated:
        raise TrialDirectoryError(f"{path}: was changed: it does not match its digest; {_REMEDY}")
    known = {column.name for column in fields(Manifest)}
    return Manifest(**{name: value for name, value in data.items() if name in known})
