"""What a record can say: one class for each kind of record, and each field told once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    NoReturn,
    Self,
    TypeVar,
    get_args,
    get_origin,
)

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    Strict,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.yaml_form import Section, first_problem
from robo_eval_incidents.text import (
    LATEST_NS,
    ROUGHLY,
    TIMES,
    Form,
    Line,
    Name,
    Note,
    Private,
    Prose,
    Uri,
    answers_of,
    day_of,
    instant_of,
    quantities_of,
    sections_of,
    shown_time,
    span_of,
    span_text,
    too_long,
)
from robo_eval_incidents.words import (
    Answer,
    BodyRegion,
    Category,
    Contact,
    Engagement,
    Question,
    Severity,
    Treatment,
    Word,
    spoken,
)

_Model = TypeVar("_Model", bound=BaseModel)

AHEAD_NS: Final = 300 * 10**9
"""Clocks of two machines may differ by so much: what is later than that is still to come."""
MOST_EVIDENCE: Final = 50
MOST_QUANTITIES: Final = 50
MOST_INJURIES: Final = 20
MOST_SECONDS: Final = 31_622_400.0
"""Seconds that one time of exposure may take: 366 days."""
UNKNOWN_NS: Final = -1
"""What a list has for the hours of a period that nobody said."""
MOST_KM: Final = 1e7
"""Kilometres that one time of exposure may take."""


def _word_of(text: str, _now_ns: int) -> str:
    return text.strip()


def _truth_of(text: str, _now_ns: int) -> bool:
    if text.strip() not in {"yes", "no"}:
        raise ValueError(f"is yes or no, given {text!r:.40}")
    return text.strip() == "yes"


def _truth_shown(value: bool) -> str:  # noqa: FBT001 - what a form shows
    return "yes" if value else "no"


Ns = Annotated[
    int,
    Strict(),
    Field(ge=0, le=LATEST_NS),
    Form(instant_of, shown_time, "datetime-local"),
]
"""An instant, UTC, ns since 1970."""
Day = Annotated[date, Form(day_of, date.isoformat, "date")]
RECORD_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
RecordId = Annotated[str, Field(pattern=f"^{RECORD_ID.pattern}$")]
"""Id of a record, a UUID in lower case."""
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Days = Annotated[int, Field(ge=0, le=36_600)]
_Measured = Annotated[float, Field(ge=0.0, le=1e6)]


def said(label: str, default: Any = ..., *, help: str = "") -> Any:  # noqa: A002
    """A field as people know it.

    Args:
        label: What stands beside it.
        default: Its value where nothing is said; none if something has to be.
        help: What it is for, if the label does not say so.
    """
    return Field(default, title=label, description=help or None)


class Body(Section):
    """What a record says, beside who said it and when."""

    kind: ClassVar[str] = ""
    """Kind of record; its name in the log."""
    title: ClassVar[str] = ""
    """What a history calls such a record."""
    about_incident: ClassVar[bool | None] = True
    """Whether such a record is about an incident that is in the log; None if it may be."""
    role: ClassVar[Literal["operator", "reviewer"] | None] = None
    """Who records it on the page and by a program; None for what neither takes."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_more: Any) -> None:
        """Every class that names its kind is one."""
        if "kind" in vars(cls):
            KINDS[cls.kind] = cls

    @property
    def subject(self) -> str | None:
        """What else than an incident it tells of; None if it tells of nothing else."""
        return None


KINDS: Final[dict[str, type[Body]]] = {}
"""Every kind of record, by name."""


class Quantity(Section):
    """Something that was measured."""

    name: Name
    """Such as `force` or `separation`."""
    value: float
    unit: Line = ""
    """SI unit, such as `N` or `m/s`; empty for a ratio."""
    limit: float | None = None
    """What would have been allowed; none if there is no limit."""

    def __str__(self) -> str:
        limit = "" if self.limit is None else f", limit {self.limit:g} {self.unit}".rstrip()
        return f"{self.name} {self.value:g} {self.unit}".rstrip() + limit


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

    def __str__(self) -> str:
        span = ""
        if self.start_ns is not None and self.end_ns is not None:
            span = f", {shown_time(self.start_ns)} to {shown_time(self.end_ns)}"
        return f"{self.uri}{span}" + (f", SHA-256 {self.sha256}" if self.sha256 else "")


def _questions(answers: dict[str, Answer]) -> dict[str, Answer]:
    for name in answers:
        if name not in set(Question):
            raise ValueError(f"no question {name!r}; there are {', '.join(Question)}")
    return answers


def _not_read(text: str, _now_ns: int) -> NoReturn:
    raise ValueError(f"{text!r:.40} is not read; files are attached")


def _answers_shown(answers: Mapping[str, Answer]) -> str:
    return "; ".join(f"{spoken(name)}: {answer}" for name, answer in answers.items())


def _listed(values: tuple[object, ...]) -> str:
    return "; ".join(map(str, values))


Pieces = Annotated[tuple[Evidence, ...], Form(_not_read, _listed)]
Quantities = Annotated[tuple[Quantity, ...], Form(quantities_of, _listed)]
Answers = Annotated[
    dict[str, Answer], AfterValidator(_questions), Form(answers_of, _answers_shown, "answers")
]


class Injury(Section):
    """What happened to one person: no name belongs in it."""

    who: Line = said("Who", "", help="Role or job title, such as operator or visitor; no name.")
    region: BodyRegion = said("Body region", BodyRegion.UNKNOWN)
    nature: Note = said("Injury", "", help="Such as a bruise or a cut.")
    treatment: Treatment = said("Treatment", Treatment.UNKNOWN)
    days_away: _Days | None = said("Days away from work", None)
    days_restricted: _Days | None = said("Days of restricted or other work", None)
    contact: Contact = said("Contact", Contact.UNKNOWN)
    force_n: _Measured | None = said("Force (N)", None, help="Peak force of the contact.")
    pressure_n_cm2: _Measured | None = said("Pressure (N/cm²)", None)
    object: Line = said("What hurt them", "", help="Such as the gripper, or a part that fell.")
    doing: Note = said("What they were doing", "", help="Just before it happened.")

    def __str__(self) -> str:
        said_ = [
            f"{str(field.title).lower()} {spoken(value)}"
            for name, field in type(self).model_fields.items()
            if name not in ("who", "region")
            and (value := getattr(self, name)) not in (None, "", "unknown")
        ]
        where = self.region.meaning or self.region.label
        return ", ".join([f"{self.who or 'a person'}: {where}", *said_])


def _injuries_read(text: str, _now_ns: int) -> list[dict[str, str]]:
    found = sections_of(text, tuple(Injury.model_fields))
    for section in found:
        for name in set(section) & {"region", "treatment", "contact"}:
            section[name] = section[name].replace(" ", "_")  # as people write words
    return found


Injuries = Annotated[
    tuple[Injury, ...],
    Field(min_length=1, max_length=MOST_INJURIES),
    Form(_injuries_read, _listed, "injuries"),
]


class Opened(Body):
    """A station begins its chain."""

    kind: ClassVar = "opened"
    title: ClassVar = "Opened"
    about_incident: ClassVar = False

    software: Line = said("Program", help="Which program opened it.")
    note: Note = said("Note", "")


class Report(Body):
    """An event around a robot: reported by a person, or drafted by a rule."""

    kind: ClassVar = "report"
    title: ClassVar = "Reported"
    role: ClassVar = "operator"
    about_incident: ClassVar = False

    happened_ns: Ns = said("When", help=f"When it happened: {TIMES}, {ROUGHLY}.")
    until_ns: Ns | None = said(
        "Until", None, help="End of the time in which it happened, if only that is known."
    )
    robot: Name = said("Robot", help="Robot, as its robot file names it.")
    side: Side = said("Side", help="real, twin (a stand-in behind ROS 2), or sim.")
    severity: Severity = said("Severity")
    category: Category = said("Category", help="What kind of event it was.")
    description: Prose = said("What happened")
    engagement: Engagement = said("Who was in control", Engagement.UNKNOWN)
    episode_id: Line | None = said("Episode", None, help="Episode it happened in.")
    policy: Line | None = said("Policy", None, help="Policy that was running.")
    task: Line | None = said("Task", None)
    quantities: Quantities = Field(
        default=(),
        max_length=MOST_QUANTITIES,
        title="Measured",
        description='Measured, such as "force=81.2 N (limit 80)".',
    )
    evidence: Pieces = Field(default=(), max_length=MOST_EVIDENCE, title="Evidence")
    answers: Answers = Field(
        default_factory=dict,
        title="Questions about injuries",
        description="Such as medical_treatment=no.",
    )
    injuries: Injuries | None = said(
        "Injured", None, help='Each person: "who=operator, region=face, treatment=first_aid".'
    )
    place: Note | None = said("Place", None, help="Where it happened, such as cell 3.")
    rule: Line | None = said("Rule", None, help="Rule that drafted it.")
    source_id: Line | None = said("Source id", None, help="Its id where it was imported from.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.until_ns is not None and self.until_ns <= self.happened_ns:
            raise ValueError("until_ns: is not after happened_ns")
        return self

    @property
    def time(self) -> str:
        """When it happened, as far as that is known; see `text.span_of`."""
        return span_text(self.happened_ns, self.until_ns)

    @property
    def latest_ns(self) -> int:
        """The last instant at which it can have happened."""
        return self.happened_ns if self.until_ns is None else self.until_ns - 1


class Correction(Body):
    """Other values for fields of a report; what was first said stays in the log."""

    kind: ClassVar = "correction"
    title: ClassVar = "Corrected"
    role: ClassVar = "operator"
    FIELDS: ClassVar = (
        "happened_ns", "until_ns", "robot", "side", "description", "engagement", "episode_id",
        "policy", "task", "quantities", "answers", "injuries", "place",
    )  # fmt: skip

    fields: dict[str, Any] = Field(min_length=1, title="New values")
    reason: Prose = said("Why")

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
                _correctable(name).validate_python(self.fields[name])
            except ValidationError as err:
                problem = err.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
                raise ValueError(f"fields.{name}: {problem}") from err
        return self


@cache
def _correctable(name: str) -> TypeAdapter[Any]:
    """What a field that can be corrected takes."""
    return TypeAdapter(Report.model_fields[name].rebuild_annotation())


class Reclassification(Body):
    """Another severity or category."""

    kind: ClassVar = "reclassification"
    title: ClassVar = "Reclassified"
    role: ClassVar = "reviewer"

    severity: Severity = said("Severity")
    category: Category = said("Category")
    reason: Prose = said("Why")


class Attachment(Body):
    """Further evidence."""

    kind: ClassVar = "attachment"
    title: ClassVar = "Attached"
    role: ClassVar = "operator"

    evidence: Pieces = Field(min_length=1, max_length=MOST_EVIDENCE, title="Evidence")
    note: Note = said("Note", "")


class Review(Body):
    """What a person found who looked at an incident."""

    kind: ClassVar = "review"
    title: ClassVar = "Reviewed"
    role: ClassVar = "reviewer"

    verdict: Literal["confirmed", "dismissed"] = said(
        "Verdict", help="It happened, or it was no incident."
    )
    note: Prose = said("What you found")
    duplicate_of: RecordId | None = said(
        "Duplicate of", None, help="The incident this one is the same event as, if it is dismissed."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.duplicate_of is not None and self.verdict != "dismissed":
            raise ValueError("duplicate_of: only an incident that is dismissed is a duplicate")
        return self


class Action(Body):
    """Something that is going to be done, so that it does not happen again."""

    kind: ClassVar = "action"
    title: ClassVar = "Corrective action"
    role: ClassVar = "reviewer"

    what: Prose = said("What is going to be done")
    owner: Name = said("Owner", help="Who sees to it.")
    due: Day | None = said("Due", None, help="Until when.")


class Effectiveness(Body):
    """Whether a corrective action helped."""

    kind: ClassVar = "effectiveness"
    title: ClassVar = "Action checked"
    role: ClassVar = "reviewer"

    action_id: RecordId = said("Action", help="Record of the action.")
    is_effective: Annotated[bool, Form(_truth_of, _truth_shown, "choice")] = said(
        "Effective", help="Whether it helped."
    )
    how: Prose = said("How that was found out")


class Closure(Body):
    """Nothing is left to do."""

    kind: ClassVar = "closure"
    title: ClassVar = "Closed"
    role: ClassVar = "reviewer"

    note: Prose = said("Why nothing is left to do")


class Nil(Body):
    """A time in which nothing happened, said so by somebody who was there."""

    kind: ClassVar = "nil"
    title: ClassVar = "Shift without incidents"
    role: ClassVar = "operator"
    about_incident: ClassVar = False

    start_ns: Ns = said("Begin", help="Begin of the shift, such as -8h.")
    end_ns: Ns = said("End", help="End of the shift.")
    robot: Line | None = said("Robot", None, help="Only of this robot; all of the station if none.")
    side: Side = said("Side", Side.REAL, help="real, twin or sim.")
    note: Note = said("Note", "", help="A line to go with it.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.start_ns >= self.end_ns:
            raise ValueError("start_ns is not before end_ns; a shift takes time")
        return self


class Exposure(Body):
    """A time in which a robot was exposed."""

    kind: ClassVar = "exposure"
    title: ClassVar = "Hours"
    role: ClassVar = "reviewer"
    about_incident: ClassVar = False

    robot: Name = said("Robot")
    side: Side = said("Side")
    mode: Engagement = said("Who was in control")
    task: Line = said("Task", "")
    policy: Line | None = said("Policy", None)
    episode_id: Line | None = said("Episode", None)
    """Counted once for each episode of a trial."""
    trial: Line | None = said("Trial", None)
    """What names the trial: the SHA-256 of its plan; none if it was no episode."""
    start_ns: Ns = said("Begin")
    seconds: Annotated[float, Field(ge=0.0, le=MOST_SECONDS)] | None = said("Seconds", None)
    """How long: a year at most; none if only kilometres of a period are known."""
    until_ns: Ns | None = said(
        "End", None, help="End of the period it lies in, if only its length is known."
    )
    km: Annotated[float, Field(ge=0.0, le=MOST_KM)] | None = said(
        "Kilometres", None, help="How far the robot went in it."
    )

    @property
    def end_ns(self) -> int:
        """End, UTC; of a total, that of its period."""
        return self.until_ns or self.start_ns + round((self.seconds or 0.0) * 1e9)

    @property
    def total_ns(self) -> int | None:
        """How long within a period; -1 if nobody said, and None where begin and end are known."""
        if self.until_ns is None:
            return None
        return UNKNOWN_NS if self.seconds is None else round(self.seconds * 1e9)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.seconds is None and (self.until_ns is None or self.km is None):
            raise ValueError("seconds: is missing; only kilometres of a period go without")
        if self.end_ns > LATEST_NS:
            raise ValueError("seconds: it would end after the year 2262")
        if self.until_ns is not None:
            length = (self.until_ns - self.start_ns) / 1e9
            if not 0.0 < length <= MOST_SECONDS:
                raise ValueError("until_ns: the period is between 0 and 366 days long")
            if self.seconds is not None and self.seconds > length:
                raise ValueError(
                    f"seconds: {self.seconds / 3600:g} h are more than the {length / 3600:g} h of"
                    " the period"
                )
        return self


class Withdrawal(Body):
    """A time that was logged by mistake: hours or a shift without incidents no longer count."""

    kind: ClassVar = "withdrawal"
    title: ClassVar = "Withdrawn"
    role: ClassVar = "reviewer"
    about_incident: ClassVar = False

    withdrawn_id: RecordId = said("Record", help="Record of the exposure, or the nil report.")
    reason: Prose = said("What was wrong with it")

    @property
    def subject(self) -> str:
        """Record that it takes back."""
        return self.withdrawn_id


class Redaction(Body):
    """A free text is to be taken out of the log; it is out once two people asked for it."""

    kind: ClassVar = "redaction"
    title: ClassVar = "Text to be taken out"
    about_incident: ClassVar = None

    redacted_id: RecordId = said("Record")
    subject_id: RecordId = said("About", help="What that record tells of.")
    field: Line = said("Text", help="Its path in that record, such as description.")
    reason: Prose = said("Why")

    @property
    def subject(self) -> str:
        """What the record tells of whose text is taken out."""
        return self.subject_id


class View(Body):
    """Somebody looked at a critical incident."""

    kind: ClassVar = "view"
    title: ClassVar = "Viewed"


class Account(Body):
    """Who may do what on the web page, from now on."""

    kind: ClassVar = "account"
    title: ClassVar = "Account"
    about_incident: ClassVar = False

    user: Name = said("Person")
    roles: tuple[Literal["operator", "reviewer", "auditor", "admin"], ...] = Field(title="Roles")
    """None for an account that was closed."""


class Notice(Body):
    """Somebody was told of an incident, by webhook or e-mail, or `reported` by a person."""

    kind: ClassVar = "notice"
    title: ClassVar = "Told"

    what: Literal["critical", "overdue", "clock", "late", "reported"] = said("What")
    to: Line = said("To", help="Who was told.")
    text: Line = said("Text", help="What they were told, or a number that they gave.")


class Refusal(Body):
    """Logins that were refused, those of some minutes together."""

    kind: ClassVar = "refusal"
    title: ClassVar = "Logins refused"
    about_incident: ClassVar = False

    user: Name | None = said("Account", None, help="None for names that have no account.")
    attempts: Annotated[int, Strict(), Field(ge=1)] = said("Attempts")
    since_ns: Ns = said("Since")


def plain(body: BaseModel) -> dict[str, Any]:
    """A body as JSON has it; what is not set is left out."""
    return body.model_dump(mode="json", exclude_none=True)


# Free text -------------------------------------------------------------------------------------


def private_texts(
    kind: str, values: Mapping[str, Any]
) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Where a body has free text: what holds it, under which key, and its path in the body.

    Args:
        kind: Kind of the record.
        values: Its body as JSON has it.
    """
    if kind == Correction.kind:
        fields = values.get("fields")
        if isinstance(fields, dict):
            yield from _texts_in(Report, fields, "fields.")
    model = KINDS.get(kind)
    if model is not None and isinstance(values, dict):
        yield from _texts_in(model, values, "")


def _texts_in(
    model: type[BaseModel], values: dict[str, Any], before: str
) -> Iterator[tuple[dict[str, Any], str, str]]:
    for name, inner in _private(model).items():
        value = values.get(name)
        if inner is None and value:
            yield values, name, before + name
        elif inner is not None and isinstance(value, list):
            for number, one in enumerate(value):
                if isinstance(one, dict):
                    yield from _texts_in(inner, one, f"{before}{name}.{number}.")


@cache
def _private(model: type[BaseModel]) -> dict[str, type[BaseModel] | None]:
    """Fields of free text; those whose entries have some come with the entry's class."""
    found: dict[str, type[BaseModel] | None] = {}
    for name, field in model.model_fields.items():
        inner_ = (getattr(one, "__metadata__", ()) for one in get_args(field.annotation))
        if Private in field.metadata or any(Private in one for one in inner_):
            found[name] = None
        for inner in _models_in(field.annotation):
            if _private(inner):
                found[name] = inner
    return found


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


# From outside ----------------------------------------------------------------------------------

_HAVE: Final = re.compile(r"(?:String|Tuple) should have")


def form_of(field: FieldInfo) -> Form:
    """How people write a field and see it."""
    own = next((one for one in field.metadata if isinstance(one, Form)), None)
    if own is not None:
        return own
    for inner in get_args(field.annotation):
        found = next(
            (one for one in getattr(inner, "__metadata__", ()) if isinstance(one, Form)), None
        )
        if found is not None:
            return found
    return _WORD if _is_word(field.annotation) else _TEXT


_TEXT: Final = Form(lambda text, _now_ns: text)
_WORD: Final = Form(_word_of, spoken, "choice")


def _is_word(annotation: Any) -> bool:
    is_one = isinstance(annotation, type) and issubclass(annotation, Word | Side)
    return is_one or get_origin(annotation) is Literal


def times_of(text: str, now_ns: int | None = None) -> dict[str, int | None]:
    """When something happened, as the fields of a report; see `text.span_of`."""
    return dict(zip(("happened_ns", "until_ns"), span_of(text, now_ns), strict=True))


def section_of(model: type[_Model], values: Any, where: str = "") -> _Model:
    """A section made of values from outside.

    Args:
        model: Which section.
        values: What was given, anything at all.
        where: What comes before the field in messages.

    Raises:
        InputError: If it is none; the message is one line that begins with `where` and the field.
    """
    try:
        return model.model_validate(values)
    except ValidationError as err:
        raise InputError(f"{where}{problem_of(err, model)}") from err


def problem_of(err: ValidationError, model: type[BaseModel]) -> str:
    """The most likely cause in one line, which begins with the field."""
    first = err.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    if first["type"] == "string_too_long":
        return f"{field}: {too_long(first)}"
    if first["type"] == "too_long":
        found, most = first["ctx"]["actual_length"], first["ctx"]["max_length"]
        return f"{field}: are {found}; {most} are the most"
    if first["type"] != "value_error":
        return " ".join(first_problem(err, model).split())
    # Ours; it is about the field as a whole, or begins with the field within the section.
    text = " ".join(first["msg"].removeprefix("Value error, ").split())
    # Of a correction people know the fields, and not where a record keeps them.
    text = text.removeprefix("fields.").replace("Input should be", "must be")
    text = _HAVE.sub("must have", text).replace(" after validation", "")
    return f"{field}: {text}" if field else text


@cache
def _terms() -> re.Pattern[str]:
    fields = {name for model in KINDS.values() for name in model.model_fields}
    words = {word.value for one in (Severity, Category, Engagement, Question) for word in one}
    names = sorted(name for name in fields | words if "_" in name)
    return re.compile(rf"\b(?:{'|'.join(names)})\b")


def in_words(text: str) -> str:
    """A sentence as people read it: words and names of fields without underscores.

    Example:
        >>> in_words("incident lab/2 is near_miss; start_ns is not before end_ns of arm_1")
        'incident lab/2 is near miss; start is not before end of arm_1'
    """
    return _terms().sub(lambda found: spoken(found[0].removesuffix("_ns")), text)
