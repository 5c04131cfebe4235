"""What the recordings of a trial can tell before anything is fitted, kept beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from robo_eval import __version__
from robo_eval.core import door
from robo_eval.core.canonical import digest
from robo_eval.core.errors import CheckFailedError
from robo_eval.core.plain import plain
from robo_eval.core.wording import counted
from robo_eval.log.directory import CALIBRATION, CHECK, TrialDirectory
from robo_eval.log.files import write_atomically
from robo_eval_calibration.checks import Finding, checked, refusals
from robo_eval_calibration.expected import expected
from robo_eval_calibration.fit import model_of
from robo_eval_calibration.innovations import declared_noise, nominal_of
from robo_eval_calibration.intervals import Verdict
from robo_eval_calibration.motions import Motion, next_motion
from robo_eval_calibration.recordings import Gathered

FORM: Final = 1
"""Version of check.json."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """What a fit will say of a constant.

    Attributes:
        verdict: In a word.
        half_width: Of its interval.
        wanted: What is narrow enough.
        partners: With which others it is confounded.
    """

    verdict: str
    half_width: float
    wanted: float
    partners: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """What was found.

    Attributes:
        form: Version of its form.
        digest: Of what was checked.
        task: Gymnasium id.
        recordings: How many there are.
        left_out: Why each other episode cannot serve, by its id.
        findings: What each check says.
        constants: What a fit will say of each constant; empty where nothing should be fitted.
        motion: What to record next; None where no motion tells more.
    """

    form: int = FORM
    digest: str
    task: str
    recordings: int
    left_out: Mapping[str, str]
    findings: tuple[Finding, ...]
    constants: Mapping[str, Foreseen] = field(default_factory=dict)
    motion: Motion | None = None


def checkup(gathered: Gathered, given: Mapping[str, float]) -> Checkup:
    """Check the recordings of a trial.

    Args:
        gathered: The recordings.
        given: Constants that are known.
    """
    task = gathered.task
    found = Checkup(
        digest=digest_of(gathered, given),
        task=task.env,
        recordings=len(gathered.recordings),
        left_out=gathered.left_out,
        findings=tuple(checked(gathered.recordings, task)),
    )
    if refusals(found.findings):
        return found
    model, noise = model_of(gathered.recordings[0]), declared_noise(task)
    now = expected(model, gathered.recordings, nominal_of(task), noise, given)
    return replace(
        found,
        constants={
            one.name: Foreseen(
                verdict=now.judged[one.name].verdict.value,
                half_width=now.half_widths[one.name],
                wanted=one.wanted,
                partners=now.judged[one.name].partners,
            )
            for one in task.constants
            if one.name in now.judged
        },
        # What an arm does to things hangs on them: no programme is known that tells more.
        motion=next_motion(gathered, now, model, noise, given) if task.replay == "steps" else None,
    )


def digest_of(gathered: Gathered, given: Mapping[str, float]) -> str:
    """Digest of the recordings, of what is looked for in them, of simulator and program."""
    model = model_of(gathered.recordings[0])
    return digest(
        {
            "given": dict(given),
            "program": __version__,
            "model": [getattr(model, name, "") for name in ("digest", "engine")],
            "constants": [asdict(one) for one in gathered.task.constants],
            "recordings": [[one.id, one.sha256, one.content] for one in gathered.recordings],
        }
    )


def not_refused(findings: Sequence[Finding]) -> None:
    """Refuse recordings of which nothing should be fitted.

    Raises:
        CheckFailedError: If there are such.
    """
    refused = refusals(findings)
    if refused:
        first = refused[0]
        where = f"{first.recording}: " if first.recording else ""
        more = f" (and {counted(len(refused) - 1, 'more problem')})" if len(refused) > 1 else ""
        raise CheckFailedError(f"{first.check}: {where}{first.text}; {first.remedy}{more}")


def passed(found: Checkup) -> None:
    """Refuse recordings of which nothing should be, or can be, fitted.

    Raises:
        CheckFailedError: If there are such.
    """
    not_refused(found.findings)
    told = found.constants.values()
    if all(one.verdict == Verdict.NOT_IDENTIFIABLE for one in told):
        raise CheckFailedError(
            "nothing can be found from these recordings: no constant can be told; record another"
            " motion, or say what is known by --given"
        )


def keep(trial: TrialDirectory, found: Checkup) -> None:
    """Write what was found into the trial.

    Raises:
        TrialDirectoryError: If it cannot be written.
    """
    place = trial.path / CALIBRATION / CHECK
    place.parent.mkdir(exist_ok=True)
    text = json.dumps(plain(found), indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(place, text.encode() + b"\n")


def kept(trial: TrialDirectory, gathered: Gathered, given: Mapping[str, float]) -> Checkup | None:
    """What was found before; None if there is nothing, or the recordings are others since."""
    try:
        data: Any = door.json_of(door.written(trial.path / CALIBRATION / CHECK))
        if data["form"] != FORM or data["digest"] != digest_of(gathered, given):
            return None
        data["findings"] = tuple(Finding(**one) for one in data["findings"])
        data["constants"] = {name: Foreseen(**one) for name, one in data["constants"].items()}
        data["motion"] = data["motion"] and Motion(**data["motion"])
        return Checkup(**data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
