"""The verbs of `robo-eval incidents`."""

from __future__ import annotations

import typer

from robo_eval.cli import (
    incidents_add,
    incidents_change,
    incidents_keep,
    incidents_rates,
    incidents_show,
    incidents_times,
    incidents_todo,
    incidents_web,
)

app = typer.Typer(rich_markup_mode=None)

app.command("add", short_help="Report an incident.")(incidents_add.add)
app.command("nil", short_help="Report a shift without incidents.")(incidents_add.nil)
app.command("list", short_help="List incidents as they stand.")(incidents_show.list_)
app.command("show", short_help="Print an incident and its records.")(incidents_show.show)
app.command("todo", short_help="List what is left to do.")(incidents_todo.todo)
app.command("told", short_help="Record that somebody outside was told.")(incidents_todo.told)
app.command("correct", short_help="Give other values for a report.")(incidents_change.correct)
app.command("reclassify", short_help="Give another severity or category.")(
    incidents_change.reclassify
)
app.command("attach", short_help="Name further evidence.")(incidents_change.attach)
app.command("review", short_help="Confirm or dismiss an incident.")(incidents_change.review)
app.command("act", short_help="Record a corrective action.")(incidents_change.act)
app.command("check", short_help="Say whether an action helped.")(incidents_change.check)
app.command("close", short_help="Close an incident.")(incidents_change.close)
app.command("redact", short_help="Take a text out of the log.")(incidents_change.redact)
app.command("capture", short_help="Draft incidents from a trial.")(incidents_rates.capture)
app.command("exposure", short_help="Log and print hours of exposure.")(incidents_times.exposure)
app.command("withdraw", short_help="Take back hours, or a nil report.")(incidents_times.withdraw)
app.command("rates", short_help="Print rates and the safety score.")(incidents_rates.rates)
app.command("trends", short_help="Print rates month by month.")(incidents_rates.trends)
app.command("checkpoint", short_help="Sign how far the log has got.")(incidents_keep.checkpoint)
app.command("merge", short_help="Take in the records of other stations.")(incidents_keep.merge)
app.command("import", short_help="File the incidents of a table.")(incidents_keep.import_)
app.command("export", short_help="Write incidents as a table.")(incidents_keep.export)
app.command("pack", short_help="Write all there is of an incident to one file.")(
    incidents_keep.pack
)
app.command("schema", short_help="Print the schema of tables.")(incidents_keep.schema)
app.command("notify", short_help="Tell people what is critical or overdue.")(incidents_web.notify)
app.command("init", short_help="Make a log.")(incidents_keep.init)
app.command("serve", short_help="Serve the web page.")(incidents_web.serve)
app.add_typer(incidents_web.users, name="user")
