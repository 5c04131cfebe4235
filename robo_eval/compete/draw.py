"""What every attempt of a competition meets: drawn from a secret, promised before, shown after.

A number is drawn as the HMAC-SHA256 of a text that says what for, with the 128-bit master secret
as its key: `<attempt>/<trial>/<episode>/seed`, `<attempt>/<trial>/onset` and the like, followed,
if a public value is mixed in, by a line break and that value. No team's name enters, so all teams
meet the same.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from robo_eval.compete.competition import Competition
from robo_eval.core.canonical import canonical_json
from robo_eval.core.kinds import Arm, Side
from robo_eval.core.plain import UNSAID, plain
from robo_eval.core.plan import PlannedCondition
from robo_eval.core.schedule import PlannedEpisode, condition_keywords
from robo_eval.core.trials import InTrial

_SEEDS: Final = 2**31
"""Seeds are below it."""
_Draws: TypeAlias = Callable[..., int]


@dataclass(frozen=True, slots=True)
class Secret:
    """What nobody but the server knows before the competition has ended.

    Attributes:
        master: 16 bytes from which everything is drawn.
        salt: 32 bytes that keep the commitment from being guessed.
    """

    master: bytes
    salt: bytes

    @classmethod
    def new(cls) -> Secret:
        """One that nobody can guess."""
        return cls(secrets.token_bytes(16), secrets.token_bytes(32))


class EpisodeDraw(NamedTuple):
    """One episode of a trial.

    Attributes:
        seed: Seed of the environment.
        is_novel: Whether it has the trial's novelty.
    """

    seed: int
    is_novel: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialDraw:
    """One trial, the same for every team.

    Attributes:
        number: Its number within an attempt, from 0, in an order that was drawn as well: it tells
            nothing of what the trial holds.
        task: Index of the task in the competition.
        env: Gymnasium id.
        keywords: Keywords of `gymnasium.make` for novel episodes; of a single one see
            `keywords_of`.
        nominal_keywords: The same for normal ones.
        onset: Index of the first novel episode, from 0; None for a trial without novelty.
        onset_tick: Tick of the first novel episode at which its novelty begins; None is from the
            start.
        episodes: Its episodes in order.
        cell: Short text that names task, level and difficulty, or novelty.
        condition: `system` or `given`.
        where: What was drawn for novel episodes, and `nominal` for normal ones.
        nominal: See there.
    """

    number: int
    task: int
    env: str
    keywords: Mapping[str, Any]
    nominal_keywords: Mapping[str, Any]
    onset: int | None
    onset_tick: int | None
    episodes: tuple[EpisodeDraw, ...]
    cell: str
    condition: Literal["system", "given"]
    where: PlannedCondition = field(metadata=UNSAID)
    nominal: PlannedCondition = field(metadata=UNSAID)

    def keywords_of(self, episode: int) -> dict[str, Any]:
        """Keywords of `gymnasium.make` for an episode, by its index."""
        if not self.episodes[episode].is_novel:
            return dict(self.nominal_keywords)
        if episode == self.onset and self.onset_tick is not None:
            return {**self.keywords, "onset": self.onset_tick}
        return dict(self.keywords)

    def place(self, episode: int) -> InTrial:
        """Where an episode stands in its trial, as plans have it."""
        return InTrial(
            cell=self.cell,
            number=self.number,
            episode=episode,
            episodes=len(self.episodes),
            onset=self.onset,
            is_novel=self.episodes[episode].is_novel,
            condition=self.condition,
            onset_tick=self.onset_tick if episode == self.onset else None,
        )

    def planned(self, team: str, attempt: int, episode: int, run: int = 1) -> PlannedEpisode:
        """An episode as `log.planned_row.row_for` takes it.

        Args:
            team: Whose it is; its name is the policy's.
            attempt: Which of the team's attempts.
            episode: Index within the trial.
            run: 1, or more after the trial was given back.
        """
        drawn = self.episodes[episode]
        return PlannedEpisode(
            base_id=f"{team}-a{attempt}-t{self.number:04d}-e{episode:04d}",
            attempt=run,
            arm=Arm.MAIN,
            control_id=None,
            condition=self.where if drawn.is_novel else self.nominal,
            policy=0,
            index=episode,
            seed=drawn.seed,
            side=Side.SIM,
            trial=self.place(episode),
        )


def _draws(secret: Secret, beacon: str | None) -> _Draws:
    """What draws numbers below 2**256, by what they are for."""
    tail = "" if beacon is None else f"\n{beacon}"

    def number(*what: object) -> int:
        text = "/".join(map(str, what)) + tail
        return int.from_bytes(hmac.digest(secret.master, text.encode(), "sha256"), "big")

    return number


def draw(
    competition: Competition, secret: Secret, beacon: str | None = None, attempt: int = 1
) -> tuple[TrialDraw, ...]:
    """The trials of one attempt, in the order they are numbered.

    Args:
        competition: What is asked for.
        secret: What they are drawn from.
        beacon: The public value that is mixed in; None if the competition names none.
        attempt: The first attempt of a team, its second, ...: the same for all teams.
    """
    draws, cells = _draws(secret, beacon), cells_of(competition)
    order = sorted(range(len(cells)), key=lambda place: draws(attempt, "order", place))
    return tuple(
        _trial(competition, draws, attempt, number, *cells[place])
        for number, place in enumerate(order)
    )


def cells_of(competition: Competition) -> list[tuple[PlannedCondition, PlannedCondition | None]]:
    """Of each trial of an attempt the usual world and the novel one, in the order of the file."""
    cells: list[tuple[PlannedCondition, PlannedCondition | None]] = []
    plan, novelties = competition.plan(), list(competition.cells())
    for index in range(len(competition.tasks)):
        nominal = plan.nominal(index)
        cells += [(nominal, None)] * competition.trials.controls
        for cell in novelties:
            if cell.task == index:
                novel = None if cell == nominal else cell
                cells += [(nominal, novel)] * competition.trials.count
    return cells


def _trial(
    competition: Competition,
    draws: _Draws,
    attempt: int,
    number: int,
    nominal: PlannedCondition,
    novel: PlannedCondition | None,
) -> TrialDraw:
    trials, task = competition.trials, competition.tasks[nominal.task]
    low, high = trials.onset
    onset = None
    if novel is not None:
        onset = low + draws(attempt, number, "onset") % (high - low + 1)
    limit = int(trials.share * 2**53)

    def is_novel(index: int) -> bool:
        if onset is None or index < onset:
            return False
        return index == onset or draws(attempt, number, index, "novel") % 2**53 < limit

    return TrialDraw(
        number=number,
        task=nominal.task,
        env=task.env,
        keywords=condition_keywords(task, novel or nominal),
        nominal_keywords=condition_keywords(task, nominal),
        onset=onset,
        onset_tick=trials.onset_tick if novel is not None else None,
        episodes=tuple(
            EpisodeDraw(draws(attempt, number, index, "seed") % _SEEDS, is_novel(index))
            for index in range(trials.episodes)
        ),
        cell=(novel or nominal).key,
        condition=trials.condition,
        where=novel or nominal,
        nominal=nominal,
    )


def content(
    competition: Competition, secret: Secret, code_version: str, beacon: str | None = None
) -> dict[str, Any]:
    """What is promised: shown by `reveal`, and hashed by `commitment`.

    Where a public value is to be mixed in, the draws are not known before it is: then master and
    parameters are promised, from which anybody draws them once the value is out.

    Args:
        competition: Its parameters.
        secret: What is drawn from.
        code_version: Software that draws and plays.
        beacon: Left out of what is promised; gives the draws to what is revealed.
    """
    promised: dict[str, Any] = {
        "form": 1,
        "competition": competition.parameters,
        "code_version": code_version,
        "master": secret.master.hex(),
    }
    if competition.beacon is None or beacon is not None:
        promised["draws"] = [
            plain(draw(competition, secret, beacon, attempt))
            for attempt in range(1, competition.attempts + 1)
        ]
    return promised


def commitment(competition: Competition, secret: Secret, code_version: str) -> str:
    """What is published before the start, as 64 hexadecimal digits.

    It is the SHA-256 over the 32 bytes of the salt and the canonical JSON of `content`.
    """
    promised = canonical_json(content(competition, secret, code_version))
    return hashlib.sha256(secret.salt + promised).hexdigest()
