"""`robo-eval serve-policy`: a policy on this machine plays for robots and simulators elsewhere."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import Annotated, Any

import typer

from robo_eval.agents import load_policy
from robo_eval.cli.output import say
from robo_eval.core.door import json_of
from robo_eval.core.errors import InputError
from robo_eval.core.stop_signals import stop_signals


def serve_policy(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A baseline agent, or with --factory any name.")
    ],
    *,
    factory: Annotated[
        str | None,
        typer.Option(metavar="MODULE:CALLABLE", help="What makes the policy, as in a plan."),
    ] = None,
    kwargs: Annotated[
        str, typer.Option(metavar="JSON", help="Keywords of the agent or the factory.")
    ] = "{}",
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen at; 0 takes a free one.")
    ] = 8765,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="ROBO_EVAL_POLICY_TOKEN",
            show_default=False,
            help="Secret that clients must show; others see it on a command line, so better the"
            " environment variable.",
        ),
    ] = None,
) -> None:
    """Serve a policy until Ctrl-C, for plans that name it by its url.

    A plan plays it with `policies: [{name: mine, factory: "robo_eval.agents.remote:RemotePolicy",
    kwargs: {url: "ws://127.0.0.1:8765"}}]`.

    Example: robo-eval serve-policy balancer
    """
    from robo_eval.agents.serve import PolicyServer
    from robo_eval.agents.wire import check_token

    keywords = _keywords(kwargs)
    # What a policy prints goes aside: our standard output is read by programs.
    out = sys.stdout
    with stop_signals() as stop, contextlib.redirect_stdout(sys.stderr):
        server = PolicyServer(
            lambda: load_policy(name, factory, keywords),
            host=host,
            port=port,
            token=check_token(token),
            announce=lambda line: typer.echo(line, err=True),
        )
        server.start()
        with contextlib.redirect_stdout(out):
            chunk = "one action" if server.chunk == 1 else f"up to {server.chunk} actions"
            say(f"serving {server.name} at {server.url}, {chunk} an answer; Ctrl-C ends it")
            say(f"digest {server.digest}")
            out.flush()
        while stop.signal_name is None:
            time.sleep(0.1)
        is_done = server.stop()
    if not is_done:
        # A thread that is inside the policy's code would keep the process alive.
        out.flush()
        os._exit(0)


def _keywords(text: str) -> dict[str, Any]:

    try:
        keywords = json_of(text)
    except ValueError as err:
        raise InputError(f"--kwargs is not JSON: {err}") from err
    if not isinstance(keywords, dict):
        raise InputError(f'--kwargs must be a JSON object such as {{"a": 1}}, given {text[:80]}')
    return keywords
