"""Runs the command line again and again: each time a process of its own that has imported the rest.

A line on standard input is a job, as JSON; the answer to it is the exit code. What the command
would import and make first, most of its time, is there before the processes part.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import json
import os
import resource
import signal
import sys
from importlib.machinery import PathFinder
from typing import Any

import cryptography.hazmat.primitives.asymmetric.ed25519  # noqa: F401
import pandas as pd  # noqa: F401
import scipy.stats  # noqa: F401
import sqlalchemy.dialects.sqlite  # noqa: F401
import tables_fit
import typer

import robo_eval.gates.trial
import robo_eval.log.importer
import robo_eval.log.verify
import robo_eval.report.build  # noqa: F401
import robo_eval_incidents.accounts
import robo_eval_incidents.capture
import robo_eval_incidents.checkpoint
import robo_eval_incidents.merge
import robo_eval_incidents.paper
import robo_eval_incidents.standing
import robo_eval_incidents.tables_read
import robo_eval_incidents.verify  # noqa: F401
from robo_eval.cli import app
from robo_eval.cli.table import Table

with contextlib.suppress(ImportError):  # where tests hide what an extra brings
    import pyarrow.parquet  # noqa: F401

NOBODY = 65_534


def hide(packages: list[str]) -> None:
    """Let some packages, which nobody has imported so far, be missing."""
    assert not set(packages) & set(sys.modules)
    find = PathFinder.find_spec

    def found(_: type, name: str, path: Any = None, target: Any = None) -> Any:
        return None if name.partition(".")[0] in packages else find(name, path, target)

    PathFinder.find_spec = classmethod(found)  # type: ignore[method-assign, assignment]


def become(job: dict[str, Any]) -> None:
    """Make this process the one of a job."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        mode = os.O_RDONLY if name == "stdin" else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(job[name], mode), descriptor)
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    if job.get("most_bytes"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["most_bytes"],) * 2)
    # Ends a command that hangs, by a signal nobody handles.
    signal.alarm(job.get("limit_s", 0))
    if job.get("as_nobody") and os.getuid() == 0:
        os.setuid(NOBODY)
    sys.argv = ["robo-eval", *job["arguments"]]
    # Where `python -m` would find modules: the folder of this file is no such place.
    sys.path[0] = job["folder"]
    hide(job.get("lacking", []))
    # Workers import what they are told is the main module, and this file imports nearly all.
    sys.modules["__main__"].__spec__ = importlib.util.find_spec("robo_eval.__main__")


def play() -> int:
    """Run the command; its exit code."""
    try:
        app.main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def watch_tables() -> None:
    """Let a command fail that prints a table which a narrow screen could not hold."""
    laid_out = Table.laid_out

    def watched(table: Table, width: int | None) -> tuple[list[str], list[str]]:
        tables_fit.check(table, laid_out)
        return laid_out(table, width)

    Table.laid_out = watched  # type: ignore[method-assign]


def load(command: Any) -> None:
    """Import the modules of all verbs, which each job would else do by itself."""
    for verb in getattr(command, "commands", {}).values():
        load(verb)


def serve() -> None:
    """Answer jobs until there are no more."""
    watch_tables()
    load(typer.main.get_command(app.app))
    gc.freeze()  # else each process copies what its first collection looks at
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            become(json.loads(line))
            os._exit(play())
        _, status = os.waitpid(child, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    serve()
