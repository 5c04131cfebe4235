"""What a client of a competition may say, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    TypeAdapter,
    ValidationError,
)

from robo_eval.agents.wire import decode, encode
from robo_eval.core.errors import InputError
from robo_eval.core.trials import checked_declaration

PROTOCOL: Final = 1
MOST_TRIALS: Final = 64
"""Trials that one connection may play at once."""

_REPORT: Final = '{"levels": [{"level_number": 1, "probability": 0.6}], "entity": "cart"}'


def _different(places: list[int]) -> list[int]:
    if len(set(places)) < len(places):
        raise ValueError("names one twice")
    return places


_Place = Annotated[int, Field(ge=0, lt=MOST_TRIALS)]
_Places = Annotated[list[_Place], Field(min_length=1), AfterValidator(_different)]
_Word = Annotated[str, Field(max_length=100)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    id: Annotated[int, Field(ge=0, lt=2**53)]


class Hello(_Message):
    """The first message of a connection."""

    type: Literal["hello"]
    protocol: int
    trials: Annotated[int, Field(ge=1, le=MOST_TRIALS)] = 1
    """How many are to be played at once."""
    task: _Word | None = None
    """Gymnasium id of the task, where a competition has several."""
    session: _Word | None = None
    """What the last hello was answered: who comes back goes on where the connection broke."""
    text: bool = False
    """Whether observations are to come as JSON, too."""
    rehearsal: bool = False
    """Whether one episode without novelty is to be played that does not count."""


class Reset(_Message):
    """Begin the next episode of some trials."""

    type: Literal["reset"]
    trials: _Places


class Step(_Message):
    """One tick in some trials."""

    type: Literal["step"]
    trials: _Places
    actions: list[Any] | None = None
    """One for each trial; in a binary message they are its value."""
    value: Any = None

    @property
    def given(self) -> list[Any]:
        """The actions.

        Raises:
            RefusedError: If there is not one for each trial.
        """
        found = self.value if self.actions is None else self.actions
        is_row = isinstance(found, list) or getattr(found, "ndim", 0) >= 1
        if not is_row or len(found) != len(self.trials):
            raise RefusedError("bad_action", "step needs one action for each of its trials")
        return list(found)


class Declare(_Message):
    """What an agent says of the episode that has just ended."""

    type: Literal["declare"]
    trial: _Place
    probability: float
    threshold: float = 0.5
    report: dict[str, Any] | None = None
    """Its `levels`, `entity`, `attribute` and `change`."""

    @property
    def checked(self) -> dict[str, Any]:
        """Probability, threshold and report, as agents of a plan declare them.

        Raises:
            RefusedError: If they cannot be used.
        """
        try:
            return declared(self.probability, self.threshold, self.report)
        except InputError as err:
            raise RefusedError("bad_declaration", str(err)) from err


def declared(probability: object, threshold: object, report: object) -> dict[str, Any]:
    """Probability, threshold and report by name, as agents of a plan declare them.

    Raises:
        InputError: If they cannot be used; the message names the field.
    """
    if not isinstance(report, Mapping | None):
        raise InputError(f"declare(): report: must be like {_REPORT}, given {report!r:.60}")
    stated = {**(report or {}), "probability": probability, "threshold": threshold}
    try:
        found = checked_declaration(stated) or {}
    except InputError as err:
        if not report:
            raise
        raise InputError(f"{err}; a report is like {_REPORT}") from err
    spoken = {name: found.pop(name) for name in ("probability", "threshold")}
    return {**spoken, "report": found or None}


class Feedback(_Message):
    """The question whether the episode that has just ended was novel."""

    type: Literal["feedback"]
    trial: _Place


Message = Hello | Reset | Step | Declare | Feedback
_KIND: Final = Discriminator(
    "type", custom_error_type="type",
    custom_error_message="unknown type; valid: hello, reset, step, declare, feedback",
)  # fmt: skip
_ANY: Final[TypeAdapter[Message]] = TypeAdapter(Annotated[Message, _KIND])


class RefusedError(InputError):
    """A message that is not taken, as its sender is told.

    Args:
        code: One word for programs; docs/competitions_protocol.md lists them.
        text: What was wrong and what would do.
        ends: Whether the connection is closed.
        number: The number of the message, if it had one.
        trials: Those of its trials of which it is said, where it is not said of all.
    """

    def __init__(
        self,
        code: str,
        text: str,
        *,
        ends: bool = False,
        number: object = None,
        trials: Sequence[int] = (),
    ) -> None:
        super().__init__(text)
        self.trials = trials
        self.code = code
        self.ends = ends
        self.number = number

    @property
    def frame(self) -> str | bytes:
        """The message that says so."""
        known = self.number if type(self.number) is int else None
        text = " ".join(str(self).split())[:300]
        more = {"trials": list(self.trials)} if self.trials else {}
        return encode({"type": "error", "id": known, "code": self.code, "message": text, **more})


def message_of(frame: str | bytes) -> Message:
    """The message in a frame.

    Raises:
        RefusedError: If it holds none.
    """
    number: object = None
    try:
        plain = decode(frame)
        number = plain.get("id")
        return _ANY.validate_python(plain)
    except ValidationError as err:
        first = err.errors(include_url=False, include_context=False)[0]
        text = ": ".join(map(str, (*first["loc"], first["msg"])))
    except InputError as err:
        text = str(err)
    raise RefusedError("bad_message", text, ends=True, number=number)
