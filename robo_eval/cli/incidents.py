"""`robo-eval incidents`: the log of what went wrong around robots."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup


class _Verbs(TyperGroup):
    """Makes its verbs when one of them is asked for.

    There are as many of them as robo-eval has otherwise, and making them takes as long as all else
    that `robo-eval --help` does.
    """

    # Types are those of click, or of the copy of it that newer versions of typer have.

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        from robo_eval.cli.incidents_common import check_text

        for argument in args:
            check_text(argument, "an argument")
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401
        self._make()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        self._make()
        return super().get_command(ctx, cmd_name)

    def _make(self) -> None:
        if not self.commands:
            from robo_eval.cli.incidents_verbs import app as verbs

            made = typer.main.get_command(verbs)
            assert isinstance(made, TyperGroup)
            self.commands.update(made.commands)


app = typer.Typer(cls=_Verbs, no_args_is_help=True)


@app.callback()
def root() -> None:
    """Log what goes wrong around robots, and review it.

    Start with `robo-eval incidents add`. The log is a file of your own unless --log or
    ROBO_EVAL_INCIDENTS names another one; its records are only ever added to.
    """
