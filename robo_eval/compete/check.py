"""Whether a competition is what was promised, and its results what was played."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from robo_eval.compete.competition import Competition, moment_text
from robo_eval.compete.draw import TrialDraw
from robo_eval.compete.ledger import (
    FILE,
    REVEAL,
    Attempt,
    ChainRow,
    Ledger,
    Refusal,
    Turn,
    is_novel,
    means_novel,
)
from robo_eval.compete.replay import differences, own_novelty, unpacked
from robo_eval.compete.scores import numbers, quality_of_row
from robo_eval.core.canonical import canonical_json
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason
from robo_eval.core.plain import UNSAID, plain
from robo_eval.core.wording import counted
from robo_eval.log.chain import GENESIS
from robo_eval.log.files import explained
from robo_eval.log.provenance import numerics, software
from robo_eval.metrics.scoring import SCORE_VERSION

SAMPLE: Final = 20
"""Episodes that are played again if nobody says how many."""
_ADDED: Final = ("salt", "beacon", "commitment", "chains", "standing")
"""What `reveal` adds to what was promised."""
_DRAWN: Final = ("policy", "seed", "task", "level", "difficulty", "profile", "novelty")
"""Columns of a row that follow from what was drawn."""
_MEASURED: Final = (
    "start_ns", "duration_s", "ticks", "episode_return", "quality", "success", "end_reason",
    "fault_by",
)  # fmt: skip


@dataclass(slots=True)
class Checked:
    """What was found.

    Attributes:
        problems: What differs; empty if nothing does.
        notes: What to know that is no difference.
        commitment: The commitment that it was held against.
        beacon: The public value that was mixed in; None if there is none.
        revealed: Whether the seeds are revealed, so that the promise could be checked.
        attempts: Attempts that were looked at.
        episodes: Episodes whose score was computed again.
        replayed: Episodes that were played again.
        differing_scores: Episodes that the rules at hand score otherwise than older ones did:
            team, episode, the recorded quality and the new one.
        candidates: Episodes that may be played again, each with its team and attempt, and trial.
    """

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    commitment: str = ""
    beacon: str | None = None
    revealed: bool = False
    attempts: int = 0
    episodes: int = 0
    replayed: int = 0
    differing_scores: list[tuple[str, str, float | None, float | None]] = field(
        default_factory=list
    )
    candidates: list[tuple[str, TrialDraw, ChainRow]] = field(default_factory=list, metadata=UNSAID)

    def as_dict(self) -> dict[str, Any]:
        """The findings as JSON would have them."""
        return {"version": 1, "is_fine": not self.problems, **plain(self)}


def check(
    folder: Path,
    sample: int | None = SAMPLE,
    seed: int | None = None,
    *,
    published: str | None = None,
    receipts: Sequence[str] = (),
    envs: Sequence[str] = (),
) -> Checked:
    """Compute everything of a competition again; nothing is changed.

    Args:
        folder: Folder of the competition, or a copy of it without the file of the secret.
        sample: Episodes to play again, chosen at random; None plays all.
        seed: Of that choice; None chooses anew.
        published: The commitment as it was published; None takes the one that is there.
        receipts: Receipts that teams were given while they played; each has to be of a link.
        envs: Environments `MODULE:ID` whose module may be imported, since whoever checks trusts it.

    Raises:
        InputError: If there is no competition, or an environment of it cannot be made here, or is
            one that nobody allowed.
    """
    with Ledger.open(folder, read_only=True) as ledger:
        if sample != 0:
            _check_envs(ledger.competition, str(folder / FILE), envs)
        revealed, meta = _revealed(folder), ledger.meta()
        if not {"commitment", "code_version"} <= meta.keys():
            raise InputError(f"{folder}: its ledger names no commitment; ask for a whole copy")
        found = Checked(
            commitment=meta["commitment"],
            beacon=meta.get("beacon"),
            revealed=revealed is not None,
        )
        if published is not None and published.strip().lower() != found.commitment:
            found.problems.append(
                f"the commitment is {found.commitment}, and {published:.80} was published"
            )
        lost = {one.strip().lower() for one in receipts}
        found.problems += _promise(ledger, revealed)
        found.problems += _standing(ledger, revealed)
        names = {team.number: team.name for team in ledger.teams()}
        chains = None if revealed is None else revealed["chains"]
        differing: list[str] = []
        for attempt in ledger.attempts():
            team = names.get(attempt.team, "?")
            differing += _summed(_attempt(ledger, attempt, team, found, chains, lost))
            found.attempts += 1
        found.problems += [f"receipt {one:.80}: is of no link of any chain" for one in sorted(lost)]
        # Numbers of rows that differ would tell the same again, if there are any.
        found.problems += differing or _board(ledger)
        chosen = found.candidates
        if sample is not None and sample < len(chosen):
            chosen = random.Random(seed).sample(chosen, sample)  # noqa: S311 - not cryptography
        told = [
            (who, f"{_name(who, link)}: played again, {text}")
            for who, trial, link in chosen
            for text in differences(trial, link, ledger.competition.tasks[trial.task])
        ]
        found.problems += _summed(told)
        found.notes += _others(found.candidates)
        found.replayed = len(chosen)
    return found


def _check_envs(competition: Competition, source: str, envs: Sequence[str]) -> None:
    """Refuse to import a module because a competition names it.

    Raises:
        InputError: If an environment would, and is not among those that are allowed.
    """
    for index, task in enumerate(competition.tasks):
        if ":" in task.env and task.env not in envs:
            raise InputError(
                f"{source}: tasks.{index}.env: playing {task.env!r:.80} again imports its module;"
                f" if you trust that, add --env {task.env:.80}, else --replays 0"
            )


def _revealed(folder: Path) -> dict[str, Any] | None:
    path = folder / REVEAL
    if not path.exists():
        return None
    try:
        with explained(path, "cannot be read"):
            told = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(told, dict) or not told.keys() >= {*_ADDED, "master", "competition"}:
            raise ValueError("is not what `reveal` writes")
        canonical_json(told)  # NaN and infinity are none
        bytes.fromhex(told["salt"])
        parts = (told["chains"], told["standing"], *dict(told["standing"]).values())
        if not all(isinstance(one, dict) for one in parts):
            raise ValueError("is not what `reveal` writes")
    except (ValueError, TypeError, RecursionError) as err:
        raise InputError(f"{path}: {err}; write it again by `robo-eval compete reveal`") from err
    return told


def _promise(ledger: Ledger, revealed: dict[str, Any] | None) -> Iterator[str]:
    """What differs between what was published before the start and what was drawn."""
    meta = ledger.meta()
    code = meta["code_version"]
    if ledger.commitment() != meta["commitment"]:
        yield "the commitment is not that of the secret and competition.yaml"
    if revealed is None:
        return
    promised = {name: told for name, told in revealed.items() if name not in _ADDED}
    beacon = revealed["beacon"]
    drawn = promised.get("draws")
    if ledger.competition.beacon is not None:
        promised.pop("draws", None)
    salt = bytes.fromhex(revealed["salt"])
    if hashlib.sha256(salt + canonical_json(promised)).hexdigest() != meta["commitment"]:
        yield f"{REVEAL}: what it shows is not what the commitment promised"
    if meta.get("beacon") != beacon:
        yield f"{REVEAL}: its public value is not that which was mixed in"
    if revealed["commitment"] != meta["commitment"]:
        yield f"{REVEAL}: its commitment is not the one that was published"
    again = json.loads(canonical_json(ledger.promised(code, beacon)))
    if again.get("draws") != drawn:
        yield f"{REVEAL}: its seeds and onsets are not those that follow from the master secret"


def _standing(ledger: Ledger, revealed: dict[str, Any] | None) -> Iterator[str]:
    """Whether teams and attempts stand as they did when the seeds were revealed."""
    for number in ledger.strays():
        yield f"attempt {number} in the ledger is missing, though links or trials of it are there"
    if revealed is None:
        return
    then, now = revealed["standing"], ledger.standings()
    for who in sorted({*then, *now}):
        if who not in now or who not in then:
            yield f"{who}: is in {REVEAL if who in then else 'the ledger'} alone"
            continue
        for name in sorted({*then[who], *now[who]}):
            old, new = then[who].get(name), now[who].get(name)
            if old != new:
                told = f"{_said(name, new)}, and {REVEAL} names {_said(name, old)}"
                yield f"{who}: {name} is {told}"


def _said(name: str, value: Any) -> str:
    """A value of a standing; a moment with its date as well."""
    date = ""
    with suppress(ValueError, TypeError, OverflowError):
        date = f" ({moment_text(int(value))})" if name.endswith("_ns") else ""
    return f"{value!r:.80}{date}"


def _summed(told: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Of each kind of difference the first, and how many more there are."""
    by_kind: dict[str, list[str]] = {}
    for kind, text in told:
        by_kind.setdefault(kind, []).append(text)
    for first, *more in by_kind.values():
        yield f"{first}; and {len(more)} more of this kind" if more else first


def _attempt(
    ledger: Ledger,
    attempt: Attempt,
    team: str,
    found: Checked,
    chains: dict[str, str] | None,
    lost: set[str],
) -> Iterator[tuple[str, str]]:
    """What differs in one attempt by kind; its episodes are added to what may be played again.

    Receipts that are in its chain are taken from those that are lost.
    """
    who = f"{team}, attempt {attempt.attempt}"
    try:
        drawn = ledger.trials(attempt.attempt)
    except Refusal:
        yield "draw", f"{who}: began before the public value was mixed in"
        return
    runs, last = ledger.ended_runs(attempt.number), GENESIS
    forfeited: dict[int, dict[int, bool]] = {trial: {} for trial in {*range(len(drawn)), *runs}}
    before: dict[tuple[int, int], ChainRow] = {}
    spoken: list[tuple[ChainRow, ChainRow | None]] = []
    n_broken = 0
    for link in ledger.links(attempt.number):
        last = link.link.sha256
        if lost:
            lost.discard(ledger.receipt(last))
        if link.kind == "episode" and link.run == runs[link.trial][0]:
            is_fault = link.content.get("end_reason") == EndReason.FAULT
            forfeited[link.trial][link.episode] = is_fault
        if link.problem is not None:
            n_broken += 1
            yield "link", f"{_name(who, link)}: link {link.link.sequence} {link.problem}"
            continue
        if link.kind == "given_back":
            why = str(link.content.get("why"))
            found.notes.append(f"{who}, trial {link.trial}: was given back, and began again: {why}")
            continue
        if link.kind != "episode":
            spoken.append((link, before.get((link.trial, link.run))))
            continue
        before[link.trial, link.run] = link
        is_drawn = 0 <= link.trial < len(drawn)
        if not is_drawn or not 0 <= link.episode < len(drawn[link.trial].episodes):
            yield "draw", f"{_name(who, link)}: there is no such episode"
            continue
        yield from _episode(ledger, drawn[link.trial], attempt, team, link, found)
    yield from _feedback(ledger.competition, drawn, who, spoken)
    yield from _end(attempt, who, chains, last)
    if not n_broken:
        yield from _trials(ledger, attempt, who, runs, forfeited)


def _end(
    attempt: Attempt, who: str, chains: Mapping[str, str] | None, last: str
) -> Iterator[tuple[str, str]]:
    if last != attempt.sha256:
        yield "end", f"{who}: its last links are missing"
    if chains is not None and chains.get(str(attempt.number)) != last:
        yield "chain", f"{who}: its chain is not the one that {REVEAL} names"


def _trials(
    ledger: Ledger,
    attempt: Attempt,
    who: str,
    runs: Mapping[int, tuple[int, int]],
    forfeited: Mapping[int, Mapping[int, bool]],
) -> Iterator[tuple[str, str]]:
    """Whether an ended attempt is whole, and what is kept of its trials is what was played.

    Args:
        ledger: Of the competition.
        attempt: The attempt.
        who: Team and attempt.
        runs: Of each trial its last run, see `Ledger.ended_runs`.
        forfeited: Of each trial the episodes of its last run, and whether each was forfeited.
    """
    n = ledger.competition.trials.episodes
    kept = ledger.trial_states(attempt.number)
    for trial, own in sorted(forfeited.items()):
        (run, _), there = runs.get(trial, (1, 0)), len(own)
        if attempt.ended_ns is not None and there < n:
            told = f"{there} of {counted(n, 'episode')} are there in run {run}"
            yield "trial", f"{who}, trial {trial}: {told}, and the attempt has ended"
        state = "open" if there < n else "forfeited" if any(own.values()) else "done"
        held = _state_text(*kept[trial]) if trial in kept else "the trial is missing"
        played = _state_text(run, there - sum(own.values()), state)
        if held != played:
            yield "kept", f"{who}, trial {trial}: kept is {held}, and played was {played}"


def _state_text(run: int, episode: int, state: str) -> str:
    return f"run {run}, {counted(episode, 'episode')}, {state}"


def _feedback(
    its: Competition,
    drawn: Sequence[TrialDraw],
    who: str,
    spoken: Sequence[tuple[ChainRow, ChainRow | None]],
) -> Iterator[tuple[str, str]]:
    """Whether teams were told no more of episodes that had just ended than they may, and the truth.

    Args:
        its: Whose rules hold.
        drawn: The trials.
        who: Team and attempt.
        spoken: What is no episode, each with the last episode of its run before it.
    """
    n: Counter[tuple[int, int]] = Counter()
    declared: set[tuple[int, int]] = set()
    for link, ended in spoken:
        run = (link.trial, link.run)
        if link.kind != "feedback":
            with suppress(LookupError, TypeError):  # of another form, which its chain tells
                declared |= {run} if means_novel(link.content) else set()
            continue
        n[run] += 1
        said = f"{_name(who, link)}: feedback"
        if n[run] > its.feedback:
            yield "budget", f"{said} was given more often than {its.feedback} times in a trial"
        if its.trials.condition == "system" and run not in declared:
            yield "undeclared", f"{said} was given before novelty was declared in the trial"
        with suppress(InputError, LookupError):  # it is told of the episode itself
            novel = None
            if ended is not None and ended.episode == link.episode:
                novel = is_novel(drawn[link.trial], ended)
            if link.content.get("novel") is not novel:
                yield "feedback", f"{said} said novel is {link.content.get('novel')!r}, not {novel}"


def _episode(
    ledger: Ledger, trial: TrialDraw, attempt: Attempt, team: str, link: ChainRow, found: Checked
) -> Iterator[tuple[str, str]]:
    found.episodes += 1
    who = f"{team}, attempt {attempt.attempt}"
    name = _name(who, link)
    try:
        row, _ = link.row, unpacked(link.actions or b"")
    except InputError as err:
        yield "row", f"{name}: {err}"
        return
    turn = Turn(
        attempt=attempt.number, ordinal=attempt.attempt, team=team, trial=trial, run=link.run,
        episode=link.episode, due_ns=None, server="",
    )  # fmt: skip
    measured = {one: getattr(row, one) for one in _MEASURED}
    drawn = ledger.row(turn, **measured, novelty=own_novelty(row) or None)
    for column in _DRAWN:
        value, there = getattr(drawn, column), getattr(row, column)
        if there != value:
            yield column, f"{name}: {column} is {there!r:.200} in place of {value!r:.200}"
    again = quality_of_row(link.content, ledger.competition.tasks[trial.task])
    recorded = row.quality if row.end_reason.is_scored else again
    if again != recorded:
        found.differing_scores.append((who, row.episode_id, recorded, again))
        if row.score_version == SCORE_VERSION:
            told = f"quality {recorded!r} was recorded, and its return gives {again!r}"
            yield "quality", f"{name}: {told}"
    if row.end_reason.is_scored:
        found.candidates.append((who, trial, link))


def _board(ledger: Ledger) -> Iterator[str]:
    """Whether the numbers that were kept of attempts are those that follow from the log."""
    for team, _, _, is_damaged in numbers(ledger, is_anew=True):
        if is_damaged:
            yield f"{team.name}: the numbers kept for the leaderboard do not follow from the log"


def _others(candidates: list[tuple[str, TrialDraw, ChainRow]]) -> Iterator[str]:
    """What was played by other software than that at hand."""
    for column, here in (("software", software()), ("numerics", numerics())):
        others = sorted({str(link.content.get(column)) for _, _, link in candidates} - {here})
        if others:
            yield f"played with {', '.join(others)}, and checked with {here}"


def _name(who: str, link: ChainRow) -> str:
    return f"{who}, trial {link.trial}, episode {link.episode}"
