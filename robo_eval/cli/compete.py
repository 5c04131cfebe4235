"""`robo-eval compete`: competitions in adapting to hidden novelties."""

from __future__ import annotations

import typer

from robo_eval.cli import compete_keep, compete_serve

app = typer.Typer(
    no_args_is_help=True,
    help="Run a competition of agents in hidden novelties.",
)


@app.callback()
def root() -> None:
    """Run a competition of agents in hidden novelties; take part in one."""


app.command("new", short_help="Write a competition file to start from.")(compete_keep.new)
app.command("team", short_help="Add a team and print its token, or end it.")(compete_keep.team)
app.command("beacon", short_help="Give the public value the seeds wait for.")(compete_keep.beacon)
app.command("close", short_help="End a competition; open attempts are forfeited.")(
    compete_keep.close
)
app.command("reveal", short_help="Publish seeds, onsets and parameters.")(compete_keep.reveal)
app.command("check", short_help="Compute promise, draws and scores again.")(compete_keep.check)
app.command("leaderboard", short_help="Print how teams did, with intervals.")(
    compete_keep.leaderboard
)
app.command("serve", short_help="Serve a competition, and go on where it stopped.")(
    compete_serve.serve
)
app.command("try", short_help="Say what is wrong with a client, its token or its version.")(
    compete_serve.try_url
)
app.command("practice", short_help="Play a competition here, with other seeds.")(
    compete_serve.practice
)
