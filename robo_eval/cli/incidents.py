"""`robo-eval incidents`: the log of what went wrong around robots."""

from __future__ import annotations

from typing import Any, Final

import typer

from robo_eval.cli.incidents_common import check_text
from robo_eval.cli.verbs import Table, VerbGroup

_VERBS: Final[Table] = {
    "Commands": {
        "add": ("incidents_add:add", "Report an incident."),
        "nil": ("incidents_add:nil", "Report a shift without incidents."),
        "list": ("incidents_show:list_", "List incidents as they stand."),
        "show": ("incidents_show:show", "Print an incident and its records."),
        "todo": ("incidents_todo:todo", "List what is left to do."),
        "told": ("incidents_todo:told", "Record that somebody outside was told."),
        "correct": ("incidents_change:correct", "Give other values for a report."),
        "reclassify": ("incidents_change:reclassify", "Give another severity or category."),
        "attach": ("incidents_change:attach", "Name further evidence."),
        "review": ("incidents_change:review", "Confirm or dismiss an incident."),
        "act": ("incidents_change:act", "Record a corrective action."),
        "check": ("incidents_change:check", "Say whether an action helped."),
        "close": ("incidents_change:close", "Close an incident."),
        "redact": ("incidents_change:redact", "Take a text out of the log."),
        "capture": ("incidents_rates:capture", "Draft incidents from a trial."),
        "test": ("incidents_replay:replay", "Replay an incident to the guard of today."),
        "exposure": ("incidents_times:exposure", "Log and print hours of exposure."),
        "withdraw": ("incidents_times:withdraw", "Take back hours, or a nil report."),
        "rates": ("incidents_rates:rates", "Print rates and the safety score."),
        "trends": ("incidents_rates:trends", "Print rates month by month."),
        "checkpoint": ("incidents_keep:checkpoint", "Sign how far the log has got."),
        "merge": ("incidents_keep:merge", "Take in the records of other stations."),
        "import": ("incidents_keep:import_", "File the incidents of a table."),
        "export": ("incidents_keep:export", "Write incidents as a table."),
        "pack": ("incidents_keep:pack", "Write all there is of an incident to one file."),
        "schema": ("incidents_keep:schema", "Print the schema of tables."),
        "notify": ("incidents_web:notify", "Tell people what is critical or overdue."),
        "init": ("incidents_keep:init", "Make a log."),
        "serve": ("incidents_web:serve", "Serve the web page."),
        "user": ("incidents_web:users", "Say who may use the web page."),
    }
}


class _IncidentVerbs(VerbGroup):
    TABLE = _VERBS

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for argument in args:
            check_text(argument, "an argument")
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_IncidentVerbs, no_args_is_help=True)


@app.callback()
def root() -> None:
    """Log what goes wrong around robots, and review it.

    Start with `robo-eval incidents add`. The log is a file of your own unless --log or
    ROBO_EVAL_INCIDENTS names another one; its records are only ever added to.
    """
