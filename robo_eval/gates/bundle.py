"""The signed bundle of an assessment: what was said, of what, by which rules, and by whom."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from robo_eval.core import door
from robo_eval.gates.profile import source_of
from robo_eval.log import incident_log
from robo_eval.log.directory import PLAN, PREFLIGHT
from robo_eval.log.evidence import NAMES
from robo_eval.log.provenance import software
from robo_eval.log.signing import ASSESSMENT, default_key, open_key, write_bundle

if TYPE_CHECKING:
    from robo_eval.gates.trial import TrialFindings
    from robo_eval.log.directory import TrialDirectory

_RESULT: Final = "assessment.json"
_PROFILE: Final = "profile.toml"
_CHECKLIST: Final = "checklist.md"


def write_assessment(
    trial: TrialDirectory,
    found: TrialFindings,
    profile: str | Path,
    *,
    key: Path | None = None,
) -> tuple[Path, str, Path | None]:
    """Write and sign `assessment/` in a trial directory.

    Args:
        trial: The trial directory.
        found: What was said of it.
        profile: Name or file of the profile it was said by; a copy is kept.
        key: PEM file of an Ed25519 private key; without one the key of `default_key`, which is
            made if there is none.

    Returns:
        The folder, the fingerprint of the key, and where a new key was written, if one was.

    Raises:
        InputError: If the key cannot be used.
        TrialDirectoryError: If the bundle cannot be written; the one before is left then.
    """
    place = key or default_key()
    private, is_new = open_key(place)
    manifest = trial.manifest
    snapshots = [path.relative_to(trial.path).as_posix() for path in trial.calibration_files]
    evidence = (f"{name}.csv" for name in NAMES)
    known = (PLAN, PREFLIGHT, *evidence, *snapshots, *trial.plan.metrics.modules)
    there = [name for name in known if (trial.path / name).exists()]
    who = write_bundle(
        trial.path / ASSESSMENT,
        {
            _RESULT: json.dumps(found.as_dict(), indent=2, allow_nan=False).encode() + b"\n",
            _CHECKLIST: found.checklist.as_text().encode(),
            _PROFILE: door.written(source_of(profile)),
        },
        key=private,
        rests_on=there,
        absent=[name for name in known if name not in there],
        facts={
            "what": "assessment of autonomy levels",
            "created_utc": datetime.now(UTC).isoformat(timespec="seconds"),
            "software": software(),
            "plan_digest": trial.plan_digest,
            "rows": 0 if manifest is None else manifest.rows,
            "head": "" if manifest is None else manifest.head,
            "incidents": incident_log.state_of(trial.path),
        },
    )
    return trial.path / ASSESSMENT, who, place if is_new else None
