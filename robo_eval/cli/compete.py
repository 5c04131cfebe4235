"""`robo-eval compete`: competitions in adapting to hidden novelties."""

from __future__ import annotations

from typing import Final

import typer

from robo_eval.cli.verbs import Table, VerbGroup

_VERBS: Final[Table] = {
    "Commands": {
        "new": ("compete_keep:new", "Write a competition file to start from."),
        "team": ("compete_keep:team", "Add a team and print its token, or end it."),
        "beacon": ("compete_keep:beacon", "Give the public value the seeds wait for."),
        "close": ("compete_keep:close", "End a competition; open attempts are forfeited."),
        "reveal": ("compete_keep:reveal", "Publish seeds, onsets and parameters."),
        "check": ("compete_keep:check", "Compute promise, draws and scores again."),
        "leaderboard": ("compete_keep:leaderboard", "Print how teams did, with intervals."),
        "serve": ("compete_serve:serve", "Serve a competition, and go on where it stopped."),
        "try": (
            "compete_serve:try_url",
            "Say what is wrong with a client, its token or its version.",
        ),
        "practice": ("compete_serve:practice", "Play a competition here, with other seeds."),
    }
}


class _CompeteVerbs(VerbGroup):
    TABLE = _VERBS


app = typer.Typer(cls=_CompeteVerbs, no_args_is_help=True)
