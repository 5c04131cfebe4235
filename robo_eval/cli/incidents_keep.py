"""Verbs that make, sign, join, move and upgrade incident logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.incidents_common import (
    ByOption,
    LogOption,
    NameArgument,
    StationOption,
    author,
    noting_robots,
    opened,
    readable,
    station_of,
    target_of,
)
from robo_eval.cli.incidents_fields import Given, Where, verb
from robo_eval.cli.incidents_show import filter_of, filtered
from robo_eval.cli.output import JsonOption, check_folder_of, next_steps, print_json, quoted, say
from robo_eval.core.errors import InputError
from robo_eval.core.wording import counted

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from robo_eval_incidents.checkpoint import Checkpoint
    from robo_eval_incidents.lists import Filter
    from robo_eval_incidents.log import IncidentLog
    from robo_eval_incidents.merge import Merged


KeyOption = Annotated[
    Path | None,
    typer.Option("--key", help="PEM file of the Ed25519 key to sign with; made if missing."),
]


def init(*, log: LogOption = None, station: StationOption = None, json: JsonOption = False) -> None:
    """Make an incident log: a file, or the tables in a PostgreSQL database.

    Examples: robo-eval incidents init --log lab/incidents.db --station lab;
    robo-eval incidents init --log postgresql://robots@db.example/incidents
    """
    from robo_eval.log.sql import shown
    from robo_eval_incidents.log import make_log

    target = target_of(log)
    make_log(target, station=station_of(station))
    name = shown(target)
    if json:
        print_json({"log": name})
        return
    say(f"{name}: an incident log was made")
    next_steps(f"robo-eval incidents add --log {quoted(name)}")


def checkpoint(
    *,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="Where to write it; keep it elsewhere."),
    ],
    key: KeyOption = None,
    stamp: Annotated[
        str | None,
        typer.Option("--stamp", metavar="URL", help="Time-stamping authority (RFC 3161) to ask."),
    ] = None,
    by: ByOption = None,
    log: LogOption = None,
    json: JsonOption = False,
) -> None:
    """Sign how far each station has got; kept elsewhere, it shows what is lost or written anew.

    The key is the one assessments are signed with: ROBO_EVAL_KEY, or a key of your own.

    Example: robo-eval incidents checkpoint --out /media/usb/2026-03.checkpoint
    """
    import os

    from robo_eval.log.signing import default_key
    from robo_eval_incidents.checkpoint import check_stamping, make_checkpoint, write_checkpoint

    by = author(by, json=json)
    if out.exists() or out.is_symlink():
        raise InputError(f"{out}: exists already; a checkpoint is never written over")
    check_folder_of(out)
    if not os.access(out.absolute().parent, os.W_OK):
        raise InputError(f"{out}: cannot be written into {out.absolute().parent}")
    if stamp is not None:
        check_stamping(stamp, "--stamp")
    place = key or default_key()
    if out.resolve() == place.resolve():
        raise InputError(f"{out}: is the key to sign with; write the checkpoint to another file")
    with opened(log) as found:
        with found.database.writing():
            pass  # a log that cannot be written is named before a key is made
        private = _key(place)
        _warn_of_key(found.database.path, place)
        made = make_checkpoint(found, private, by=by)
        write_checkpoint(made, out)
        if stamp is not None:
            made = _stamped(found, made, stamp, out)
    _say_checkpoint(made, out, json=json)


def _warn_of_key(log: Path | None, key: Path) -> None:
    """Say so if whoever copies a log gets the key that signs for it as well."""
    if log is not None and key.resolve().parent == log.resolve().parent:
        typer.echo(
            f"robo-eval: warning: {key} lies beside the log: who can copy the folder has the key,"
            " and can sign another log with it; keep it elsewhere",
            err=True,
        )


def _stamped(log: IncidentLog, made: Checkpoint, url: str, out: Path) -> Checkpoint:
    from robo_eval_incidents.checkpoint import stamp, write_checkpoint

    stamped = stamp(log, made, url)
    write_checkpoint(stamped, out)
    return stamped


def _say_checkpoint(made: Checkpoint, out: Path, *, json: bool) -> None:
    heads = {name: sequence for name, (sequence, _) in made.heads.items()}
    if json:
        print_json(
            {
                "file": str(out),
                "sha256": made.sha256,
                "signed_by": made.signer,
                "stations": heads,
                "stamped": made.stamp is not None,
            }
        )
        return
    records = sum(heads.values())
    say(f"{out}: {records} records of {counted(len(heads), 'station')}")
    say(f"signed by key {made.signer}; keep the file where whoever can write the log cannot")


# Bringing together -----------------------------------------------------------------------------


def merge(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...", help="Logs, by path or URL, or .jsonl files of records."
        ),
    ],
    *,
    log: LogOption = None,
    json: JsonOption = False,
) -> None:
    """Take the records of stations that were apart into the log; every chain stays as it is.

    May be done again at any time: what is there already is left alone. A source of which two
    different records have one place is refused: somebody wrote its chain anew.

    Example: robo-eval incidents merge /media/usb/incidents.db --log lab/incidents.db
    """
    from robo_eval.log.sql import shown
    from robo_eval_incidents.merge import check_source
    from robo_eval_incidents.merge import merge as merge_into

    for source in sources:
        check_source(source)  # before a log is made for it
    with opened(log, make=True) as found:
        done = [(shown(source), merge_into(source, found)) for source in sources]
    if json:
        print_json(
            [
                {
                    "source": name,
                    "added": merged.added,
                    "known": merged.known,
                    "files": list(merged.files),
                    "left": list(merged.left),
                }
                for name, merged in done
            ]
        )
        return
    for name, merged in done:
        _say_merged(name, merged)


def _say_merged(name: str, merged: Merged) -> None:
    added = sum(merged.added.values())
    say(f"{name}: {counted(added, 'record')} added" if added else f"{name}: nothing new")
    for station, count in merged.added.items():
        say(f"  {station}: {count}")
    if files := len(merged.files):
        say(f"  {counted(files, 'file')} of evidence copied")
    for reason in merged.left:
        say(f"  not copied: {reason}")


# Tables ----------------------------------------------------------------------------------------


@verb()
def import_(
    where: Where,
    table: Annotated[Path, typer.Argument(metavar="FILE", help="CSV or JSON file.")],
    *,
    columns: Annotated[
        Path | None,
        typer.Option("--map", "-m", help="Map (YAML) of a table with other columns: see the docs."),
    ] = None,
    robot: Annotated[
        str | None, typer.Option("--robot", "-r", help="Robot of lines that name none.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="NAME", help="What the table is; goes before its ids."),
    ] = None,
    as_corrections: Annotated[
        bool,
        typer.Option("--as-corrections", help="Correct what is in the log as the table has it."),
    ] = False,
) -> None:
    """File the incidents of a table as new reports; one bad line keeps all of them out.

    Columns are those `incidents export` writes; time, severity, description and source_id are
    enough. What was imported before is not added again.

    Example: robo-eval incidents import last-year.csv --robot arm_1 --by NAME
    """
    from robo_eval_incidents.incident_map import IncidentMap
    from robo_eval_incidents.tables_read import checked_table, import_reports

    of = None if columns is None else IncidentMap.read(columns)
    # Before a log is made for it.
    reported = checked_table(table, robot=robot, source=source, columns=of)
    robots = sorted({one.report.robot for one in reported})
    with opened(where.log, where.station, make=True) as found, noting_robots(found, *robots):
        done = import_reports(
            found,
            table,
            by=where.by,
            robot=robot,
            source=source,
            as_corrections=as_corrections,
            columns=of,
        )
    if where.json:
        print_json({"added": done.added, "known": done.known, "corrected": done.corrected})
        return
    count = len(done.added)
    what = "1 incident was" if count == 1 else f"{count} incidents were"
    say(f"{table}: {what} added, {done.known} known")
    if done.added:
        say(f"  {' to '.join(dict.fromkeys((done.added[0], done.added[-1])))}")
    if done.corrected:
        say(f"  corrected: {', '.join(done.corrected)}")


@filtered
def export(
    given: Given,
    *,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help=".csv, .json, .jsonl, or .html to print."),
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    log: LogOption = None,
    json: JsonOption = False,
) -> None:
    """Write incidents as they stand as CSV, JSON or a page to print, or every record as .jsonl.

    CSV and JSON can be imported, records can be merged.

    Example: robo-eval incidents export --out march.csv --since 2026-03-01T00:00:00Z
    """
    wanted = filter_of(given)
    with readable(log) as found:
        if out.suffix.lower() == ".html":
            count = None
            _write_paper(found, out, wanted, force=force)
        else:
            from robo_eval_incidents.lists import check_robot
            from robo_eval_incidents.tables import export as write

            check_robot(found, *given["robot"] or ())
            count = write(found, out, wanted, force=force)
    if json:
        print_json({"file": str(out), "rows": count})
        return
    what = "record" if out.suffix.lower() == ".jsonl" else "incident"
    say(f"{out}: written" if count is None else f"{out}: {counted(count, what)} written")


def _write_paper(log: IncidentLog, out: Path, wanted: Filter, *, force: bool) -> None:
    from dataclasses import replace

    from robo_eval_incidents.lists import Filter
    from robo_eval_incidents.paper import write_paper

    if replace(wanted, since_ns=None, until_ns=None) != Filter():
        raise InputError(f"{out}: a page to print is of a period; only --since and --until fit it")
    if not force and (out.exists() or out.is_symlink()):
        raise InputError(f"{out}: exists already; choose another name, or replace it: --force")
    write_paper(log, out, wanted.since_ns, wanted.until_ns)


@verb()
def pack(
    where: Where,
    incident: NameArgument,
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="File to write; ends in .zip.")
    ],
    trial: Annotated[
        Path | None,
        typer.Option("--trial", metavar="DIR", help="Trial it happened in, for the settings."),
    ] = None,
    rules: Annotated[
        Path | None, typer.Option("--rules", metavar="DIR", help="Rules of your own, if any.")
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option("--evidence", metavar="DIR", help="Folder of evidence of a log on a server."),
    ] = None,
    key: KeyOption = None,
) -> None:
    """Write an incident to one signed file: its records, evidence, settings and rules.

    `robo-eval verify FILE` says whether its parts still tell the same story: it makes drafts again
    from the trace, and how the incident stands from its records. Without --trial the settings are
    those of the trial that the log lies in, if it does.

    Example: robo-eval incidents pack lab/2 --out lab-2.zip
    """
    from robo_eval.log.directory import TrialDirectory, is_trial
    from robo_eval_incidents.pack import pack as write

    if out.suffix.lower() != ".zip":
        raise InputError(f"{out}: the name must end in .zip")
    if out.exists() or out.is_symlink():
        raise InputError(f"{out}: exists already; choose another name")
    if trial is not None:
        TrialDirectory.open(trial)  # before a key is made
    with readable(where.log) as found:
        log = found.database.path
        if trial is None and log is not None and is_trial(log.parent):
            trial = log.parent
        name = found.incident(incident).name
        done = write(
            found, name, out, key=_key(key), by=where.by, trial=trial, rules=rules,
            evidence=evidence,
        )  # fmt: skip
    if where.json:
        print_json(
            {
                "file": str(out),
                "incident": name,
                "records": done.records,
                "files": list(done.files),
                "left": list(done.left),
                "settings": done.settings,
                "signed_by": done.signer,
            }
        )
        return
    say(
        f"{out}: {counted(done.records, 'record')} and {counted(len(done.files), 'file')} of {name}"
    )
    for reason in done.left:
        say(f"  not in it: {reason}")
    say(f"signed by key {done.signer}; `robo-eval verify {out}` checks it")


def _key(named: Path | None) -> Ed25519PrivateKey:
    """The key to sign with; one that was made on the way is mentioned."""
    from robo_eval.log.signing import default_key, open_key

    place = named or default_key()
    private, is_new = open_key(place)
    if is_new:
        typer.echo(f"robo-eval: a key to sign with was made: {place}", err=True)
    return private


def schema() -> None:
    """Print the JSON Schema of exported and imported tables.

    Example: robo-eval incidents schema
    """
    from robo_eval_incidents.tables import schema as made

    print_json(made())
