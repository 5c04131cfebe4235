"""How teams did: scores with intervals, and which of them cannot be told apart."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from itertools import groupby
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.compete.draw import cells_of
from robo_eval.core.canonical import digest, text_digest
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import EndReason, FaultBy
from robo_eval.core.plain import UNSAID, plain
from robo_eval.core.wording import counted
from robo_eval.log.provenance import software
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.registered.trials import GROUP
from robo_eval.metrics.registry import registered
from robo_eval.metrics.scoring import SCORE_VERSION, score_row
from robo_eval.metrics.tasks import VARIANT
from robo_eval.metrics.trials import Trials, trials_of
from robo_eval.stats.bounded import bounded_mean_interval
from robo_eval.stats.clustered_pairs import clustered_p_values
from robo_eval.stats.multiple import holm, letters, rank_ranges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from robo_eval.compete.draw import TrialDraw
    from robo_eval.compete.ledger import Attempt, Ledger, Team
    from robo_eval.core.episode import Episode
    from robo_eval.core.plan import TaskPlan

BOARD_VERSION: Final = 1
"""Version of the form of `Board.as_dict`, and of what is kept of an attempt."""
MOST_LETTERS: Final = 60
"""Teams that get letters; of more, sets that were not told apart are too many to name."""
_Values = Sequence[Sequence[float | None]]
"""One of each episode by trial; None where it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelScore:
    """A team at one level of the map.

    Attributes:
        cell: Task, level and difficulty, or novelty, in short.
        score: Mean quality of its novel episodes, of a cell without novelty all; trials are
            independent.
        success: Share of strict successes among the same episodes.
    """

    cell: str
    score: Estimate
    success: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A team on the leaderboard.

    Attributes:
        team: Name.
        state: `ended`, `unfinished`, `withdrawn` or `not_begun`.
        attempt: Which of its attempts this is; None if none began.
        entered_ns: When the attempt ended, ns since 1970, UTC; None while it goes on.
        is_late: Whether it ended after the closing date.
        played: Episodes played so far; none that were forfeited.
        expected: Episodes of a whole attempt.
        forfeited: Episodes that ended by a fault of the team.
        score: Mean quality over all episodes; trials are independent.
        success: Share of strict successes.
        measures: M1 to M6 and what stands beside them, by name.
        levels: The map of levels.
        place: Its place among the teams of the same attempt; None without a rank.
        rank_range: Best and worst rank that the decisions allow; None without a rank.
        letters: Teams share a letter where they were not told apart; None without a rank, or
            where there are too many teams.
        quality: Quality of each episode by trial.
    """

    team: str
    state: str
    attempt: int | None = None
    entered_ns: int | None = None
    is_late: bool = False
    played: int = 0
    expected: int
    forfeited: int = 0
    score: Estimate
    success: Estimate
    measures: Mapping[str, Estimate] = field(default_factory=dict)
    levels: tuple[LevelScore, ...] = ()
    place: int | None = None
    rank_range: tuple[int, int] | None = None
    letters: str | None = None
    quality: tuple[tuple[float | None, ...], ...] = field(default=(), metadata=UNSAID)

    SAID: ClassVar = ("ranks", "marks")

    @property
    def ranks(self) -> str:
        """The ranks that are left open, for people."""
        if self.rank_range is None:
            return "-"
        best, worst = self.rank_range
        return f"{best}" if best == worst else f"{best} to {worst}"

    @property
    def marks(self) -> tuple[str, ...]:
        """What to mind of it, for people."""
        found = [] if self.state == "ended" else [self.state.replace("_", " ")]
        if self.is_late:
            found.append("late")
        if self.forfeited:
            found.append(f"{counted(self.forfeited, 'episode')} forfeited")
        return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A leaderboard.

    Attributes:
        name: Title of the competition.
        entries: The teams, the best first, and those without a rank last.
        alpha: Largest adjusted p value that tells two teams apart.
        n_compared: Pairs of teams that were compared.
        frozen: The team that is the baseline of M3 to M6; None if there is none.
        notes: What to know of the board.
    """

    name: str
    entries: tuple[Entry, ...]
    alpha: float
    n_compared: int
    frozen: str | None
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The board as JSON would have it."""
        told: dict[str, Any] = plain(self)
        return {"version": BOARD_VERSION, **told}


def board(ledger: Ledger, config: MetricConfig | None = None) -> Board:
    """The leaderboard as it is now; what was computed of an ended attempt is kept in the ledger.

    A team's entry is the last of its attempts that was played to its end; without one, that which
    closing cut off, or that which goes on.

    Args:
        ledger: Of the competition.
        config: Settings of the intervals and of the comparison.
    """
    kept = ledger.kept_scores()
    entries, notes = [], []
    new: dict[int, tuple[str, str]] = {}
    n = len(cells_of(ledger.competition)) * ledger.competition.trials.episodes
    for team, attempt, key, text in numbers(ledger, kept):
        if attempt is None:
            entries.append(_blank(team, n))
            continue
        entries.append(_entry(ledger, team, attempt, json.loads(text), n))
        before = kept.get(attempt.number)
        if is_damaged(before, key, text):
            notes.append(f"what was kept of {team.name} was damaged, and was computed again")
        if attempt.ended_ns is not None and before != (key, text):
            new[attempt.number] = (key, text)
    ledger.keep_scores(new)
    return _ranked(ledger, entries, config or MetricConfig(), notes)


def numbers(
    ledger: Ledger, kept: Mapping[int, tuple[str, str]]
) -> Iterator[tuple[Team, Attempt | None, str, str]]:
    """Of each team its attempt, and what that depends on and what it is, as a ledger keeps it."""
    teams, attempts = ledger.teams(), ledger.attempts()
    chosen = {team.number: _chosen(attempts, team) for team in teams}
    rules = ledger.competition.trials
    roles = [name for name in (rules.frozen, rules.informed) if name is not None]
    bases = {team.name: chosen[team.number] for team in teams if team.name in roles}
    quality = cache(lambda one: _read(ledger, one)["quality"])
    for team in teams:
        attempt = chosen[team.number]
        if attempt is None:
            yield team, None, "", ""
            continue
        beside = {
            name: one
            for name, one in bases.items()
            if one is not None and one.attempt == attempt.attempt
        }
        key = _key(attempt, beside)
        sealed, text = kept.get(attempt.number, ("", ""))
        if sealed != _sealed(key, text):
            others = {name: quality(one) for name, one in beside.items()}
            text = json.dumps(_content(ledger, attempt, others))
        yield team, attempt, _sealed(key, text), text


def _sealed(key: str, text: str) -> str:
    """What numbers depend on, and a digest of themselves: so damage is seen."""
    return f"{key} {text_digest(text)}"


def is_damaged(before: tuple[str, str] | None, key: str, text: str) -> bool:
    """Whether the numbers kept before rest on the same, and still are others."""
    return before is not None and before[0].split()[:1] == key.split()[:1] and before != (key, text)


def _chosen(attempts: Sequence[Attempt], team: Team) -> Attempt | None:
    """The last attempt that was played to its end; else one that was cut off, or goes on."""
    own = [one for one in attempts if one.team == team.number]
    ended = [one for one in own if one.ended_ns is not None]
    whole = [one for one in ended if not one.is_cut]
    return next((kind[-1] for kind in (whole, ended, own) if kind), None)


def _blank(team: Team, n: int) -> Entry:
    none = Estimate.missing(reason="nothing was played", unit="ratio")
    state = "not_begun" if team.revoked_ns is None else "withdrawn"
    return Entry(team=team.name, state=state, expected=n, score=none, success=none)


def _key(attempt: Attempt, beside: Mapping[str, Attempt]) -> str:
    """What the numbers of an attempt depend on."""
    others = {name: one.sha256 for name, one in beside.items()}
    return digest([BOARD_VERSION, SCORE_VERSION, software(), attempt.sha256, others])


def _entry(ledger: Ledger, team: Team, attempt: Attempt, content: dict[str, Any], n: int) -> Entry:
    ended = attempt.ended_ns
    state = "unfinished" if ended is None else "ended"
    return Entry(
        team=team.name,
        state=state if team.revoked_ns is None else "withdrawn",
        attempt=attempt.attempt,
        entered_ns=ended,
        is_late=ended is not None and ended > ledger.competition.closes_ns,
        score=Estimate(**content["score"]),
        success=Estimate(**content["success"]),
        measures={name: Estimate(**one) for name, one in content["measures"].items()},
        levels=tuple(
            LevelScore(
                cell=cell, score=Estimate(**one["score"]), success=Estimate(**one["success"])
            )
            for cell, one in content["levels"].items()
        ),
        quality=tuple(tuple(own) for own in content["quality"]),
        expected=n,
        **{name: content[name] for name in ("played", "forfeited")},
    )


# One attempt -------------------------------------------------------------------------------------


def quality_of_row(row: Episode, task: TaskPlan) -> float | None:
    """Quality of an episode by the rules at hand: a fault of the team counts 0, others nothing."""
    if row.end_reason is EndReason.FAULT and row.fault_by is FaultBy.POLICY:
        return 0.0
    return score_row(
        episode_return=row.episode_return,
        ticks=row.ticks,
        end_reason=row.end_reason,
        interventions=row.interventions,
        task=task,
    ).quality


def _content(ledger: Ledger, attempt: Attempt, beside: Mapping[str, _Values]) -> dict[str, Any]:
    """What is said of an attempt: plain data, to be kept.

    Args:
        ledger: Of the competition.
        attempt: Which one.
        beside: Quality of each episode by trial of the frozen and the informed team.
    """
    drawn, found = ledger.trials(attempt.attempt), _read(ledger, attempt)
    quality, success, said = (found.pop(name) for name in ("quality", "success", "said"))
    content: dict[str, Any] = plain(
        {
            "score": _over_trials(quality, drawn, lambda _trial, _index: True),
            "success": _over_trials(success, drawn, lambda _trial, _index: True),
            "levels": _levels(quality, success, drawn),
            "measures": _measures(ledger, drawn, quality, said, beside),
            "quality": quality,
            **found,
        }
    )
    return content


def _read(ledger: Ledger, attempt: Attempt) -> dict[str, Any]:
    """Of each episode by trial quality, success and what was said; how many there are."""
    drawn, runs = ledger.trials(attempt.attempt), ledger.ended_runs(attempt.number)
    n = ledger.competition.trials.episodes
    quality: list[list[float | None]] = [[None] * n for _ in drawn]
    success: list[list[float | None]] = [[None] * n for _ in drawn]
    said: list[list[dict[str, Any] | None]] = [[None] * n for _ in drawn]
    played = forfeited = 0
    for link in ledger.links(attempt.number):
        if link.run != runs[link.trial][0]:
            continue
        if link.kind == "declare":
            said[link.trial][link.episode] = link.content
            continue
        row = link.row
        value = quality_of_row(row, ledger.competition.tasks[drawn[link.trial].task])
        quality[link.trial][link.episode] = value
        is_success = row.end_reason is EndReason.SUCCESS
        success[link.trial][link.episode] = None if value is None else float(is_success)
        is_forfeited = row.end_reason is EndReason.FAULT
        played += not is_forfeited
        forfeited += is_forfeited
    found = {"quality": quality, "success": success, "said": said}
    return {**found, "played": played, "forfeited": forfeited}


def _over_trials(
    values: Sequence[Sequence[float | None]],
    drawn: Iterable[TrialDraw],
    is_asked: Any,  # noqa: ANN401
) -> Estimate:
    """Mean over the trials of the mean of the episodes that are asked for in each."""
    means = []
    for trial in drawn:
        own = [
            value
            for index, value in enumerate(values[trial.number])
            if value is not None and is_asked(trial, index)
        ]
        if own:
            means.append(sum(own) / len(own))
    if not means:
        return Estimate.missing(reason="no episode has a score", unit="ratio")
    return bounded_mean_interval(means)


def _levels(
    quality: Sequence[Sequence[float | None]],
    success: Sequence[Sequence[float | None]],
    drawn: Sequence[TrialDraw],
) -> dict[str, dict[str, Estimate]]:
    """Scores by cell, of the novel episodes; those without novelty count under the plain task."""
    found = {}
    for cell in sorted({one for trial in drawn for one in (trial.cell, trial.nominal.key)}):

        def is_asked(trial: TrialDraw, index: int, cell: str = cell) -> bool:
            own = trial.cell if trial.episodes[index].is_novel else trial.nominal.key
            return own == cell

        found[cell] = {
            "score": _over_trials(quality, drawn, is_asked),
            "success": _over_trials(success, drawn, is_asked),
        }
    return found


class _Whole(Trials):
    """Trials of which nothing is asked by condition."""

    def cells(self) -> Iterator[tuple[Any, dict[Any, Any]]]:
        """None."""
        return iter(())


def _measures(
    ledger: Ledger,
    drawn: Sequence[TrialDraw],
    quality: _Values,
    said: Sequence[Sequence[dict[str, Any] | None]],
    beside: Mapping[str, _Values],
) -> dict[str, Estimate]:
    """The measures of SAIL-ON, by the registered metrics of trials with an onset."""
    import pandas as pd

    own, config = "this team", MetricConfig()  # a blank is in no name
    rows = [
        {
            "policy": name,
            "novelty": {"trial": trial.place(index).as_dict(said[trial.number][index])},
            "quality": math.nan if value is None else value,
            "task": trial.env,
            "family": trial.env,
            VARIANT: "",
            "profile": None,
            "level": trial.where.level,
            "difficulty": trial.where.difficulty,
        }
        for name, values in {own: quality, **beside}.items()
        for trial in drawn
        for index, value in enumerate(values[trial.number])
    ]
    found = trials_of(pd.DataFrame(rows), own, ledger.competition.plan())
    body: Any = SimpleNamespace(
        trials=_Whole(**{one.name: getattr(found, one.name) for one in fields(found)}),
        config=config,
        level=config.level,
        policy=own,
    )
    return {
        number.name or metric.name: number.estimate
        for metric in registered().values()
        if metric.group == GROUP
        for number in metric.compute(body)
    }


# All of them -------------------------------------------------------------------------------------


def _ranked(
    ledger: Ledger, entries: Sequence[Entry], config: MetricConfig, notes: list[str]
) -> Board:
    alpha = round(1.0 - config.level, 12)
    ranked = sorted(
        (one for one in entries if _has_rank(one)),
        key=lambda one: (-(one.attempt or 0), -(one.score.value or 0.0), one.entered_ns or 0),
    )
    better, n_compared = _better(ranked, alpha) if ranked else (np.zeros((0, 0), dtype=bool), 0)
    placed: list[Entry] = []
    for _, group in groupby(ranked, key=lambda one: one.attempt):
        alike = list(group)
        own = slice(len(placed), len(placed) + len(alike))
        placed += _placed(alike, better[own, own])
        if len(alike) > MOST_LETTERS:
            notes.append(f"{len(alike)} teams are ranked, too many for letters")
    if len({one.attempt for one in ranked}) > 1:
        notes.append("later attempts play other trials: ranks and letters hold within an attempt")
    rest = sorted(
        (one for one in entries if not _has_rank(one)),
        key=lambda one: (one.state, -(one.score.value or 0.0), one.team),
    )
    return Board(
        name=ledger.competition.name,
        entries=(*placed, *rest),
        alpha=alpha,
        n_compared=n_compared,
        frozen=ledger.competition.trials.frozen,
        notes=tuple(notes),
    )


def _placed(ranked: Sequence[Entry], better: NDArray[np.bool_]) -> list[Entry]:
    """Teams that played the same trials, with place, ranks and letters; one alone has a place."""
    if len(ranked) == 1:
        return [replace(ranked[0], place=1)]
    best, worst = rank_ranges(better)
    named = letters(better) if len(ranked) <= MOST_LETTERS else [None] * len(ranked)
    return [
        replace(one, place=at + 1, rank_range=(int(low), int(high)), letters=own)
        for at, (one, low, high, own) in enumerate(zip(ranked, best, worst, named, strict=True))
    ]


def _has_rank(entry: Entry) -> bool:
    """Whether a team has a rank: it ended, every episode has a score, and it takes part."""
    is_whole = all(None not in own for own in entry.quality)
    return entry.state == "ended" and is_whole and entry.score.value is not None


def _better(ranked: Sequence[Entry], alpha: float) -> tuple[NDArray[np.bool_], int]:
    """Which team was shown to be better than which: by the means of trials, as `compare` does.

    What a trial does is one observation; p values are adjusted for all pairs by Holm's method.
    """
    n = len(ranked)
    sums = np.array([[sum(own) for own in one.quality] for one in ranked])  # type: ignore[arg-type]
    sizes = np.array([len(own) for own in ranked[0].quality])
    attempt = np.array([one.attempt for one in ranked])
    first, second = np.triu_indices(n, 1)
    is_same = attempt[first] == attempt[second]
    first, second = first[is_same], second[is_same]
    better = np.zeros((n, n), dtype=bool)
    if len(sizes) < 2 or not len(first):
        return better, 0
    p = np.ones(len(first))
    for chunk in np.array_split(np.arange(len(first)), 1 + len(first) * len(sizes) // 2_000_000):
        difference = np.round(sums[first[chunk]] - sums[second[chunk]], 9)
        p[chunk] = clustered_p_values(difference, sizes)
    shown = holm(p) <= alpha
    total = sums.sum(axis=1)
    shown &= total[first] != total[second]
    is_first = total[first] > total[second]
    winner, loser = np.where(is_first, first, second), np.where(is_first, second, first)
    better[winner[shown], loser[shown]] = True
    return better, len(first)
