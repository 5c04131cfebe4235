"""`robo-eval compete serve`, `try` and `practice`: a competition is served and tried out."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robo_eval.cli.compete_keep import print_board
from robo_eval.cli.output import JsonOption, RayOption, WorkersOption, print_json, say
from robo_eval.core.errors import InputError

if TYPE_CHECKING:
    from robo_eval.compete.ledger import Ledger
    from robo_eval.compete.serving import Serving

FileArgument = Annotated[Path, typer.Argument(metavar="COMPETITION.yaml", help="The competition.")]
TeamOption = Annotated[
    list[str] | None,
    typer.Option("--team", metavar="NAME", help="Add a team and print its token; may be repeated."),
]
HostOption = Annotated[str, typer.Option("--host", help="Address to listen at.")]
PortOption = Annotated[
    int, typer.Option("--port", min=0, max=65_535, help="Port to listen at; 0 takes a free one.")
]
PolicyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="NAME=URL",
        help="Call a policy that team NAME serves: ws://... ours, openpi+ws://... of openpi.",
    ),
]


def serve(
    file: FileArgument,
    *,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where everything of it is kept.")
    ],
    host: HostOption = "127.0.0.1",
    port: PortOption = 8600,
    names: Annotated[
        list[str] | None,
        typer.Option("--name", help="Name it is reached by, beside this machine's; may repeat."),
    ] = None,
    allow_plain: Annotated[
        bool,
        typer.Option("--allow-plain-http", help="Listen elsewhere: a proxy encrypts the way."),
    ] = False,
    team: TeamOption = None,
    policy: PolicyOption = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="ROBO_EVAL_COMPETE_DATABASE",
            show_default=False,
            help="PostgreSQL database of a new competition; several servers may share it.",
        ),
    ] = None,
    rehearse: Annotated[
        bool,
        typer.Option("--rehearse", help="Dry run: other seeds, open at once, nothing is kept."),
    ] = False,
    workers: WorkersOption = None,
    ray: RayOption = None,
) -> None:
    """Serve a competition until Ctrl-C; the same command goes on where it stopped.

    With --ray the worlds are on a cluster, whose nodes connect to this machine.

    Example: robo-eval compete serve competition.yaml --out runs/cup --team first
    """
    from robo_eval.compete.serving import opened, rehearsed

    where: dict[str, Any] = {
        "host": host, "port": port, "names": names or (), "allow_plain": allow_plain,
        "workers": workers, "ray": ray,
    }  # fmt: skip
    if not rehearse:
        with opened(file, out, database, tries_envs=ray is None) as ledger:
            serving, tokens = _begun(ledger, team or (), policy or (), **where)
        _run(serving, tokens)
        return
    with tempfile.TemporaryDirectory(prefix="robo-eval-rehearsal-") as folder:
        say("this is a rehearsal: it has other seeds, and nothing is kept")
        ledger = rehearsed(file, Path(folder) / "rehearsal")
        _run(*_begun(ledger, team or (), policy or (), **where))


def _begun(
    ledger: Ledger,
    teams: Sequence[str],
    policies: Sequence[str],
    *,
    baselines: bool = True,
    **where: Any,
) -> tuple[Serving, Mapping[str, str]]:
    """A server that listens already and has only to run, and the tokens of new teams."""
    from robo_eval.compete.players import enter_baselines, play_in_background
    from robo_eval.compete.served_policy import Calls
    from robo_eval.compete.serving import Serving

    calls = Calls.of(policies)
    if baselines:
        enter_baselines(ledger)
    serving = Serving(ledger, **where)
    for name in teams:
        ledger.competition.check_free(name)
    tokens = {name: ledger.add_team(name) for name in teams}
    calls.begin(serving, lambda line: typer.echo(line, err=True))
    if baselines:
        play_in_background(serving)
    return serving, tokens


def _run(serving: Serving, tokens: Mapping[str, str]) -> None:
    """Say where it is, and serve; whoever has read that may end it without losing anything."""
    from robo_eval.compete.ledger import KEY

    ledger = serving.house.ledger
    say(f"{ledger.competition.name} is served at {serving.told_url} until Ctrl-C")
    say(f"commitment {ledger.meta()['commitment']}")
    key = ledger.folder / KEY
    say(f"its pages are there, too: teams log in with their tokens, you with the key in {key}")
    teams, rules = {team.name for team in ledger.teams()}, ledger.competition.trials
    for role in ("frozen", "informed"):
        if (name := getattr(rules, role)) not in {None, *teams}:
            say(f"trials.{role}: no baseline and no team is called {name!r} yet")
    for name, token in tokens.items():
        say(f"token of {name}: {token}")
    sys.stdout.flush()
    serving.run()


def try_url(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where it is served.")],
    *,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="ROBO_EVAL_COMPETE_TOKEN",
            show_default=False,
            help="The team's token; others see it on a command line, so better the variable.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Say what is wrong with a client, its token or its version; plays one episode for nothing.

    The episode has no novelty, is none of the competition's, and costs nothing.

    Example: robo-eval compete try http://127.0.0.1:8600
    """
    from robo_eval.compete.practice import tried

    found = tried(url, token)
    if json:
        print_json(found)
        return
    say(f"{found['name']}: the server speaks the protocol of this client")
    say(f"team {found['team']}: {found['sentence']}")
    for task in found["tasks"]:
        say(
            f"{task['env']}: {task['ticks']} ticks played, {task['step_ms']:.2f} ms a step at the"
            " median"
        )


def practice(
    file: FileArgument,
    *,
    agent: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Baseline agent that plays; without one it is served."),
    ] = None,
    factory: Annotated[
        str | None,
        typer.Option(metavar="MODULE:CALLABLE", help="What makes the agent; it needs `act`."),
    ] = None,
    baselines: Annotated[
        bool,
        typer.Option("--baselines", help="Let its baselines play, too, and print the leaderboard."),
    ] = False,
    port: PortOption = 0,
    json: JsonOption = False,
) -> None:
    """Play a competition on this machine, with other seeds; nothing is kept.

    With an agent it plays everything, and what it got is printed. Without one the competition is
    served for your own client until Ctrl-C, with the token that is printed.

    With --baselines the baselines that the file names play as well; once your agent and they have
    played, the leaderboard is printed. Where the competition is served, its page shows it.

    Example: robo-eval compete practice competition.yaml --agent balancer
    """
    from robo_eval.compete.serving import rehearsed

    with tempfile.TemporaryDirectory(prefix="robo-eval-practice-") as folder:
        ledger = rehearsed(file, Path(folder) / "practice", baselines=baselines)
        if baselines and not ledger.competition.baselines:
            raise InputError(f"{file}: baselines: names none; add some, or leave out --baselines")
        if agent is None and factory is None:
            _run(*_begun(ledger, ["you"], (), baselines=baselines, port=port))
            return
        from robo_eval.compete.practice import practised
        from robo_eval.compete.scores import board

        announce = (lambda line: typer.echo(line, err=True)) if baselines else None
        found = practised(ledger, agent or "agent", factory, announce)
        shown = board(ledger) if baselines else None
    if json:
        print_json(found if shown is None else {**found, "leaderboard": shown.as_dict()})
        return
    if shown is not None:
        print_board(shown)
        return
    say(f"{found['episodes']} episodes in {found['trials']} trials played")
    for what in ("mean", "normal", "novel"):
        value = found[f"{what}_quality"]
        said = "none was played" if value is None else f"{value:.3f}"
        say(f"{'quality' if what == 'mean' else f'quality of {what} episodes'}: {said}")
