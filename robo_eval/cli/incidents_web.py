"""`robo-eval incidents serve` and `user`: the web page, and who may use it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from robo_eval.cli.incidents_common import (
    LogOption,
    StationOption,
    opened,
    readable,
    station_of,
    target_of,
)
from robo_eval.cli.incidents_fields import Where, verb
from robo_eval.cli.output import JsonOption, print_json, print_table, say
from robo_eval.core.errors import InputError

if TYPE_CHECKING:
    from robo_eval_incidents.accounts import User

_MOST: Final = 4_000
"""Bytes of a password that are read; more is none."""

UserArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the person.")]
RoleOption = Annotated[
    list[str],
    typer.Option("--role", help="operator, reviewer, auditor or admin; may be repeated."),
]
PasswordOption = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input.")
]

users = typer.Typer(no_args_is_help=True)


def serve(
    *,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="Port.")] = 8500,
    cert: Annotated[Path | None, typer.Option("--cert", help="TLS certificate, PEM.")] = None,
    key: Annotated[Path | None, typer.Option("--key", help="Its private key, PEM.")] = None,
    allow_plain: Annotated[
        bool,
        typer.Option("--allow-plain-http", help="Listen elsewhere without TLS: others can read."),
    ] = False,
    names: Annotated[
        list[str] | None,
        typer.Option("--name", help="Name it is reached by, beside this machine's; may repeat."),
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option("--evidence", metavar="DIR", help="Folder of evidence of a log on a server."),
    ] = None,
    log: LogOption = None,
    station: StationOption = None,
) -> None:
    """Serve the web page of a log; make an account first.

    Anything but this machine needs TLS, because passwords go over the line.

    Example: robo-eval incidents serve --log lab/incidents.db
    """
    if evidence is not None and not evidence.is_dir():
        raise InputError(f"--evidence: {evidence} is not a folder")
    with opened(log, station):
        pass  # a log that cannot be used is named before the server starts
    from robo_eval_incidents.web.serve import serve as serve_page

    serve_page(
        target_of(log),
        host=host,
        port=port,
        station=station_of(station),
        cert=cert,
        key=key,
        allow_plain=allow_plain,
        names=names or (),
        evidence=evidence,
        on_ready=lambda url: say(f"the incident log is at {url} until Ctrl-C"),
    )


def notify(
    settings: Annotated[
        Path, typer.Argument(metavar="FILE", help="Settings (TOML): who is told, and how.")
    ],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be told; send nothing.")
    ] = False,
    log: LogOption = None,
    station: StationOption = None,
    json: JsonOption = False,
) -> None:
    """Tell people what is critical, overdue or to be reported, each once, by webhook and e-mail.

    Run it every minute by cron or a timer. What was sent is a record of the incident.

    Example: robo-eval incidents notify notify.toml --log lab/incidents.db
    """
    from robo_eval_incidents.notify import Settings
    from robo_eval_incidents.notify import notify as tell

    who = Settings.read(settings)
    with opened(log, station) as found:
        told = tell(found, who, dry_run=dry_run)
    if json:
        print_json({way: [one.as_dict(who.page) for one in new] for way, new in told.items()})
        return
    verb = "would be" if dry_run else "was"
    for way, new in told.items():
        say(f"{way}: {verb} told of {len(new)}" if new else f"{way}: nothing new")
        for one in new:
            say(f"  {one.text}")


@users.command("add")
@verb()
def add(
    where: Where,
    name: UserArgument,
    *,
    role: RoleOption,
    password_stdin: PasswordOption = False,
) -> None:
    """Make an account; the password is asked, and never an argument.

    Example: robo-eval incidents user add "R. Example" --role reviewer --role operator
    """
    from robo_eval_incidents.accounts import Accounts

    with opened(where.log, where.station) as found:
        accounts = Accounts(found)
        password = _password(name, from_stdin=password_stdin)
        _say_user(accounts.add(name, password, role, by=where.by), "was made", json=where.json)


@users.command("list")
def list_(*, log: LogOption = None, json: JsonOption = False) -> None:
    """List the accounts.

    Example: robo-eval incidents user list
    """
    from robo_eval_incidents.accounts import Accounts

    with readable(log) as found:
        everybody = Accounts(found).list()
    if json:
        print_json([_as_dict(user) for user in everybody])
    elif not everybody:
        say("there is no account; `robo-eval incidents user add` makes one")
    else:
        rows = [(user.name, ", ".join(sorted(user.roles)) or "closed") for user in everybody]
        print_table("accounts", ("name", "roles"), rows)


@users.command("passwd")
@verb()
def passwd(
    where: Where,
    name: UserArgument,
    *,
    password_stdin: PasswordOption = False,
) -> None:
    """Give an account another password; whoever is logged in with it is logged out.

    Example: robo-eval incidents user passwd "R. Example"
    """
    from robo_eval_incidents.accounts import Accounts

    with opened(where.log, where.station) as found:
        accounts = Accounts(found)
        password = _password(name, from_stdin=password_stdin)
        accounts.set_password(name, password, by=where.by)
        user = accounts.find(name)
    assert user is not None
    _say_user(user, "has another password", json=where.json)


@users.command("roles")
@verb()
def roles(
    where: Where,
    name: UserArgument,
    *,
    role: RoleOption,
) -> None:
    """Give an account other roles, in place of those it has; they hold from its next click on.

    Example: robo-eval incidents user roles "R. Example" --role operator --role auditor
    """
    from robo_eval_incidents.accounts import Accounts

    with opened(where.log, where.station) as found:
        user = Accounts(found).set_roles(name, role, by=where.by)
    _say_user(user, "has other roles", json=where.json)


@users.command("remove")
@verb()
def remove(
    where: Where,
    name: UserArgument,
) -> None:
    """Close an account; its records stay, and whoever is logged in with it is logged out.

    Example: robo-eval incidents user remove "R. Example"
    """
    from robo_eval_incidents.accounts import Accounts

    with opened(where.log, where.station) as found:
        accounts = Accounts(found)
        accounts.remove(name, by=where.by)
        user = accounts.find(name)
    assert user is not None
    _say_user(user, "was closed", json=where.json)


def _password(name: str, *, from_stdin: bool) -> str:
    """A password: asked twice at a terminal, or the first line of standard input.

    Raises:
        InputError: If there is neither.
    """
    if from_stdin:
        try:
            return sys.stdin.buffer.readline(_MOST).decode().rstrip("\r\n")
        except UnicodeDecodeError as err:
            raise InputError("password: is not UTF-8 text") from err
    if not sys.stdin.isatty():
        raise InputError(
            "password: nobody can be asked, because standard input is not a terminal; give it by"
            " --password-stdin"
        )
    asked = typer.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True)
    return str(asked)


def _say_user(user: User, what: str, *, json: bool) -> None:
    if json:
        print_json(_as_dict(user))
    else:
        roles = ", ".join(sorted(user.roles))
        say(f"account {user.name} {what}" + (f": {roles}" if roles else ""))


def _as_dict(user: User) -> dict[str, object]:
    return {"name": user.name, "roles": sorted(user.roles)}
