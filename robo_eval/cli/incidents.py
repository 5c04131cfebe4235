"""`robo-eval incidents`: the log of what went wrong around robots."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup

_VERBS: Final = {
    "add": ("add.add", "Report an incident."),
    "nil": ("add.nil", "Report a shift without incidents."),
    "list": ("show.list_", "List incidents as they stand."),
    "show": ("show.show", "Print an incident and its records."),
    "todo": ("todo.todo", "List what is left to do."),
    "told": ("todo.told", "Record that somebody outside was told."),
    "correct": ("change.correct", "Give other values for a report."),
    "reclassify": ("change.reclassify", "Give another severity or category."),
    "attach": ("change.attach", "Name further evidence."),
    "review": ("change.review", "Confirm or dismiss an incident."),
    "act": ("change.act", "Record a corrective action."),
    "check": ("change.check", "Say whether an action helped."),
    "close": ("change.close", "Close an incident."),
    "redact": ("change.redact", "Take a text out of the log."),
    "capture": ("rates.capture", "Draft incidents from a trial."),
    "test": ("replay.replay", "Replay an incident to the guard of today."),
    "exposure": ("times.exposure", "Log and print hours of exposure."),
    "withdraw": ("times.withdraw", "Take back hours, or a nil report."),
    "rates": ("rates.rates", "Print rates and the safety score."),
    "trends": ("rates.trends", "Print rates month by month."),
    "checkpoint": ("keep.checkpoint", "Sign how far the log has got."),
    "merge": ("keep.merge", "Take in the records of other stations."),
    "import": ("keep.import_", "File the incidents of a table."),
    "export": ("keep.export", "Write incidents as a table."),
    "pack": ("keep.pack", "Write all there is of an incident to one file."),
    "schema": ("keep.schema", "Print the schema of tables."),
    "notify": ("web.notify", "Tell people what is critical or overdue."),
    "init": ("keep.init", "Make a log."),
    "serve": ("web.serve", "Serve the web page."),
}
"""Verbs in the order of help: a function in a file `incidents_*.py`, and what it does in short."""


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
            from robo_eval.cli.incidents_web import users

            verbs = typer.Typer(rich_markup_mode=None)
            for name, (place, text) in _VERBS.items():
                file, _, function = place.partition(".")
                module = import_module(f"robo_eval.cli.incidents_{file}")
                verbs.command(name, short_help=text)(getattr(module, function))
            verbs.add_typer(users, name="user")
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
