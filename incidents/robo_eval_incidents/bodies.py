"""What a record can say: one class for each kind of record."""

from __future__ import annotations

import re
from datetime import date
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    Strict,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from robo_eval.core.kinds import Side
from robo_eval.core.yaml_form import Section
from robo_eval_incidents.taxonomy import RECORDABILITY, Answer, Category, Engagement, Severity
from robo_eval_incidents.text import Line, Name, Prose, Uri

LATEST_NS: Final = 2**63 - 1
"""Times are whole nanoseconds since 1970 that fit into 64 bits."""
AHEAD_NS: Final = 300 * 10**9
"""Clocks of two machines may differ by so much: what is later than that is still to come."""
MOST_EVIDENCE: Final = 50
MOST_QUANTITIES: Final = 50
MOST_SECONDS: Final = 31_622_400.0
"""Seconds that one time of exposure may take: 366 days."""

Ns = Annotated[int, Strict(), Field(ge=0, le=LATEST_NS)]
"""An instant, UTC, ns since 1970."""
RECORD_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
RecordId = Annotated[str, Field(pattern=f"^{RECORD_ID.pattern}$")]
"""Id of a record, a UUID in lower case."""
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Body(Section):
    """What a record says, beside who said it and when."""

    kind: ClassVar[str]
    """Kind of record; its name in the log."""
    about_incident: ClassVar[bool] = True
    """Whether such a record is about an incident that is in the log."""


class Quantity(Section):
    """Something that was measured."""

    name: Name
    """Such as `force` or `separation`."""
    value: float
    unit: Line = ""
    """SI unit, such as `N` or `m/s`; empty for a ratio."""
    limit: float | None = None
    """What would have been allowed; none if there is no limit."""


class Evidence(Section):
    """A file that shows what happened."""

    uri: Uri
    """Path, relative to the folder of evidence: that of the log, or the trial directory."""
    start_ns: Ns | None = None
    """First instant that matters; none for the whole file."""
    end_ns: Ns | None = None
    """Last instant that matters."""
    sha256: Sha256 | None = None
    """Digest of the file; none if it was still being written."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.start_ns is None) != (self.end_ns is None):
            raise ValueError("start_ns and end_ns are both given or both left out")
        if self.start_ns is not None and self.end_ns is not None and self.start_ns > self.end_ns:
            raise ValueError("start_ns is after end_ns")
        return self


def _questions(answers: dict[str, Answer]) -> dict[str, Answer]:
    for name in answers:
        if name not in RECORDABILITY:
            raise ValueError(f"no question {name!r}; there are {', '.join(RECORDABILITY)}")
    return answers


class Report(Body):
    """An event around a robot: reported by a person, or drafted by a rule."""

    kind: ClassVar = "report"
    about_incident: ClassVar = False

    happened_ns: Ns
    """When it happened, UTC."""
    robot: Name
    """Robot, as its robot file names it."""
    side: Side
    """`real`, `twin` for a stand-in behind ROS 2, or `sim`. Only `real` counts for a robot."""
    severity: Severity
    category: Category
    description: Prose
    """What happened."""
    engagement: Engagement = Engagement.UNKNOWN
    """Who was in control."""
    episode_id: Line | None = None
    """Episode it happened in; none if outside one or not known."""
    policy: Line | None = None
    """Policy that was running; none if not known."""
    task: Line | None = None
    """Task; none if not known."""
    quantities: tuple[Quantity, ...] = Field(default=(), max_length=MOST_QUANTITIES)
    evidence: tuple[Evidence, ...] = Field(default=(), max_length=MOST_EVIDENCE)
    answers: Annotated[dict[str, Answer], AfterValidator(_questions)] = Field(default_factory=dict)
    """Answers to the questions of recordability."""
    rule: Line | None = None
    """Rule that drafted it; none if a person reported it."""
    source_id: Line | None = None
    """Its id where it was imported from; none if it was not."""


class Correction(Body):
    """Other values for fields of a report; what was first said stays in the log."""

    kind: ClassVar = "correction"
    FIELDS: ClassVar = (
        "happened_ns", "robot", "side", "description", "engagement", "episode_id", "policy",
        "task", "quantities", "answers",
    )  # fmt: skip

    fields: dict[str, Any] = Field(min_length=1)
    """New values by field of a report."""
    reason: Prose

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in self.fields:
            if name not in self.FIELDS:
                extra = "; reclassify it instead" if name in {"severity", "category"} else ""
                raise ValueError(
                    f"fields: no field {name!r} can be corrected{extra}; there are"
                    f" {', '.join(self.FIELDS)}"
                )
            try:
                _CORRECTABLE[name].validate_python(self.fields[name])
            except ValidationError as err:
                problem = err.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
                raise ValueError(f"fields.{name}: {problem}") from err
        return self


_CORRECTABLE: Final[dict[str, TypeAdapter[Any]]] = {
    name: TypeAdapter(Report.model_fields[name].rebuild_annotation()) for name in Correction.FIELDS
}
"""What each field that can be corrected takes."""


class Reclassification(Body):
    """Another severity or category."""

    kind: ClassVar = "reclassification"

    severity: Severity
    category: Category
    reason: Prose


class Attachment(Body):
    """Further evidence."""

    kind: ClassVar = "attachment"

    evidence: tuple[Evidence, ...] = Field(min_length=1, max_length=MOST_EVIDENCE)
    note: Line = ""


class Review(Body):
    """What a person found who looked at an incident."""

    kind: ClassVar = "review"

    verdict: Literal["confirmed", "dismissed"]
    note: Prose
    duplicate_of: RecordId | None = None
    """The incident this one is the same event as, if it was dismissed for that."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.duplicate_of is not None and self.verdict != "dismissed":
            raise ValueError("duplicate_of: only an incident that is dismissed is a duplicate")
        return self


class Action(Body):
    """Something that is going to be done, so that it does not happen again."""

    kind: ClassVar = "action"

    what: Prose
    owner: Name
    """Who sees to it."""
    due: date | None = None
    """Until when; none if nobody said."""


class Effectiveness(Body):
    """Whether a corrective action helped."""

    kind: ClassVar = "effectiveness"

    action_id: RecordId
    """Record of the action."""
    is_effective: bool
    how: Prose
    """How that was found out."""


class Closure(Body):
    """Nothing is left to do."""

    kind: ClassVar = "closure"

    note: Prose


class Nil(Body):
    """A time in which nothing happened, said so by somebody who was there."""

    kind: ClassVar = "nil"
    about_incident: ClassVar = False

    start_ns: Ns
    end_ns: Ns
    robot: Line | None = None
    """Robot it is about; none for all of the station."""
    side: Side = Side.REAL
    note: Line = ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.start_ns >= self.end_ns:
            raise ValueError("start_ns is not before end_ns; a shift takes time")
        return self


class Exposure(Body):
    """A time in which a robot was exposed."""

    kind: ClassVar = "exposure"
    about_incident: ClassVar = False

    robot: Name
    side: Side
    mode: Engagement
    """Who was in control."""
    task: Line = ""
    policy: Line | None = None
    episode_id: Line | None = None
    """Episode it is of; none if it was no episode. Counted once for each episode of a trial."""
    trial: Line | None = None
    """What names the trial: the SHA-256 of its plan; none if it was no episode."""
    start_ns: Ns
    seconds: Annotated[float, Field(ge=0.0, le=MOST_SECONDS)]
    """How long: a year at most."""

    @property
    def end_ns(self) -> int:
        """End, UTC."""
        return self.start_ns + round(self.seconds * 1e9)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.end_ns > LATEST_NS:
            raise ValueError("seconds: it would end after the year 2262")
        return self


class Withdrawal(Body):
    """A time that was logged by mistake: hours or a shift without incidents no longer count."""

    kind: ClassVar = "withdrawal"
    about_incident: ClassVar = False

    withdrawn_id: RecordId
    """Record of the exposure, or the nil report."""
    reason: Prose


class View(Body):
    """Somebody looked at a critical incident."""

    kind: ClassVar = "view"


class Opened(Body):
    """A station begins its chain."""

    kind: ClassVar = "opened"
    about_incident: ClassVar = False

    software: Line
    """Which program opened it."""
    note: Line = ""


class Account(Body):
    """Who may do what on the web page, from now on."""

    kind: ClassVar = "account"
    about_incident: ClassVar = False

    user: Name
    roles: tuple[Literal["operator", "reviewer", "auditor"], ...]
    """None for an account that was closed."""


_ALL: Final[tuple[type[Body], ...]] = (
    Opened, Report, Correction, Reclassification, Attachment, Review, Action, Effectiveness,
    Closure, Nil, Exposure, Withdrawal, View, Account,
)  # fmt: skip
BODIES: Final = MappingProxyType({body.kind: body for body in _ALL})
"""Every kind of record, by name."""


def plain(body: BaseModel) -> dict[str, Any]:
    """A body as JSON has it; what is not set is left out."""
    return body.model_dump(mode="json", exclude_none=True)
