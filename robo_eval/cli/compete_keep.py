"""The verbs of `robo-eval compete` by which an organiser keeps a competition."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.output import (
    JsonOption,
    WorkersOption,
    next_steps,
    print_json,
    print_table,
    quoted,
    say,
)
from robo_eval.core.errors import CheckFailedError, InputError
from robo_eval.core.wording import counted
from robo_eval.log.files import write_new

if TYPE_CHECKING:
    from robo_eval.compete.scores import Board

FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a competition.")]
_STARTER = "compete_starter.yaml"
_DAYS = 14


def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.")],
) -> None:
    """Write a commented competition file, which can be served as it is and opens at once.

    Example: robo-eval compete new open.yaml
    """
    closes = (datetime.now(UTC) + timedelta(days=_DAYS)).replace(microsecond=0)
    text = (Path(__file__).parent / _STARTER).read_text(encoding="utf-8")
    filled = text.format(file=file.name, closes=closes.isoformat())
    write_new(file, filled, "name another file, or delete it")
    say(f"{file}: a competition that closes in {_DAYS} days")
    next_steps(f"robo-eval compete serve {quoted(file)} --out runs/{quoted(file.stem)}")


def team(
    folder: FolderArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the team.")],
    *,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="End its token; what it played stays visible.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Add a team and print its token, alone on the last line; a server may run meanwhile.

    The token is shown once: only a digest of it is kept. With --revoke the team is withdrawn: its
    open trials are forfeited, and it has no rank.

    Examples: robo-eval compete team runs/open alice; robo-eval compete team runs/open bob --revoke
    """
    from robo_eval.compete.competition import moment_text
    from robo_eval.compete.ledger import REVEAL, Ledger

    with Ledger.open(folder) as ledger:
        if revoke:
            before = ledger.revoke(name)
            if json:
                print_json({"team": name, "revoked": True})
            elif before is None:
                say(f"{name}: withdrawn; its token works no more")
                if "revealed_ns" in ledger.meta():
                    say(f"{REVEAL} names it as one that takes part: write it again, and publish it")
                    next_steps(f"robo-eval compete reveal {quoted(folder)}")
            else:
                say(f"{name}: nothing changed; it was withdrawn at {moment_text(before)}")
            return
        ledger.competition.check_free(name)
        token = ledger.add_team(name)
        closes = ledger.competition.closes_ns
        is_late = ledger.now() >= closes
    if json:
        print_json({"team": name, "token": token})
        return
    if is_late:
        say(f"note: no attempt begins after the closing date, {moment_text(closes)}")
    say(f"{name}: added; this token is shown once, send it to the team and to nobody else")
    typer.echo(token)


def beacon(
    folder: FolderArgument,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="As it was published.")],
) -> None:
    """Give the public value that is mixed into all seeds; nobody plays before it is there.

    Example: robo-eval compete beacon runs/open "4 8 15 16 23 42"
    """
    from robo_eval.compete.ledger import Ledger

    with Ledger.open(folder) as ledger:
        ledger.mix_in(value)
    say(f"{folder}: seeds and onsets are drawn with {value.strip()!r}")


def close(folder: FolderArgument) -> None:
    """End a competition: nobody plays on, and what is open is forfeited.

    Example: robo-eval compete close runs/open
    """
    from robo_eval.compete.ledger import Ledger

    with Ledger.open(folder) as ledger:
        meta, names = ledger.meta(), {team.number: team.name for team in ledger.teams()}
        played = [(names[one.team], one.attempt, one.ended_ns) for one in ledger.attempts()]
        ledger.close()
    forfeited = [f"{name} (attempt {number})" for name, number, ended in played if ended is None]
    if "closed_ns" in meta:
        say(f"{folder}: was closed already; nothing changed")
    else:
        which = f": {', '.join(forfeited)}" if forfeited else ""
        say(f"{folder}: closed; {counted(len(forfeited), 'open attempt')} forfeited{which}")
        ended = {(name, number) for name, number, ended_ns in played if ended_ns is not None}
        missing = sorted(
            f"{name} (attempt {number})"
            for name in {one.name for one in ledger.competition.baselines} & {*names.values()}
            for number in {number for _, number, _ in played}
            if (name, number) not in ended
        )
        if missing:
            say(
                f"note: baselines that had not played to the end: {', '.join(missing)}; numbers"
                " that rest on them are missing"
            )
    then = "check" if "revealed_ns" in meta else "reveal"
    next_steps(f"robo-eval compete {then} {quoted(folder)}")


def reveal(
    folder: FolderArgument,
    *,
    value: Annotated[
        str | None,
        typer.Option("--beacon", metavar="VALUE", help="Public value, if it was not given yet."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Publish the secret, all seeds, onsets and parameters in reveal.json of the folder.

    It is refused until the competition was closed, or its closing date is past.

    Example: robo-eval compete reveal runs/open
    """
    from robo_eval.compete.ledger import REVEAL, Ledger

    with Ledger.open(folder) as ledger:
        if value is not None:
            ledger.mix_in(value)
        told = ledger.reveal()
    if json:
        print_json(told)
        return
    say(
        f"{folder / REVEAL}: master secret, salt, seeds, onsets, parameters, ends of all chains,"
        " standing of all teams"
    )
    say(f"commitment {told['commitment']}")
    next_steps(f"robo-eval compete check {quoted(folder)}")


def check(
    folder: Annotated[
        str, typer.Argument(metavar="DIR|URL", help="Folder of a competition, or its address.")
    ],
    *,
    replays: Annotated[
        int | None,
        typer.Option(
            "--replays", min=0, metavar="N", help="Episodes to play again; 20 if not given."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Play every episode again.")] = False,
    seed: Annotated[int | None, typer.Option("--seed", help="Of the choice of episodes.")] = None,
    commitment: Annotated[
        str | None,
        typer.Option("--commitment", metavar="HEX", help="As it was published before the start."),
    ] = None,
    receipt: Annotated[
        list[str] | None,
        typer.Option(metavar="HEX", help="Receipt that a team was given; may be repeated."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="MODULE:ID", help="Import this, as you trust it; may be repeated."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compute commitment, seeds, chains and scores again, and play some episodes again.

    An episode is played from its seed and stored actions, and has to give the logged return bit
    for bit. Exit code 1 where anything differs. Give it the commitment as you read it before the
    start: one that was exchanged later holds, too. It changes nothing, and needs no secret once it
    is revealed: a copy of the folder without secret.json will do, and so does the address of its
    server, which shows all of it then.

    Examples: robo-eval compete check runs/open; robo-eval compete check https://cup.example.org
    """
    from robo_eval.compete.check import SAMPLE
    from robo_eval.compete.check import check as checked
    from robo_eval.compete.shown import fetched

    if every and replays is not None:
        raise InputError("--replays: --all plays every episode; give one of the two")
    sample = None if every else SAMPLE if replays is None else replays
    with tempfile.TemporaryDirectory(prefix="robo-eval-check-") as kept:
        target = fetched(folder, Path(kept) / "c") if "://" in folder else Path(folder)
        try:
            found = checked(
                target, sample, seed, published=commitment, receipts=receipt or (), envs=env or ()
            )
        except InputError as err:  # nobody knows where it was fetched to
            raise InputError(str(err).replace(str(target), folder)) from err
    if json:
        print_json(found.as_dict())
    else:
        for problem in found.problems:
            say(f"differs: {problem}")
        for who, episode, old, again in found.differing_scores:
            say(f"scored otherwise now: {who}, {episode}: {old} then, {again} now")
        for note in found.notes:
            say(f"note: {note}")
        public = f", public value {found.beacon!r}" if found.beacon is not None else ""
        say(f"commitment {found.commitment}{public}")
        if not found.revealed:
            say("note: the seeds are not revealed; what was promised was compared with the secret")
        say(
            f"{counted(found.attempts, 'attempt')}, {counted(found.episodes, 'episode')} scored"
            f" again, {found.replayed} played again"
        )
    if found.problems:
        more = len(found.problems) - 1
        rest = f", and {counted(more, 'more difference')}" if more else ""
        raise CheckFailedError(f"{folder}: {found.problems[0]}{rest}")


def leaderboard(
    folder: FolderArgument,
    *,
    study: Annotated[
        Path | None,
        typer.Option(metavar="STUDY", help="Folder of a study of these levels: adds AIQ."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also print what stands beside M1 to M6, and of reports.")
    ] = False,
    workers: WorkersOption = None,
    json: JsonOption = False,
) -> None:
    """Print how teams did, with intervals, and which of them cannot be told apart.

    The score is the mean quality over all episodes of an attempt; what is forfeited counts 0, and
    the trials are what is independent. Teams that did alike stand in the order in which they ended.
    A server may run meanwhile: teams that have not ended are listed without a rank, and so are
    baselines. Capability and generality are over the levels, as in `robo-eval acc`; AIQ is that of
    `robo-eval aiq rank`, in the space of a study that covers the same levels.

    Example: robo-eval compete leaderboard runs/open
    """
    from robo_eval.compete.ledger import Ledger
    from robo_eval.compete.scores import board
    from robo_eval.log.provenance import cores

    with Ledger.open(folder) as ledger:
        found = board(ledger, study=study, workers=workers or cores())
    if json:
        print_json(found.as_dict())
        return
    print_board(found, every=every)


def print_board(found: Board, *, every: bool = False) -> None:
    """Print a leaderboard for people, with further numbers if asked for."""
    from robo_eval.compete.scores import heading, number_text

    rows = [
        (
            one.place or "-",
            one.team,
            one.attempt or "-",
            one.ranks,
            one.letters or "-",
            number_text(one.score),
            number_text(one.success),
            f"{one.played}/{one.expected}",
            ", ".join(one.marks),
        )
        for one in found.entries
    ]
    names = ("", "team", "attempt", "rank", "letters", "score", "success", "episodes", "marks")
    how = "[95 % interval] (trials)"
    print_table(f"{found.name}: mean quality {how}", names, rows, right=(0, 2, 7), keys=2)
    for sentence in found.sentences:
        say(sentence)
    for table in found.tables:
        if table.is_further and not every:
            continue
        say()
        if table.names:
            values = [
                (team, *(number_text(own.get(name)) for name in table.names))
                for team, own in table.by_team.items()
            ]
            heads = ("team", *map(heading, table.names))
            print_table(f"{table.title} {how}", heads, values, keys=1)
        for sentence in table.sentences:
            say(f"- {sentence}")
    if found.tables and not every:
        say("further numbers, such as those of reports: `robo-eval compete leaderboard DIR --all`")
