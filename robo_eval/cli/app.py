"""The robo-eval command: its verbs, and how errors leave it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from robo_eval.cli import (
    acc,
    agents,
    demo,
    export,
    film,
    importer,
    levels,
    metrics,
    migrate,
    report,
    run,
    verify,
)
from robo_eval.core.errors import InterruptedRunError, RoboEvalError

_ABORTED = 130
_STOPPED = "stopped by Ctrl-C; the same command may be given again"

app = typer.Typer(
    name="robo-eval",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:  # noqa: FBT001 - the signature typer calls
    if value:
        from robo_eval import __version__

        typer.echo(f"robo-eval {__version__}")
        raise typer.Exit


@app.callback(
    epilog="Exit codes: 0 done, 1 a check failed, 2 bad input, 3 interrupted (go on with resume)."
)
def root(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Evaluate embodied robots: run trials, verify logs, compute metrics, write reports.

    Start with `robo-eval demo`, or with `robo-eval run PLAN.yaml --out DIR`.
    """
    del version


app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("resume")(run.resume)
app.command("metrics")(metrics.metrics)
app.command("acc")(acc.acc)
app.command("report")(report.report)
app.command("verify")(verify.verify)
app.command("levels")(levels.levels)
app.command("agents")(agents.agents)
app.add_typer(importer.app, name="import")
app.command("film")(film.film)
app.command("export")(export.export)
app.command("migrate")(migrate.migrate)


def main() -> None:
    """Run the command line; every error raised on purpose becomes one line and an exit code."""
    try:
        app(prog_name="robo-eval")
    except RoboEvalError as err:
        sys.exit(_fail(str(err), err.exit_code))
    except KeyboardInterrupt:
        sys.exit(_fail(_STOPPED, InterruptedRunError.exit_code))
    except SystemExit as end:
        if end.code == _ABORTED:  # typer's way of saying that Ctrl-C was pressed
            sys.exit(_fail(_STOPPED, InterruptedRunError.exit_code))
        raise
    except BrokenPipeError:
        # The reader, `head` say, has seen enough.
        sys.stderr.close()
        sys.exit(0)
    except OSError as err:
        where = f"{err.filename}: " if err.filename else ""
        sys.exit(_fail(f"{where}{err.strerror or err}", 2))


def _fail(message: str, code: int) -> int:
    sys.stdout.flush()
    print(f"robo-eval: {message}", file=sys.stderr)  # noqa: T201 - the command line speaks here
    return code
