"""What a trial with an onset is: normal episodes, then novel ones, played by one agent in a row."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, Strict, field_validator, model_validator

from robo_eval.core.errors import InputError, PlanError
from robo_eval.core.plain import plain
from robo_eval.core.wording import counted
from robo_eval.core.yaml_form import Count, Section, validated

METHODS: Final = ("begin_trial", "begin_episode", "declare")
"""What a policy may have for trials; see docs/trials.md."""
_MOST_LEVELS: Final = 1_000
"""Levels that a declaration may name."""
Share = Annotated[float, Strict(), Field(ge=0.0, le=1.0)]
"""A number from 0 to 1; `yes` and texts are none."""
Word = Annotated[str, Field(max_length=100)]


class TrialsPlan(Section):
    """How episodes make up trials, in which novelty begins after some of them."""

    count: Annotated[Count, Field(ge=1, le=100_000)]
    """Trials with novelty in each condition."""
    episodes: Annotated[Count, Field(ge=1, le=100_000)]
    """Episodes of a trial."""
    onset: tuple[Count, Count]
    """Normal episodes before the first novel one, least and most, from which each trial draws its
    own; a plain number stands for both."""
    onset_tick: Annotated[Count, Field(ge=1)] | None = None
    """Control tick of the first novel episode at which the novelty begins; none: at its start."""
    share: Share = 1.0
    """Share of novel episodes among those after the first novel one."""
    controls: Annotated[Count, Field(ge=0, le=100_000)] = 0
    """Trials without novelty of each task."""
    condition: Literal["system", "given"] = "system"
    """Whether the agent has to find the onset, or is told it."""
    window: Annotated[Count, Field(ge=1)] | None = None
    """Last episodes of a trial by which the end of its adaptation is judged; none: a fifth of it,
    5 at least, as far as the novel phase reaches."""
    informed: str | None = None
    """The policy that is told each episode's novelty: what could be won."""
    frozen: str | None = None
    """The policy that does not adapt: the baseline of M3 to M6."""

    @field_validator("onset", mode="before")
    @classmethod
    def _short_form(cls, onset: object) -> object:
        if isinstance(onset, list | tuple) and len(onset) == 2:
            return onset
        if type(onset) is not int:
            raise ValueError(f"must be a whole number, or [least, most], given {onset!r:.80}")
        return (onset, onset)

    @model_validator(mode="after")
    def _check(self) -> Self:
        least, most = self.onset
        if not 0 <= least <= most:
            raise ValueError(f"onset: must be [least, most], each 0 or more, given {least}, {most}")
        if most >= self.episodes:
            raise ValueError(
                f"onset: {most} normal episodes leave no novel one in a trial of {self.episodes};"
                f" give {self.episodes - 1} at most, or longer trials"
            )
        left = self.episodes - most
        if self.window is not None and self.window > left:
            raise ValueError(
                f"window: {self.window} episodes are more than the {left} from the latest onset to"
                f" the end of a trial; give {left} at most, or longer trials"
            )
        if self.informed is not None and self.informed == self.frozen:
            raise ValueError("frozen: must be another policy than `informed`")
        return self

    @property
    def in_words(self) -> str:
        """How many trials of how many episodes, for titles."""
        found = f"{counted(self.count, 'trial')} of {counted(self.episodes, 'episode')}"
        return f"{found} and {counted(self.controls, 'control')}" if self.controls else found

    def check_tick(self, env: str, *limits: int | None) -> None:
        """Refuse an onset that no episode reaches.

        Args:
            env: Id of the environment, for messages.
            *limits: Its time limits in ticks; None where there is none.

        Raises:
            ValueError: If the novelty would begin at one of them or later.
        """
        most = min((limit for limit in limits if limit is not None), default=None)
        if most is not None and (self.onset_tick or 0) >= most:
            raise ValueError(
                f"trials.onset_tick: must be below {most}, the time limit of {env}, given"
                f" {self.onset_tick}"
            )

    def drawn(self, cell: str, number: int, *, seed: int) -> tuple[InTrial, ...]:
        """The episodes of a trial, in order; the same for the same arguments.

        Args:
            cell: Key of the condition it is a trial of.
            number: Number of the trial; those from `count` on are controls.
            seed: What all draws depend on.
        """
        # Stable across Python versions, and needs no numpy where plans are read.
        rng = random.Random(f"trial:{seed}:{cell}:{number}")  # noqa: S311 - not cryptography
        least, most = self.onset
        onset = least + int(rng.random() * (most - least + 1)) if number < self.count else None
        novel = [False] * self.episodes
        if onset is not None:
            later = self.episodes - onset - 1
            n_novel = round(self.share * later)
            tail = [True] * n_novel + [False] * (later - n_novel)
            rng.shuffle(tail)
            novel[onset:] = [True, *tail]
        return tuple(
            InTrial(
                cell=cell,
                number=number,
                episode=place,
                episodes=self.episodes,
                onset=onset,
                is_novel=is_novel,
                condition=self.condition,
                onset_tick=self.onset_tick if place == onset else None,
            )
            for place, is_novel in enumerate(novel)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InTrial:
    """Where an episode stands in its trial.

    Attributes:
        cell: Key of the condition the trial is of.
        number: Of the trial, within its condition.
        episode: Its place, from 0.
        episodes: Of the trial.
        onset: Place of the first novel episode; None in a control trial.
        is_novel: Whether it is played with novelty.
        condition: Whether the agent has to find the onset, or is told it.
        onset_tick: Tick at which the novelty begins; None if at the start.
    """

    cell: str
    number: int
    episode: int
    episodes: int
    onset: int | None
    is_novel: bool
    condition: Literal["system", "given"]
    onset_tick: int | None = None

    @property
    def indicator(self) -> bool | None:
        """What an agent is told of the onset: whether it has come; None where it has to find it."""
        if self.condition == "system":
            return None
        return self.onset is not None and self.episode >= self.onset

    def as_dict(self, declaration: Mapping[str, Any] | None) -> dict[str, Any]:
        """What the row of the episode says of it, and what the agent declared after it."""
        return {
            "cell": self.cell,
            "number": self.number,
            "episode": self.episode,
            "episodes": self.episodes,
            "onset": self.onset,
            "is_novel": self.is_novel,
            "condition": self.condition,
            **({} if declaration is None else {"declared": dict(declaration)}),
        }


class LevelGuess(Section):
    """How probable an agent thinks a level is."""

    level_number: Annotated[Count, Field(ge=0, lt=2**31)]
    probability: Share


class Declaration(Section):
    """What an agent says after an episode."""

    probability: Share
    """That the world has changed since the trial began."""
    threshold: Share = 0.5
    """From which probability on the agent declares it."""
    levels: tuple[LevelGuess, ...] = ()
    """Which level it is."""
    entity: Word | None = None
    """What has changed, such as `cart`."""
    attribute: Word | None = None
    """Which of its properties, such as `mass`."""
    change: Word | None = None
    """How, such as `increase`."""

    @field_validator("levels")
    @classmethod
    def _add_up(cls, levels: tuple[LevelGuess, ...]) -> tuple[LevelGuess, ...]:
        if len(levels) > _MOST_LEVELS:
            raise ValueError(f"must be {_MOST_LEVELS:,} at most, given {len(levels):,}")
        numbers = [one.level_number for one in levels]
        if len(set(numbers)) < len(numbers):
            raise ValueError("must be of different levels")
        if sum(one.probability for one in levels) > 1.0 + 1e-6:
            raise ValueError("must have probabilities that add up to 1 at most")
        return levels


def checked_declaration(answer: object) -> dict[str, Any] | None:
    """What an agent answered when it was asked to declare, as rows hold it.

    Args:
        answer: A mapping with the keys of `Declaration`, a probability alone, or None.

    Raises:
        InputError: If it is none of these; the message names the field.

    Example:
        >>> checked_declaration(0.8)
        {'probability': 0.8, 'threshold': 0.5}
    """
    if answer is None:
        return None
    try:
        given = json.loads(json.dumps(answer, default=_towards_json))
        stated = validated(
            given if isinstance(given, dict) else {"probability": given}, Declaration, "declare()"
        )
    except PlanError as err:  # no plan is at fault
        raise InputError(str(err)) from err
    except (TypeError, ValueError, RecursionError) as err:
        raise InputError(f"declare(): {err}") from err
    return {
        name: value
        for name, value in stated.model_dump(mode="json").items()
        if name in ("probability", "threshold") or value not in (None, [])
    }


def _towards_json(value: object) -> Any:
    """What JSON knows better; `plain` alone would hide which number is not finite."""
    if isinstance(value, Mapping):
        return dict(value)
    return value.tolist() if hasattr(value, "tolist") else plain(value)


def begin_in_trial(policy: Any, place: InTrial | None, shown: Mapping[str, Any]) -> None:
    """Tell a policy that an episode of a trial begins, and of the first that a new trial does.

    Args:
        policy: Any policy; what it has no method for, it is not told.
        place: Which episode; None if it stands alone, of which nothing is told.
        shown: What `begin_episode` gets beside the indicator of the onset.
    """
    if place is None:
        return
    if place.episode == 0:
        call_if_there(policy, "begin_trial")
    call_if_there(policy, "begin_episode", {"novelty_indicator": place.indicator, **shown})


def asked_to_declare(policy: Any, place: InTrial | None) -> dict[str, Any] | None:
    """What a policy declares after an episode; None if that stands alone, or it does not declare.

    Raises:
        InputError: If its answer cannot be used.
    """
    return None if place is None else checked_declaration(call_if_there(policy, "declare"))


def call_if_there(policy: Any, method: str, *given: object) -> Any:
    """What a method of a policy answers; None if it has none of this name.

    What it raises carries the name as a note.
    """
    found = getattr(policy, method, None)
    if not callable(found):
        return None
    try:
        return found(*given)
    except BaseException as err:
        err.add_note(method)
        raise
