"""The robo-eval command: its verbs, and how errors leave it."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import signal
import sys
import traceback
from io import TextIOWrapper
from typing import Annotated, Any, Final

import typer

from robo_eval.cli.verbs import Table, VerbGroup
from robo_eval.core.errors import TRACEBACK, InputError, InterruptedRunError, RoboEvalError, said

_USAGE: Final[Any] = typer.BadParameter.__base__
"""What typer raises of words that are none of a command; it has no public name for it."""
_INTERRUPTED: Final = InterruptedRunError.exit_code
_ABORTED: Final = 130
"""Typer's way of saying that Ctrl-C was pressed."""
_UNREAD: Final = 141
"""How programs end whose output nobody reads any more: 128 and the number of SIGPIPE."""
_LONGEST: Final = 1600
"""Letters of an error; what was given may be as long as it likes."""
_STOPPED: Final = "stopped by Ctrl-C; the same command may be given again"

GROUPS: Final[Table] = {
    "Play": {
        "demo": ("demo:demo", "Play the demo trial and write its report."),
        "run": ("run:run", "Play a plan in a new trial directory."),
        "resume": ("run:resume", "Recover a trial, play what is open, fill in pairs."),
        "partner": ("run:partner", "Only play the simulated half of pairs."),
        "recover": ("run:recover", "Only save what a cut-off run left."),
        "plan-size": ("plan_size:app", "Say how many episodes or hours an answer needs."),
        "levels": ("levels:levels", "List the novelty levels and what they change."),
        "agents": ("levels:agents", "List the baseline agents that a plan can name."),
        "serve-policy": ("serve_policy:serve_policy", "Serve a policy to plans elsewhere."),
    },
    "Score": {
        "metrics": ("metrics:metrics", "Print the metrics of a trial, with intervals."),
        "dose": ("dose:dose", "Play and print success over a novelty's magnitude."),
        "assess": ("assess:assess", "Say which autonomy level the evidence supports."),
        "acc": ("acc:acc", "Print capability and generality of each agent."),
        "aiq": ("aiq:app", "Measure how complex tests are and how different (AIQ)."),
        "agitb": ("agitb:agitb", "Test a model of bit streams by twelve axioms."),
        "compare": ("compare:compare", "Compare policies, of one trial or of several."),
        "rate": ("rate:rate", "Judge episodes as a second rater."),
        "evidence": ("evidence:app", "Note what lies beside the episodes."),
        "report": ("report:report", "Write the HTML report of a trial, or of many."),
    },
    "Robots": {
        "doctor": ("doctor:doctor", "Look at a robot before a run."),
        "pause": ("pause:pause", "Let a run on a robot wait."),
        "calibrate": (
            "calibrate:app",
            "Fit a simulator to recordings of a robot, and validate it.",
        ),
        "replay": ("replay:replay", "Compare recorded motion with the simulator's."),
    },
    "Incidents": {
        "incidents": ("incidents:app", "Log what goes wrong around robots, and review it.")
    },
    "Competitions": {
        "compete": ("compete:app", "Run a competition of agents in hidden novelties.")
    },
    "Share": {
        "verify": ("verify:verify", "Check a trial or log against its digests."),
        "import": ("importer:app", "Bring in episodes logged elsewhere."),
        "export": ("export:export", "Write the episode rows as Parquet or CSV."),
        "film": ("film:film", "Save an episode as an animated GIF."),
    },
}


class _MainVerbs(VerbGroup):
    TABLE = GROUPS


app = typer.Typer(
    name="robo-eval",
    cls=_MainVerbs,
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
    epilog="Exit codes: 0 done, 1 a check failed, 2 bad input, 3 interrupted (go on with resume),"
    " 141 nobody read the output to its end. ROBO_EVAL_TRACEBACK=1 shows where an error comes from."
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


def main() -> None:
    """Run the command line; whatever goes wrong becomes one line and an exit code."""
    # Looking for plugins of pydantic, of which we use none, is a tenth of a refusal's time.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Most of what a verb makes is kept: looking for cycles in it so often is a tenth of its time.
    gc.set_threshold(20_000, 20, 100)
    _prepare_streams()
    message, code = None, 0
    try:
        ended = app(prog_name="robo-eval", standalone_mode=False)
        message, code = (_STOPPED, _INTERRUPTED) if ended == _ABORTED else (None, ended or 0)
    except BaseException as err:  # noqa: BLE001 - the edge of the process
        message, code = _outcome(err)
    # It has ended: another Ctrl-C may not take its last word and its exit code away.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        sys.stdout.flush()
    except OSError as err:
        _silence(1)
        if isinstance(err, BrokenPipeError):
            message, code = None, _UNREAD
        elif message is None:
            message, code = f"standard output: {err.strerror}", InputError.exit_code
    try:
        if message is not None:
            print(f"robo-eval: {_line(message)}", file=sys.stderr)  # noqa: T201 - its edge as well
        sys.stderr.flush()
    except OSError:
        _silence(2)
    # Nothing is to be collected any more: without this, leaving takes a tenth of the time.
    gc.freeze()
    sys.exit(code)


def _prepare_streams() -> None:
    """Stand in for streams that are closed, and let any name be printed."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # Else the next file that is opened, a database say, would take what is printed.
            while os.open(os.devnull, os.O_RDWR) < number:
                pass
            setattr(sys, name, open(number, "r+" if number else "r", closefd=False))  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        # Names of files may hold bytes that are not text.
        sys.stdout.reconfigure(errors="backslashreplace")


def _silence(stream: int) -> None:
    """Let what is left for a stream go nowhere; Python would try once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def _outcome(err: BaseException) -> tuple[str | None, int]:
    """Why the command did not get to its end, if there is something to say, and its exit code."""
    if isinstance(err, SystemExit) and isinstance(err.__context__, OSError):
        err = err.__context__  # typer ends the program where nobody reads on
    if isinstance(err, _USAGE):
        return _usage(err), InputError.exit_code
    if os.environ.get(TRACEBACK):
        with contextlib.suppress(OSError):
            traceback.print_exception(err)
    return (None, _UNREAD) if isinstance(err, BrokenPipeError) else _meaning_of(err)


def _usage(err: Any) -> str | None:
    """What is wrong with the words of a command; help stands for a command without any."""
    if type(err).__name__ == "NoArgsIsHelpError":
        err.show()
        return None
    path = "robo-eval" if err.ctx is None else err.ctx.command_path
    text = " ".join(err.format_message().split()).rstrip(".?").replace(". Did", "; did")
    verb = path.partition(" ")[2]
    return (f"{verb}: " if verb else "") + f"{text[:1].lower()}{text[1:]}; see: {path} --help"


def _line(message: str) -> str:
    """A message as one line that has an end."""
    # Names of files may hold line breaks, and letters that change the order of what is shown.
    line = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in message)
    if len(line) > _LONGEST:
        line = f"{line[: _LONGEST // 2]}...{line[-_LONGEST // 2 :]}"
    return line


def _meaning_of(err: BaseException) -> tuple[str, int]:
    """What an error says to whoever gave the command, and the exit code it means."""
    if isinstance(err, RoboEvalError):
        return str(err), err.exit_code
    if isinstance(err, typer.Abort):  # what typer makes of it
        err = err.__cause__ or KeyboardInterrupt()
    if isinstance(err, KeyboardInterrupt):
        return _STOPPED, _INTERRUPTED
    if isinstance(err, SystemExit):
        return f"something that it ran ended the program: {said(err)}", InputError.exit_code
    if isinstance(err, EOFError):
        return "standard input ended before everything was answered", InputError.exit_code
    if isinstance(err, RuntimeError) and str(err).startswith("Symlink loop from "):
        # What pathlib makes of ELOOP.
        return f"{str(err)[19:-1]}: {os.strerror(errno.ELOOP)}", InputError.exit_code
    if isinstance(err, OSError) and err.strerror:
        where = f"{os.fsdecode(err.filename)}: " if isinstance(err.filename, str | bytes) else ""
        return f"{where}{err.strerror}", InputError.exit_code
    if isinstance(err, MemoryError):
        return "there is not enough memory for this", InputError.exit_code
    return f"{said(err)} ({TRACEBACK}=1 shows where)", InputError.exit_code
