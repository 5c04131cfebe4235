"""How teams did: scores with intervals, and which of them cannot be told apart."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from robo_eval.compete.ability import abilities, panel_difficulties, quotients_of
from robo_eval.compete.draw import cells_of
from robo_eval.core.canonical import digest, text_digest
from robo_eval.core.errors import InputError, said
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import EndReason, FaultBy
from robo_eval.core.plain import UNSAID, plain
from robo_eval.core.spread import done
from robo_eval.core.units import text_of
from robo_eval.core.wording import counted
from robo_eval.log.provenance import software
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.registered.trials import GROUP
from robo_eval.metrics.registry import registered
from robo_eval.metrics.scoring import SCORE_VERSION, score_row
from robo_eval.metrics.standings import ranks_text
from robo_eval.metrics.tasks import VARIANT
from robo_eval.metrics.trials import Whole, trials_among, whole_trials
from robo_eval.stats.bounded import bounded_mean_intervals
from robo_eval.stats.clustered_pairs import clustered_p_values
from robo_eval.stats.multiple import holm, letters, rank_ranges

if TYPE_CHECKING:
    from robo_eval.compete.competition import Competition
    from robo_eval.compete.draw import TrialDraw
    from robo_eval.compete.ledger import Attempt, Ledger, Team
    from robo_eval.core.plan import TaskPlan, TrialPlan
    from robo_eval.core.trials import InTrial

BOARD_VERSION: Final = 3
"""Version of the form of `Board.as_dict`, and of what is kept of an attempt."""
MOST_LETTERS: Final = 60
"""Teams that get letters; of more, sets that were not told apart are too many to name."""
_GROUPS: Final = {
    "detection": ("M1", "restricted_delay", "M2", "M2_1"),
    "reaction": ("M3", "M4", "M5", "M6"),
    "adaptation": ("adaptation", "adaptation_possible"),
}
"""Measures that stand together, in tables that a screen holds; all else is further."""
_FURTHER: Final = "further numbers of detection, reaction and reports"
_WORDS: Final = {
    "M1": "M1 delay, episodes",
    "restricted_delay": "restricted delay, episodes",
    "M2": "M2 detected",
    "M2_1": "M2.1 false alarm",
    "M3": "M3 recovered",
    "M4": "M4 recovered when told",
    "M5": "M5 from the onset on",
    "M6": "M6 at the end",
}
_SCALE: Final = (
    "capability runs from the difficulty of the easiest cell, for a team that does next to nothing,"
    " to that of the hardest"
)
_MOST_NAMED: Final = 8
"""Teams that a sentence names."""
_TEAM: Final = "this team"
"""Stands for the team that is measured: a blank is in no name."""
_PORTION: Final = 20
"""Attempts whose numbers are computed together: their intervals take less time so."""
_NOTHING: Final = Estimate.missing(reason="nothing was played", unit="ratio")
_UNSCORED: Final = Estimate.missing(reason="no episode has a score", unit="ratio")
_UNTOLD: Final = Estimate.missing(reason="it is told when the attempt has ended", unit="ratio")


def heading(name: str) -> str:
    """What a number is called above a column.

    Example:
        >>> heading("M2_1"), heading("early_reaction")
        ('M2.1 false alarm', 'early reaction')
    """
    return _WORDS.get(name, name.replace("_", " "))


def number_text(found: Estimate | None, none: str = "-") -> str:
    """A number with its interval and of how many trials it is.

    Example:
        >>> number_text(Estimate(value=0.5, low=0, high=1, n=9, method="wilson", unit="ratio"))
        '0.50 [0.00, 1.00] (9)'
    """
    if found is None or found.value is None:
        return none
    return f"{text_of(found)} ({found.n:,})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelScore:
    """A team at one level of the map.

    Attributes:
        cell: Task, level and difficulty, or novelty, in short.
        score: Mean quality of its novel episodes, of a cell without novelty all; trials are
            independent. Episodes that ended before their novelty began count in no cell.
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
        is_baseline: Whether the organiser entered it, as a baseline; then it has no rank.
        attempt: Which of its attempts this is; None if none began.
        entered_ns: When the attempt ended, ns since 1970, UTC; None while it goes on.
        is_late: Whether it ended after the closing date.
        played: Episodes played so far; none that were forfeited.
        expected: Episodes of a whole attempt.
        forfeited: Episodes that ended by a fault of the team.
        not_begun: Novel episodes that ended before their novelty began.
        given_back: How often one of its trials began again, by a fault of the server.
        score: Mean quality over all episodes; trials are independent.
        success: Share of strict successes.
        measures: M1 to M6 and what stands beside them, by name.
        ability: Capability and normalised generality over the cells of the map (see
            `analysis.acc`), and AIQ.
        levels: The map of levels.
        place: Its place among the teams of the same attempt; None without a rank.
        rank_range: Best and worst rank that the decisions allow; None without a rank.
        letters: Teams share a letter where they were not told apart; None without a rank, or
            where there are too many teams.
        quality: Quality of each episode by trial.
        means: Mean quality of the trials of each cell: of novel episodes, and of a control of all.
    """

    team: str
    state: str
    is_baseline: bool = False
    attempt: int | None = None
    entered_ns: int | None = None
    is_late: bool = False
    played: int = 0
    expected: int
    forfeited: int = 0
    not_begun: int = 0
    given_back: int = 0
    score: Estimate
    success: Estimate
    measures: Mapping[str, Estimate] = field(default_factory=dict)
    ability: Mapping[str, Estimate] = field(default_factory=dict)
    levels: tuple[LevelScore, ...] = ()
    place: int | None = None
    rank_range: tuple[int, int] | None = None
    letters: str | None = None
    quality: tuple[tuple[float | None, ...], ...] = field(default=(), metadata=UNSAID)
    means: Mapping[str, Sequence[float]] = field(default_factory=dict, metadata=UNSAID)

    SAID: ClassVar = ("ranks", "marks")

    @property
    def ranks(self) -> str:
        """The ranks that are left open, for people."""
        return ranks_text(self.rank_range)

    @property
    def marks(self) -> tuple[str, ...]:
        """What to mind of it, for people."""
        found = ["baseline"] if self.is_baseline else []
        if self.state != "ended":
            found.append(self.state.replace("_", " "))
        if self.is_late:
            found.append("late")
        if self.forfeited:
            found.append(f"{counted(self.forfeited, 'episode')} forfeited")
        if self.given_back:
            found.append(f"{counted(self.given_back, 'trial')} given back")
        if self.not_begun:
            found.append(f"{counted(self.not_begun, 'episode')} ended before the novelty began")
        return tuple(found)

    def before_reveal(self) -> Entry:
        """What may be seen of it while seeds are secret.

        Of an attempt that goes on that is how much was played: the differences of a score that is
        seen again and again are the episodes, and all teams meet the same.
        """
        known = replace(self, not_begun=0, measures={}, ability={}, levels=(), means={})
        if self.state != "unfinished":
            return known
        return replace(known, forfeited=0, score=_UNTOLD, success=_UNTOLD)


def _is_below(found: Estimate) -> bool:
    """Whether an interval reaches to where no value can be: its formula knows no bounds."""
    is_bounded = found.method in ("student_t", "welch_t") and found.unit != "difference"
    return is_bounded and found.low is not None and found.low < 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberTable:
    """Numbers by team, to be shown.

    Attributes:
        title: What they are.
        names: Of the columns.
        by_team: What is known of each team in these columns.
        sentences: What some teams lack, what all lack for one reason, and what is not sure.
        is_further: Whether a short board leaves it out.
    """

    title: str
    names: Sequence[str]
    by_team: Mapping[str, Mapping[str, Estimate]]
    sentences: Sequence[str]
    is_further: bool = False

    @classmethod
    def of(
        cls,
        title: str,
        by_team: Mapping[str, Mapping[str, Estimate]],
        *more: str,
        is_further: bool = False,
    ) -> NumberTable:
        """A number that all teams lack for one reason is a sentence in place of a column."""
        absent: dict[str | None, list[str]] = {}
        for name in dict.fromkeys(name for own in by_team.values() for name in own):
            parts = [own[name] for own in by_team.values() if name in own]
            reasons = {None if one.value is not None else one.reason for one in parts}
            absent.setdefault(reasons.pop() if len(reasons) == 1 else None, []).append(name)
        names = absent.pop(None, [])
        known: dict[str, dict[str, Estimate]] = {team: {} for team in by_team}
        remarks: dict[tuple[str, str], dict[str, None]] = {}
        for team, own in by_team.items():
            for name in names:
                found = own.get(name)
                if found is None:
                    continue
                if found.value is not None:
                    known[team][name] = found
                if found.value is None or found.reason:
                    bare = found.value is not None and found.low is None
                    why = f"{'[-] no interval,' if bare else ''} {found.reason}".strip()
                    remarks.setdefault((why, name), {})[team] = None
        said: dict[tuple[str, str], list[str]] = {}
        for (why, name), teams in remarks.items():
            rest = len(teams) - _MOST_NAMED
            others = f" and {rest:,} more" if rest > 0 else ""
            who = ", ".join(list(teams)[:_MOST_NAMED]) + others
            said.setdefault((why, who), []).append(heading(name))
        sentences = [f"{', '.join(own)} of {teams}: {why}" for (why, teams), own in said.items()]
        sentences += [f"{', '.join(map(heading, own))}: {why}" for why, own in absent.items()]
        if any(_is_below(part) for own in known.values() for part in own.values()):
            sentences.append(
                "intervals by Student's t are not cut off at 0, below which no value is"
            )
        return cls(
            title=title,
            names=names,
            by_team=known if names else {},
            sentences=[*sentences, *(more if names else ())],
            is_further=is_further,
        )


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

    @property
    def sentences(self) -> tuple[str, ...]:
        """What ranks rest on, and what else to know, for people."""
        if not self.n_compared:
            return self.notes
        compared = counted(self.n_compared, "comparison")
        said = (
            f"rank: what is left open by {compared}, adjusted by Holm's method at {self.alpha:g};"
            " teams that share a letter were not told apart"
        )
        return said, *self.notes

    @property
    def tables(self) -> tuple[NumberTable, ...]:
        """Further numbers by team: of detection, reaction, adaptation and ability."""
        measured = [one for one in self.entries if one.measures]
        if not measured:
            return ()
        every = dict.fromkeys(name for one in measured for name in one.measures)
        grouped = {name for names in _GROUPS.values() for name in names}
        groups = {**_GROUPS, _FURTHER: [name for name in every if name not in grouped]}

        def of(title: str, names: Sequence[str]) -> NumberTable:
            by_team = {
                one.team: {name: one.measures[name] for name in names if name in one.measures}
                for one in measured
            }
            return NumberTable.of(title, by_team, is_further=title == _FURTHER)

        found = [of(title, names) for title, names in groups.items()]
        able = {one.team: one.ability for one in measured}
        found.append(NumberTable.of("ability", able, _SCALE))
        return tuple(one for one in found if one.names or one.sentences)

    def before_reveal(self) -> Board:
        """What may be seen of it while seeds are secret."""
        return replace(self, entries=tuple(one.before_reveal() for one in self.entries))

    def as_dict(self) -> dict[str, Any]:
        """The board as JSON would have it."""
        return {"version": BOARD_VERSION, **plain(self)}


def board(
    ledger: Ledger,
    *,
    study: Path | None = None,
    workers: int = 1,
) -> Board:
    """The leaderboard as it is now; what was computed of an ended attempt is kept in the ledger.

    A team's entry is the last of its attempts that was played to its end; without one, that which
    closing cut off, or that which goes on.

    Args:
        ledger: Of the competition.
        study: Folder of a study, in whose space teams have an AIQ.
        workers: Processes that share much work.

    Raises:
        InputError: If what an attempt left behind cannot be read, or the study is none.
    """
    n = len(cells_of(ledger.competition)) * ledger.competition.trials.episodes
    entries, notes = [], []
    for team, attempt, content, is_damaged in numbers(ledger, workers):
        entries.append(_entry(ledger, team, attempt, content, n))
        if is_damaged:
            notes.append(f"what was kept of {team.name} was damaged, and was computed again")
    if (public := ledger.meta().get("beacon")) is not None:
        notes.append(f"public value that is mixed into all seeds: {public}")
    quotients = quotients_of(ledger.competition, [one.means for one in entries], study)
    entries = [
        replace(one, ability={**one.ability, "AIQ": own} if one.ability else {})
        for one, own in zip(entries, quotients, strict=True)
    ]
    return _ranked(ledger, entries, notes)


def numbers(
    ledger: Ledger, workers: int = 1, *, is_anew: bool = False
) -> Iterator[tuple[Team, Attempt | None, dict[str, Any], bool]]:
    """What each team did: itself, its attempt, the numbers of that, and whether kept ones differed.

    Numbers of ended attempts are kept in the ledger, if that may be written.

    Args:
        ledger: Of the competition.
        workers: Processes that share much work.
        is_anew: Compute what was kept as well.
    """
    kept, teams, attempts = ledger.kept_scores(), ledger.teams(), ledger.attempts()
    names = {team.number: team.name for team in teams}
    by_name = {(names.get(one.team), one.attempt): one for one in attempts}
    chosen = {team.number: _chosen(attempts, team) for team in teams}
    roles = _roles(ledger.competition)
    jobs, texts = [], {}
    for attempt in filter(None, chosen.values()):
        pairs = ((name, by_name.get((name, attempt.attempt))) for name in roles)
        job = _Job(attempt, names[attempt.team], tuple((name, one) for name, one in pairs if one))
        seal, text = kept.get(attempt.number, ("", ""))
        if is_anew or seal != job.sealed(text):
            jobs.append(job)
        else:
            texts[attempt.number] = text
    texts |= _computed(ledger, jobs, workers)
    new, damaged = {}, set()
    for job in jobs:
        number, text = job.attempt.number, texts[job.attempt.number]
        told = job.sealed(text), text
        before = kept.get(number, told)
        if before != told and before[0].split()[:1] == told[0].split()[:1]:
            damaged.add(number)
        if job.attempt.ended_ns is not None:
            new[number] = told
    if new and not ledger.database.read_only:
        ledger.keep_scores(new)
    for team in teams:
        own = chosen[team.number]
        content = {} if own is None else json.loads(texts[own.number])
        yield team, own, content, own is not None and own.number in damaged


def _roles(competition: Competition) -> list[str]:
    """Names of the teams that numbers of others rest on."""
    rules = competition.trials
    named = [rules.frozen, rules.informed]
    if not panel_difficulties(competition):
        named += [policy.name for policy in competition.baselines]
    return [name for name in dict.fromkeys(named) if name is not None]


def _chosen(attempts: Sequence[Attempt], team: Team) -> Attempt | None:
    """The last attempt that was played to its end; else one that was cut off, or goes on."""
    own = [one for one in attempts if one.team == team.number]
    ended = [one for one in own if one.ended_ns is not None]
    whole = [one for one in ended if not one.is_cut]
    return next((kind[-1] for kind in (whole, ended, own) if kind), None)


def _entry(
    ledger: Ledger, team: Team, attempt: Attempt | None, content: Mapping[str, Any], n: int
) -> Entry:
    if team.revoked_ns is not None:
        state = "withdrawn"
    elif attempt is None:
        state = "not_begun"
    else:
        state = "unfinished" if attempt.ended_ns is None else "ended"
    entry = Entry(
        team=team.name,
        state=state,
        is_baseline=any(policy.name == team.name for policy in ledger.competition.baselines),
        expected=n,
        score=_NOTHING,
        success=_NOTHING,
    )
    if attempt is None:
        return entry

    def said_of(told: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        return {name: Estimate(**one) for name, one in told.items()}

    ended = attempt.ended_ns
    return replace(
        entry,
        attempt=attempt.attempt,
        entered_ns=ended,
        is_late=ended is not None and ended > ledger.competition.closes_ns,
        **said_of({name: content[name] for name in ("score", "success")}),
        measures=said_of(content["measures"]),
        ability=said_of(content["ability"]),
        levels=tuple(LevelScore(cell=at, **said_of(one)) for at, one in content["levels"].items()),
        quality=tuple(tuple(own) for own in content["quality"]),
        **{
            name: content[name]
            for name in ("means", "played", "forfeited", "given_back", "not_begun")
        },
    )


# Attempts ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Job:
    """An attempt whose numbers are to be computed, and those of others which they rest on."""

    attempt: Attempt
    team: str
    beside: tuple[tuple[str, Attempt], ...]

    def sealed(self, text: str) -> str:
        """What its numbers depend on, and a digest of themselves: so damage is seen."""
        others = {name: one.sha256 for name, one in self.beside}
        key = digest([BOARD_VERSION, SCORE_VERSION, software(), self.attempt.sha256, others])
        return f"{key} {text_digest(text)}"


def quality_of_row(cells: Mapping[str, Any], task: TaskPlan) -> float | None:
    """Quality of an episode by the rules at hand: a fault of the team counts 0, others nothing.

    Args:
        cells: Of its row, as the ledger keeps them.
        task: By whose rules it is scored.
    """
    end = EndReason(cells["end_reason"])
    if end is EndReason.FAULT and cells["fault_by"] == FaultBy.POLICY:
        return 0.0
    names = ("episode_return", "ticks", "interventions")
    return score_row(**{name: cells[name] for name in names}, end_reason=end, task=task).quality


def _computed(ledger: Ledger, jobs: Sequence[_Job], workers: int) -> dict[int, str]:
    """What is said of attempts, by their number."""
    portions = [jobs[at : at + _PORTION] for at in range(0, len(jobs), _PORTION)]
    is_little = len(portions) < 2 * workers  # a process takes longer to start than these take
    doer = partial(_contents, ledger) if is_little else partial(_contents_of, ledger.folder)
    found = done(portions, doer, workers=1 if is_little else workers)
    return {number: text for _, told in found for number, text in told}


def _contents_of(folder: Path, jobs: Sequence[_Job]) -> list[tuple[int, str]]:
    """The same in another process."""
    from robo_eval.compete.ledger import Ledger

    gc.disable()  # nothing here has cycles, and to look for them takes a fifth of the time
    with Ledger.open(folder, read_only=True) as ledger:
        return _contents(ledger, jobs)


def _contents(ledger: Ledger, jobs: Sequence[_Job]) -> list[tuple[int, str]]:
    """What is said of attempts: their number and JSON, to be kept.

    It is the same whichever attempts are asked for together; of many that takes less time.
    """
    drawn = cache(lambda attempt: _Drawn.of(ledger.trials(attempt)))
    read = cache(lambda attempt: _read(ledger, attempt, drawn(attempt.attempt)))
    whole = cache(lambda attempt: read(attempt).whole())
    logs, plan = [read(job.attempt) for job in jobs], ledger.competition.plan()
    means = {(at, *key): own for at, log in enumerate(logs) for key, own in log.means().items()}
    estimates = dict(zip(means, _intervals(list(means.values())), strict=True))
    by_cell = [log.by_cell() for log in logs]
    panels = [
        {name: read(one).by_cell() for name, one in job.beside if one.ended_ns} for job in jobs
    ]
    able = abilities(ledger.competition, [job.team for job in jobs], by_cell, panels)

    def scores(at: int, cell: str) -> dict[str, Estimate]:
        return {name: estimates[at, cell, name] for name in ("score", "success")}

    told = []
    for at, (job, log) in enumerate(zip(jobs, logs, strict=True)):
        content = {
            **scores(at, ""),
            "levels": {cell: scores(at, cell) for cell in log.drawn.cells},
            "measures": _measures(
                plan, log.whole(), {name: whole(one) for name, one in job.beside}
            ),
            "ability": able[at],
            "means": by_cell[at],
            "quality": log.quality,
            "played": log.played,
            "forfeited": int(log.is_forfeited.sum()),
            "given_back": log.given_back,
            "not_begun": int((log.cell < 0).sum()),
        }
        told.append((job.attempt.number, json.dumps(plain(content))))
    return told


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What all attempts of one number meet, by trial and episode.

    Attributes:
        trials: What was drawn.
        cells: Names of the cells of the map.
        cell: Which of them each episode counts in, shape (trials, episodes).
        stands: Where each episode stands in its trial.
    """

    trials: Sequence[TrialDraw]
    cells: Sequence[str]
    cell: NDArray[np.intp]
    stands: Sequence[Sequence[InTrial]]

    @classmethod
    def of(cls, trials: Sequence[TrialDraw]) -> _Drawn:
        """The same of what was drawn."""
        names = [
            [trial.cell if one.is_novel else trial.nominal.key for one in trial.episodes]
            for trial in trials
        ]
        cells, cell = np.unique(names, return_inverse=True)
        stands = [[trial.place(at) for at in range(len(trial.episodes))] for trial in trials]
        return cls(trials, cells.tolist(), cell.reshape(np.shape(names)), stands)


@dataclass(frozen=True, slots=True)
class _CompetitionLog:
    """What an attempt left behind, by trial and episode.

    Attributes:
        drawn: What it met.
        cell: Which cell of the map each episode counts in, shape (trials, episodes); -1 where its
            novelty never began, so that it counts in none.
        quality: The same shape, NaN where there is no score.
        success: The same, 1 for a strict success.
        novelty: What rows say of novelty, and what was declared.
        played: Episodes that were played.
        is_forfeited: Which ended by a fault of the team, the same shape.
        given_back: How often a trial began again.
    """

    drawn: _Drawn
    cell: NDArray[np.intp]
    quality: NDArray[np.float64]
    success: NDArray[np.float64]
    novelty: Sequence[Sequence[Mapping[str, Any]]]
    played: int
    is_forfeited: NDArray[np.bool_]
    given_back: int

    def means(self) -> dict[tuple[str, str], list[float]]:
        """By cell, all of them under `""`, and number: the mean of each trial that has one."""
        found = {}
        for name, values in (("score", self.quality), ("success", self.success)):
            for index, cell in enumerate(("", *self.drawn.cells), -1):
                asked = np.isfinite(values) & ((self.cell == index) | (not cell))
                found[cell, name] = [
                    float(own[kept].mean())
                    for own, kept in zip(values, asked, strict=True)
                    if kept.any()
                ]
        return found

    def by_cell(self) -> dict[str, list[float]]:
        """Mean quality of the trials of each cell: of novel episodes, and of a control of all."""
        found: dict[str, list[float]] = {trial.cell: [] for trial in self.drawn.trials}
        for trial, own, cell in zip(self.drawn.trials, self.quality, self.cell, strict=True):
            asked = np.isfinite(own) & (cell == self.drawn.cells.index(trial.cell))
            if asked.any():
                found[trial.cell].append(float(own[asked].mean()))
        return found

    def whole(self) -> Whole:
        """Its trials as measures read them."""
        import pandas as pd

        each = [trial for trial in self.drawn.trials for _ in trial.episodes]
        columns = {
            "policy": [_TEAM] * len(each),
            "novelty": [one for own in self.novelty for one in own],
            "quality": self.quality.ravel().tolist(),
            "fault_by": np.where(self.is_forfeited, FaultBy.POLICY.value, "").ravel().tolist(),
            "task": [trial.env for trial in each],
            "family": [trial.env for trial in each],
            VARIANT: [""] * len(each),
            "profile": [None] * len(each),
            "level": [trial.where.level for trial in each],
            "difficulty": [trial.where.difficulty for trial in each],
        }
        return whole_trials(pd.DataFrame(columns), _TEAM)


def _read(ledger: Ledger, attempt: Attempt, drawn: _Drawn) -> _CompetitionLog:
    """What an attempt left behind; nothing is checked, which `check` does.

    Raises:
        InputError: If it cannot be read.
    """
    tasks, runs = ledger.competition.tasks, ledger.ended_runs(attempt.number)
    task_of = [tasks[trial.task] for trial in drawn.trials]
    quality, success = np.full(drawn.cell.shape, np.nan), np.full(drawn.cell.shape, np.nan)
    rows: dict[tuple[int, int], Mapping[str, Any]] = {}
    declared: dict[tuple[int, int], Mapping[str, Any]] = {}
    cell, is_forfeited = drawn.cell.copy(), np.zeros(drawn.cell.shape, dtype=bool)
    try:
        for kind, trial, run, episode, content in ledger.contents(attempt.number):
            if run != runs[trial][0] or kind in ("feedback", "given_back"):
                continue
            told = from_json(content)
            if kind == "declare":
                declared[trial, episode] = told
                continue
            end = EndReason(told["end_reason"])
            value = quality_of_row(told, task_of[trial])
            if value is not None:
                quality[trial, episode] = value
                success[trial, episode] = end is EndReason.SUCCESS
            is_novel = drawn.stands[trial][episode].is_novel
            rows[trial, episode] = from_json(told["novelty"] or "{}") if is_novel else {}
            if rows[trial, episode].get("began") is False:
                cell[trial, episode] = -1
            is_forfeited[trial, episode] = end is EndReason.FAULT
    except (ValueError, TypeError, LookupError) as err:
        raise InputError(
            f"{ledger.folder}: what attempt {attempt.number} left behind cannot be read"
            f" ({said(err)}); `robo-eval compete check {ledger.folder}` says where"
        ) from err
    novelty = [
        [
            {**rows.get((trial, at), {}), "trial": stands.as_dict(declared.get((trial, at)))}
            for at, stands in enumerate(own)
        ]
        for trial, own in enumerate(drawn.stands)
    ]
    n_played = len(rows) - int(is_forfeited.sum())
    given_back = sum(run - 1 for run, _ in runs.values())
    return _CompetitionLog(
        drawn, cell, quality, success, novelty, n_played, is_forfeited, given_back
    )


def _intervals(samples: Sequence[Sequence[float]]) -> Iterator[Estimate]:
    """The mean over trials of each sample."""
    known = iter(bounded_mean_intervals([one for one in samples if one]))
    for one in samples:
        yield next(known) if one else _UNSCORED


def _measures(plan: TrialPlan, own: Whole, beside: Mapping[str, Whole]) -> dict[str, Estimate]:
    """The measures of SAIL-ON, by the registered metrics of trials with an onset."""
    config = MetricConfig()
    body: Any = SimpleNamespace(
        trials=replace(trials_among({**beside, _TEAM: own}, _TEAM, plan), is_split=False),
        config=config,
        level=config.level,
        policy=_TEAM,
    )
    return {
        number.name or metric.name: number.estimate
        for metric in registered().values()
        if metric.group == GROUP
        for number in metric.compute(body)
    }


# All of them -------------------------------------------------------------------------------------


def _ranked(ledger: Ledger, entries: Sequence[Entry], notes: list[str]) -> Board:
    alpha = round(1.0 - MetricConfig().level, 12)
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
        notes.append(
            "later attempts play other trials and stand first, which is no win over the others:"
            " places, ranks and letters hold within an attempt"
        )
    rest = sorted(
        (one for one in entries if not _has_rank(one)),
        # The order of attempts that go on would tell their scores.
        key=lambda one: (one.state, -(one.score.value or 0.0) if one.entered_ns else 0.0, one.team),
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
    is_whole = entry.score.value is not None and all(None not in own for own in entry.quality)
    return entry.state == "ended" and is_whole and not entry.is_baseline


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
