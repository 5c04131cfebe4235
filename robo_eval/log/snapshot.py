"""What a calibration found: a dated file that simulated episodes can be played with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self

import yaml
from pydantic import ConfigDict, Field, Strict, model_validator

from robo_eval.core.canonical import digest
from robo_eval.core.errors import InputError, PlanError
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval.core.task import Constant, task_of
from robo_eval.core.yaml_form import NAME_PATTERN, Count, Section, mapping_of, text_of, validated
from robo_eval.log.files import write_atomically

VERSION: Final = 1
PAGE: Final = "docs/calibration.md"
NOISE: Final = "noise"
DISTURBANCE: Final = "disturbance"
"""Stages of constants that are no physics."""
_LEAST_SHARE: Final = 0.01
"""Hidden force by applied force below which there is none."""

Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Sha256 = Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")]
Verdict = Literal[
    "given", "identified", "weak", "not identifiable", "at a bound", "not settled", "not moved"
]  # fmt: skip


class _Named(Section):
    """A section with keys that are words of Python, which end in `_` here."""

    model_config = ConfigDict(alias_generator=lambda name: name.rstrip("_"), populate_by_name=True)


class Validity(_Named):
    """The days on which it may be played."""

    from_: date
    until: date
    by: str = ""
    """What set the end."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.until < self.from_:
            raise ValueError(f"until: {self.until} is before from: {self.from_}")
        return self


class Used(Section):
    """A recording it was made from."""

    id: Name
    episode: str
    sha256: Sha256 = ""
    content: Sha256 = ""
    """Digest of its numbers alone, which a copy under another name shares."""
    group: str = ""
    dropped: str | None = None
    """Why it does not count; None if it does."""


class Identified(_Named):
    """What is known of a constant."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    nominal: float | None = None
    n: Annotated[Count, Field(ge=0)] = 0
    """Recordings, or groups of them, behind it."""
    by_recording: tuple[float | None, ...] = ()
    """Estimate of each recording, in their order; None of one that was dropped."""
    between_sd: float | None = None
    method: str = ""
    verdict: Verdict
    with_: tuple[str, ...] = ()
    """Constants it cannot be told apart from."""
    reason: str | None = None
    """Why it is not identified; None if it is."""
    kept: float | None = None
    """What is played instead of `value`; None if `value` is."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.value is None and self.kept is None:
            raise ValueError("value: is missing, and so is `kept`; one of the two is played")
        low, high = self.low, self.high
        if low is not None and high is not None and not low <= (self.value or low) <= high:
            raise ValueError(f"value: {self.value} is not from low: {low} to high: {high}")
        return self


class Noise(Section):
    """Standard deviations that were fitted, by the constant that plays them."""

    sensors: dict[str, Annotated[float, Field(ge=0.0)]] = Field(default_factory=dict)
    force: dict[str, Annotated[float, Field(ge=0.0)]] = Field(default_factory=dict)
    """Of the disturbance: its standard deviation and its memory."""
    floored: tuple[str, ...] = ()
    """Sensors that may be less noisy: their size is the least that is believed, and not found."""


class Residuals(Section):
    """What the constants leave unexplained."""

    verdict: Literal["explained", "structure"] = "explained"
    """`structure`: no constants explain these recordings."""
    chi2: float | None = None
    skill: float | None = None
    """Of held-out replay, against a simulator that nobody pushes; 1 is perfect."""
    share: float | None = None
    """Hidden force by applied force."""
    missing: tuple[str, ...] = ()
    """What the recordings show and the model lacks, with its size."""
    reasons: tuple[str, ...] = ()
    """Why no constants explain them."""
    correlations: dict[str, float] = Field(default_factory=dict)
    """Of two estimates, by `NAME NAME`."""


class Errors(Section):
    """Of what is foretold of one recording, in standard deviations of the noise."""

    nominal: float
    calibrated: float


class Traced(Section):
    """A channel of a recording, and what is foretold of it; None where that is not known."""

    unit: str = ""
    recorded: tuple[float | None, ...]
    nominal: tuple[float | None, ...]
    calibrated: tuple[float | None, ...]


class Traces(Section):
    """What is foretold of a recording that it was not made from, for people to look at."""

    episode: str
    ticks: Annotated[Count, Field(ge=0)] = 0
    """Times after which what is foretold starts anew from what was recorded; 0 if it never does."""
    time_s: tuple[float, ...]
    channels: dict[str, Traced]

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, one in self.channels.items():
            if {len(one.recorded), len(one.nominal), len(one.calibrated)} != {len(self.time_s)}:
                raise ValueError(f"channels.{name}: has not as many numbers as time_s")
        return self


class Accepted(Section):
    """Whether it foretells recordings that it was not made from."""

    LEAVES: ClassVar[str] = "noise alone leaves about 1 at most"
    """What `left` and `errors` are held against: less is left where a sensor is less noisy than is
    believed."""
    verdict: Annotated[bool, Strict()] = False
    fall: float | None = None
    """Share by which the error of held-out recordings falls."""
    low: float | None = None
    high: float | None = None
    left: float | None = None
    """Error that is left, in standard deviations of the noise."""
    n: Annotated[Count, Field(ge=0)] = 0
    errors: dict[str, Errors] = Field(default_factory=dict)
    """By episode."""
    reason: str | None = "not validated yet"
    sha256: Sha256 = ""
    """Digest of all that was accepted; empty if nothing was."""
    traces: Traces | None = None


class Digests(Section):
    """What it came from."""

    environment: str = ""
    engine: str = ""
    code: str = ""
    plan: str = ""


class Snapshot(Section):
    """What a calibration found; see docs/calibration.md."""

    version: Literal[1] = VERSION
    name: Name
    task: str
    robot: str
    side: Side
    made: datetime
    valid: Validity
    recordings: Annotated[tuple[Used, ...], Field(min_length=1)]
    keywords: dict[str, Any] = Field(default_factory=dict)
    """What the environment was made with beside its constants."""
    held_out: tuple[str, ...] = ()
    """Episodes that were kept for `validate`."""
    constants: dict[str, Identified]
    noise: Noise = Field(default_factory=Noise)
    residuals: Residuals = Field(default_factory=Residuals)
    accepted: Accepted = Field(default_factory=Accepted)
    digests: Digests = Field(default_factory=Digests)
    seed: Count = 0

    @model_validator(mode="after")
    def _check(self) -> Self:
        twice = [name for name, n in Counter(one.id for one in self.recordings).items() if n > 1]
        if twice:
            raise ValueError(f"recordings: {twice[0]} is there twice")
        for name, one in self.constants.items():
            if one.by_recording and len(one.by_recording) != len(self.recordings):
                raise ValueError(
                    f"constants.{name}.by_recording: has {len(one.by_recording)} numbers for"
                    f" {len(self.recordings)} recordings"
                )
        return self

    @property
    def sha256(self) -> str:
        """Digest of all but `accepted`."""
        return digest(self.model_dump(mode="json", by_alias=True, exclude={"accepted"}))

    @property
    def used(self) -> list[Used]:
        """The recordings that count."""
        return [one for one in self.recordings if one.dropped is None]

    @property
    def tells(self) -> bool:
        """Whether anything was found of a constant."""
        silent = ("given", "not identifiable", "not moved")
        return any(one.verdict not in silent for one in self.constants.values())

    @property
    def noise_found(self) -> dict[str, str]:
        """Sizes of the noise; a fit never finds exactly zero, so a slight force is none."""
        share = self.residuals.share
        force = self.noise.force if share is None or share >= _LEAST_SHARE else {}
        sizes = {**self.noise.sensors, **force}
        least = dict.fromkeys(self.noise.floored, " or less, the least that is believed")
        return {name: f"{size:.3g}{least.get(name, '')}" for name, size in sizes.items()}

    def row_names(self) -> list[str]:
        """What rows that are played with it say: a name for each recording."""
        return [f"{self.name}/{one.id}" for one in self.used]

    def played(
        self, recording: str | None = None, *, noise: bool = True, force: bool = True
    ) -> dict[str, float]:
        """What `constants` of an environment is to be.

        Args:
            recording: Id of the recording whose estimates are played, for their spread; None plays
                those of all together.
            noise: Whether sensors are as noisy as was found.
            force: Whether the hidden force acts.

        Raises:
            UnknownNameError: If there is no such recording.
        """
        ids = [one.id for one in self.recordings]
        if recording is not None and recording not in ids:
            raise unknown_name(f"recording of calibration {self.name}", recording, ids)
        found = {}
        for name, one in self.constants.items():
            value = one.value if one.kept is None else one.kept
            if recording is not None and one.kept is None and one.by_recording:
                own = one.by_recording[ids.index(recording)]
                value = value if own is None else own
            found[name] = float(value if value is not None else 0.0)
        # Where no constants explain the recordings, noise and force hold what the model lacks.
        is_explained = self.residuals.verdict == "explained"
        found |= self.noise.sensors if noise and is_explained else {}
        found |= self.noise.force if force and is_explained else {}
        # A recording's own estimate scatters, and may lie somewhat beyond what the simulator takes.
        spec = task_of(self.task)
        for known in () if spec is None else spec.constants:
            if known.name in found:
                found[known.name] = min(max(found[known.name], known.low), known.high)
        return found

    @property
    def warnings(self) -> list[str]:
        """What who plays it should know, each in a sentence."""
        found = self.clamped
        if self.residuals.verdict == "structure":
            found.append("no constants explain its recordings: all but given ones are nominal")
        elif not self.accepted.verdict:
            found.append(
                f"is played though it was not accepted: {self.accepted.reason or 'nobody says why'}"
            )
        return found

    @property
    def clamped(self) -> list[str]:
        """Estimates of single recordings beyond what the simulator takes, each in a sentence."""
        found = []
        for number, recording in enumerate(self.recordings):
            played = self.played(recording.id)
            for name, one in self.constants.items():
                own = one.by_recording[number] if one.by_recording and one.kept is None else None
                if own is not None and own != played[name]:
                    found.append(
                        f"{name} of {recording.id} is {own:.6g} {one.unit}, beyond what the"
                        f" simulator takes: {played[name]:g} is played"
                    )
        return found

    def numbers(self) -> Iterator[tuple[str, str, float]]:
        """Every number that is played of all recordings: field, constant, value."""
        for name, one in self.constants.items():
            for field, value in (("value", one.value), ("kept", one.kept)):
                if value is not None:
                    yield f"constants.{name}.{field}", name, value
        for field, found in (("sensors", self.noise.sensors), ("force", self.noise.force)):
            for name, value in found.items():
                yield f"noise.{field}.{name}", name, value

    def problems(
        self, *, task: str = "", robot: str = "", day: date | None = None, environment: str = ""
    ) -> list[str]:
        """Why it should not be played, each in a sentence; what is left empty is not compared.

        Args:
            task: Gymnasium id of what is played.
            robot: Whose simulated half it is.
            day: On which day.
            environment: Digest of the environment.
        """
        found = []
        if task and task != self.task:
            found.append(f"it is of task {self.task}, and {task} is played")
        if robot and robot != self.robot:
            found.append(f"it is of robot {self.robot}, and not of {robot}")
        if day is not None and not self.valid.from_ <= day <= self.valid.until:
            found.append(
                f"it is valid from {self.valid.from_} to {self.valid.until}, and {day} is not"
            )
        if environment and self.digests.environment not in ("", environment):
            found.append("the environment was changed since it was made")
        return found


def read_snapshot(path: Path) -> Snapshot:
    """Read a snapshot.

    Raises:
        PlanError: If it is missing or no snapshot, a constant is unknown to its task, beyond its
            bounds or in another unit, or it was changed since it was accepted; the message names
            file and field.
    """
    return parse_snapshot(text_of(path, "calibration"), path)


def parse_snapshot(text: str, path: Path) -> Snapshot:
    """Read the text of a snapshot; errors name its file.

    Raises:
        PlanError: As of `read_snapshot`.
    """
    data = mapping_of(text, str(path), "a calibration snapshot is", PAGE)
    version = data.get("version")
    if isinstance(version, int) and version > VERSION:
        raise PlanError(
            f"{path}: version: {version} is newer than this program's {VERSION}; install a newer"
            " robo-eval to read it"
        )
    found = validated(data, Snapshot, str(path))
    spec = task_of(found.task)
    if spec is not None:
        for field, name, value in found.numbers():
            try:
                spec.checked({name: value})
            except InputError as err:
                problem = str(err).removeprefix(f"constants.{name}: ")
                raise PlanError(f"{path}: {field}: {problem}; calibrate again") from err
        for constant in spec.constants:
            if (one := found.constants.get(constant.name)) is not None:
                _check(one, constant, f"{path}: constants.{constant.name}")
    if found.accepted.sha256 and found.accepted.sha256 != found.sha256:
        raise PlanError(
            f"{path}: accepted.sha256: the snapshot was changed since it was accepted; take the"
            " block `accepted` out, and run `robo-eval calibrate validate`"
        )
    return found


def _check(one: Identified, constant: Constant, where: str) -> None:
    """Refuse another unit than the task's, and estimates that no scatter takes so far."""
    if one.unit != constant.unit:
        given = f"is {one.unit!r}" if one.unit else "is missing"
        raise PlanError(f"{where}.unit: {given}; write {constant.unit!r}, with numbers in it")
    reach = constant.high - constant.low
    for index, x in enumerate(one.by_recording if one.kept is None else ()):
        if x is not None and not constant.low - reach <= x <= constant.high + reach:
            raise PlanError(
                f"{where}.by_recording.{index}: {x:g} {one.unit} is beyond {constant.low:g} to"
                f" {constant.high:g} by more than scatter; drop that recording, and calibrate again"
            )


def write_snapshot(snapshot: Snapshot, path: Path) -> None:
    """Write a snapshot: whole, or not at all.

    Raises:
        TrialDirectoryError: If it cannot be written; an older one stays.
    """
    data: dict[str, Any] = snapshot.model_dump(mode="json", by_alias=True)
    if snapshot.accepted.verdict and not snapshot.accepted.sha256:
        data["accepted"]["sha256"] = snapshot.sha256
    head = f"# Calibration of a simulator; {PAGE} says what is in it.\n"
    # In one line what holds nothing but numbers and words.
    text = yaml.safe_dump(
        data, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )
    write_atomically(path, (head + text).encode())
