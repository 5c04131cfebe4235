"""The robo-eval command: its verbs, and how errors leave it."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from robo_eval.cli import (
    acc,
    agents,
    aiq,
    assess,
    compare,
    demo,
    doctor,
    export,
    film,
    importer,
    incidents,
    levels,
    metrics,
    migrate,
    pause,
    plan_size,
    rate,
    recover,
    replay,
    report,
    run,
    serve_policy,
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


app.command("demo", short_help="Play the demo trial and write its report.")(demo.demo)
app.command("run", short_help="Play a plan in a new trial directory.")(run.run)
app.command("resume")(run.resume)
app.command("doctor", short_help="Look at a robot before a run.")(doctor.doctor)
app.command("partner", short_help="Play the simulated half of pairs.")(run.partner)
app.command("pause", short_help="Let a run on a robot wait.")(pause.pause)
app.command("recover", short_help="Save what a run that was cut off left.")(recover.recover)
app.command("rate", short_help="Judge episodes as a second rater.")(rate.rate)
app.command("replay", short_help="Compare recorded motion with the simulator's.")(replay.replay)
app.command("metrics", short_help="Print the metrics of a trial, with intervals.")(metrics.metrics)
app.command("assess", short_help="Say which autonomy level the evidence supports.")(assess.assess)
app.command("acc", short_help="Print capability and generality of each agent.")(acc.acc)
app.add_typer(aiq.app, name="aiq")
app.command("compare", short_help="Compare policies, of one trial or of several.")(compare.compare)
app.command("report", short_help="Write the HTML report of a trial, or of many.")(report.report)
app.command("verify", short_help="Check a trial or log against its digests.")(verify.verify)
app.add_typer(incidents.app, name="incidents")
app.command("levels", short_help="List the novelty levels and what they change.")(levels.levels)
app.command("agents")(agents.agents)
app.command("serve-policy", short_help="Serve a policy to plans elsewhere.")(
    serve_policy.serve_policy
)
app.add_typer(importer.app, name="import")
app.add_typer(plan_size.app, name="plan-size")
app.command("film", short_help="Save an episode as an animated GIF.")(film.film)
app.command("export", short_help="Write the episode rows as Parquet or CSV.")(export.export)
app.command("migrate", short_help="Upgrade the episode database of a trial.")(migrate.migrate)


def main() -> None:
    """Run the command line; every error raised on purpose becomes one line and an exit code."""
    # Looking for plugins of pydantic, of which we use none, is a tenth of a refusal's time.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
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
    # Names of files may hold line breaks, and letters that change the order of what is shown.
    line = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in message)
    print(f"robo-eval: {line}", file=sys.stderr)  # noqa: T201 - the command line speaks here
    return code
