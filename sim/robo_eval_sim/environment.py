"""What every simulated task has in common: levels and novelty, hidden or shown, and digests."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

import gymnasium
import numpy as np
from gymnasium.core import ActType, ObsType
from gymnasium.utils import EzPickle

from robo_eval.core.canonical import digest
from robo_eval.core.errors import InputError
from robo_eval.core.installed import PYBULLETS, versions_of
from robo_eval.core.kinds import Difficulty, Profile
from robo_eval.core.names import unknown_name
from robo_eval.core.sources import sources
from robo_eval.core.task import TaskSpec
from robo_eval_sim.behaviour import behaviour_of
from robo_eval_sim.novelty import Level, Novelty, levels, load_level, mixed
from robo_eval_sim.spare import give_back


class TaskEnv(gymnasium.Env[ObsType, ActType], EzPickle):
    """What `task` describes; a subclass adds scene, observation, action and end.

    Args:
        level: Novelty level, 0 is none; `robo-eval levels` lists them.
        difficulty: How strong the novelty is.
        profile: Whose description of the level is followed: the paper's or the reference code's.
        novelty: Instead of a level, magnitude by axis, such as `{"cart_mass": 20.0}`. Levels name
            the axes; the magnitude is that of the first parameter that `robo-eval levels` shows.
        onset: Ticks that pass before the novelty begins; none if it is there from the start. The
            least and the greatest, such as `[20, 60]`, let each episode draw its own.
        constants: What calibration found, by name, such as `{"cart_mass_kg": 1.3}`; the
            specification lists what there is. It is no novelty, and what a level or `novelty`
            changes wins over it.
        reveal: Whether `info["novelty"]` says what was drawn. Otherwise `info` never does.
        render_mode: One of `metadata["render_modes"]`, or none.
        **own: Keywords of the subclass, for pickling.

    Raises:
        UnknownNameError: If a name is not known; the message names the nearest.
        InputError: If a magnitude, a constant or the onset cannot be, or what is new cannot begin
            later.
    """

    task: ClassVar[TaskSpec]
    probes: ClassVar[tuple[int, ...]] = (0, 1, 2)
    """Seeds of the episodes by which `behaviour` is told."""
    level_start: ClassVar[Mapping[str, Any]] = {}
    """An example of what `Level.sample` takes of a start."""

    def __init__(
        self,
        *,
        level: int = 0,
        difficulty: str = Difficulty.EASY,
        profile: str = Profile.PAPER,
        novelty: Mapping[str, float] | None = None,
        onset: int | Sequence[int] | None = None,
        constants: Mapping[str, float] | None = None,
        reveal: bool = False,
        render_mode: str | None = None,
        **own: Any,
    ) -> None:
        self._constants: dict[str, Any] = self.task.checked(constants)
        if constants is not None:  # a task may have none
            own["constants"] = constants
        EzPickle.__init__(
            self,
            level=level,
            difficulty=difficulty,
            profile=profile,
            novelty=novelty,
            onset=onset,
            reveal=reveal,
            render_mode=render_mode,
            **own,
        )
        self._level = load_level(level, self.task.env)
        self._difficulty = _known("difficulty", difficulty, Difficulty)
        self._profile = _known("profile", profile, Profile)
        self._onset = _checked_onset(onset, self.task.max_ticks)
        self._is_level_0 = novelty is None and self._level.number == 0
        self._asked: tuple[tuple[str, float], ...] | None = None
        if novelty is not None:
            if self._level.number or self._profile is not Profile.PAPER:
                raise InputError(
                    "novelty: stands for a level, and for one of the paper's; give no level and no"
                    " profile beside it"
                )
            every = levels(self.task.env).values()
            self._level = mixed(every, novelty, self._level, self.level_start)
            self._asked = tuple(novelty.items())
        for part in getattr(self._level, "parts", (self._level,)):
            if onset is not None and part.no_onset:
                raise InputError(
                    f"onset: {part.name} cannot begin while an episode goes on, because"
                    f" {part.no_onset}; leave `onset` out"
                )
        modes = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in modes:
            raise unknown_name("render_mode", render_mode, modes)
        self.render_mode = render_mode
        self._reveal = reveal
        self._no_novelty = self._novelty({})
        self._drawn: Novelty | None = None
        self._world: Any = None
        """Where episodes are played; a subclass that has one says of what kind it is."""
        self._origin: Any = None
        """Where the episode began; None before the first and after the last."""
        self._tick = 0
        self._is_running = False
        self._rows: list[Any] | None = None
        """What happened, for `trajectory`; None where nothing is kept."""
        self.records_motion = False
        """Whether episodes that begin from now on are kept for `trajectory`."""

    def close(self) -> None:
        """Give the engine back; closing twice does nothing."""
        self._is_running = False
        self._origin = None
        if self._world is not None:
            give_back(self._world)
            self._world = None

    @property
    def digest(self) -> str:
        """SHA-256 of the source text that makes this environment and its level what they are.

        It covers neither the keywords nor the version of the engine.
        """
        parts = getattr(self._level, "parts", (self._level,))
        return _digest(type(self).__module__, tuple(type(part).__module__ for part in parts))

    @property
    def behaviour(self) -> str:
        """SHA-256 of how the level behaves at this difficulty and profile, in short episodes.

        Unlike `digest` it stays the same when code is moved or written otherwise. It depends on no
        constant, and on no keyword of the task's own: what was calibrated stays the same level.
        """
        level = self._level if self._asked is None else load_level(0, self.task.env)
        kind: Any = type(self)
        return _behaviour(kind, level, self._difficulty, self._profile, self._asked, self._onset)

    @property
    def engine(self) -> str:
        """Name and version of the physics engine."""
        return _engine()

    @property
    def novelty(self) -> dict[str, Any] | None:
        """What the level drew for this episode, and as `truth` what is new in words.

        None before the first reset.
        """
        if self._drawn is None:
            return None
        words = self._level.truth(self._drawn)
        return {**self._drawn.as_dict(), **({"truth": words} if words else {})}

    def _not_running(self) -> InputError:
        if self._origin is None:
            return InputError("step: the episode has not begun; call reset() first")
        return InputError(f"step: the episode is over after tick {self._tick}; call reset() first")

    def _recorded(self) -> list[Any]:
        if self._rows is None:
            raise InputError(
                "trajectory: nothing was recorded; set env.unwrapped.records_motion = True before"
                " reset()"
            )
        return self._rows

    def _info(self) -> dict[str, Any]:
        """What `reset` and `step` say beside the observation."""
        return {"novelty": self.novelty} if self._reveal else {}

    def _novelty(
        self, parameters: Mapping[str, Any], rng: np.random.Generator | None = None
    ) -> Novelty:
        """What was drawn for an episode; `rng` draws the onset, after the parameters."""
        onset = None if self._is_level_0 else self._onset
        onsets = None
        if isinstance(onset, tuple):
            onsets = onset if rng is None else None
            onset = None if rng is None else int(rng.integers(*onset, endpoint=True))
        return Novelty(
            name=self._level.name,
            level=self._level.number,
            difficulty=self._difficulty,
            profile=self._profile,
            parameters=parameters,
            onset=onset,
            onsets=onsets,
        )

    @staticmethod
    def _state_in(options: Mapping[str, Any] | None) -> Any:
        """The state that the options of `reset` ask for; none if they ask for none."""
        if options is None:
            return None
        if not isinstance(options, Mapping):
            raise InputError(f"options: a mapping is needed, given {options!r:.80}")
        for name in options:
            if name != "state":
                raise unknown_name("option", name, ["state"])
        return options.get("state")


_Word = TypeVar("_Word", Difficulty, Profile)
_DIGESTED: Final = ("robo_eval_sim",)
"""Packages and modules whose source counts as part of an environment."""


def _known(kind: str, given: str, valid: type[_Word]) -> _Word:
    try:
        return valid(given)
    except ValueError:
        raise unknown_name(kind, given, list(valid)) from None


def _checked_onset(onset: Any, ticks: int) -> int | tuple[int, int] | None:
    if onset is None:
        return None
    given = onset if isinstance(onset, list | tuple) else [onset]
    fits = all(
        isinstance(one, int | np.integer) and not isinstance(one, bool) and 0 < one < ticks
        for one in given
    )
    if fits and given is not onset:
        return int(onset)
    if fits and len(given) == 2 and given[0] < given[1]:
        return int(given[0]), int(given[1])
    raise InputError(
        f"onset: a whole number of ticks from 1 to {ticks - 1} is needed, or two, the smaller"
        f" first; given {onset!r:.80}"
    )


@functools.cache
def _behaviour(
    kind: type[TaskEnv[Any, Any]],
    level: Level,
    difficulty: Difficulty,
    profile: Profile,
    asked: tuple[tuple[str, float], ...] | None,
    onset: int | tuple[int, int] | None,
) -> str:
    env = kind(
        level=level.number,
        difficulty=difficulty,
        profile=profile,
        novelty=None if asked is None else dict(asked),
        onset=onset,
    )
    try:
        return behaviour_of(env, kind.probes, kind.task.max_ticks)
    finally:
        env.close()


@functools.cache
def _engine() -> str:
    return ", ".join(map(" ".join, versions_of(PYBULLETS).items())) or "pybullet"


@functools.cache
def _digest(module: str, level_modules: tuple[str, ...]) -> str:
    # Levels are found by looking through folders, so that no import leads to them.
    parts = {name: text for one in level_modules for name, text in sources(one, _DIGESTED).items()}
    return digest({"environment": sources(module, _DIGESTED), "level": parts})
