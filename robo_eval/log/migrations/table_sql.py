"""Changing the SQL that made a table, and nothing in it but what has to change.

SQLite cannot drop a constraint, so a table is made anew. What describes a table in general, such
as SQLAlchemy's reflection, knows no triggers, expression indexes, collations or unnamed checks and
would lose those that somebody added. So the text SQLite keeps is edited instead.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from robo_eval.core.errors import TrialDirectoryError

_TOKEN: Final = re.compile(
    r"""
    (?P<space> \s+ | --[^\n]* | /\*.*?(?:\*/|\Z) )
  | (?P<word> (?!\d)[\w$]+ )
  | (?P<quoted> "(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\] | '(?:[^']|'')*' )
  | (?P<other> [\d.]+ | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COPY: Final = "robo_eval_copy_of_rows"


def without_not_null(sql: str, columns: Collection[str]) -> str:
    """The text of a CREATE TABLE in which some columns may be missing.

    Args:
        sql: As it stands in `sqlite_schema`.
        columns: The columns whose NOT NULL goes; everything else stays to the letter.
    """
    cuts: list[tuple[int, int]] = []
    for tokens in _definitions(sql):
        if _name(tokens[0]) in columns:
            cuts += _not_null(tokens)
    for start, end in reversed(cuts):
        # Not a line break, which may end a comment.
        sql = sql[:start].rstrip(" \t") + sql[end:]
    return sql


def _definitions(sql: str) -> Iterator[list[re.Match[str]]]:
    """The parts between the commas of a table, without white space, comments and parentheses."""
    depth = 0
    part: list[re.Match[str]] = []
    for token in _TOKEN.finditer(sql):
        text = token[0]
        if token["space"]:
            continue
        if text == ")":
            depth -= 1
        if depth == 1 and text not in {"(", ")", ","}:
            part.append(token)
        if part and ((depth == 1 and text == ",") or depth == 0):
            yield part
            part = []
        if text == "(":
            depth += 1


def _name(token: re.Match[str]) -> str:
    text = token[0]
    return (text[1:-1] if token["quoted"] else text).lower()


def _not_null(tokens: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Where a column is said to be NOT NULL, with the name and the conflict clause of that."""
    words = ["" if token["quoted"] else token[0].upper() for token in tokens]
    for at in range(1, len(tokens) - 1):
        if words[at : at + 2] != ["NOT", "NULL"]:
            continue
        first = at - 2 if words[at - 2] == "CONSTRAINT" and at > 2 else at
        last = at + 4 if words[at + 2 : at + 4] == ["ON", "CONFLICT"] else at + 1
        yield tokens[first].start(), tokens[last].end()


def rebuild(connection: Connection, table: str, nullable: Collection[str]) -> None:
    """Make a table anew in which some columns may be missing, with all that belongs to it.

    Rows, indexes, triggers, constraints and generated columns stay. Runs in the transaction of
    the caller.

    Args:
        connection: An open transaction on an SQLite database.
        table: Name of the table.
        nullable: The columns whose NOT NULL goes.

    Raises:
        TrialDirectoryError: If something that was added to the table cannot be made again.
    """
    run = connection.exec_driver_sql
    stored = run(
        "SELECT type, name, sql FROM sqlite_schema"
        " WHERE lower(tbl_name) = ? AND sql IS NOT NULL ORDER BY type = 'table' DESC, rowid",
        (table,),
    ).fetchall()
    (_, _, made), *others = [row for row in stored if row[0] in ("table", "index", "trigger")]
    # Those that are computed cannot be written.
    ordinary = [row[1] for row in run(f"PRAGMA table_xinfo({table})") if not row[6]]
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in ordinary)
    # The new table has the old one's name from the start: a CHECK may name it, and renaming a
    # table would look into views, which may be broken.
    run(f"CREATE TABLE {_COPY} AS SELECT {names} FROM {table}")  # noqa: S608 - names are quoted
    run(f"DROP TABLE {table}")
    _again(connection, "table", table, without_not_null(made, nullable))
    run(f"INSERT INTO {table} ({names}) SELECT {names} FROM {_COPY}")  # noqa: S608
    run(f"DROP TABLE {_COPY}")
    # Last, so that no trigger sees the rows come back.
    for kind, name, sql in others:
        _again(connection, kind, name, sql)


def _again(connection: Connection, kind: str, name: str, sql: str) -> None:
    try:
        connection.exec_driver_sql(sql)
    except SQLAlchemyError as err:
        file = next(iter(connection.exec_driver_sql("PRAGMA database_list")))[2]
        reason = str(getattr(err, "orig", None) or err)
        raise TrialDirectoryError(
            f"{file}: {kind} {name!r} cannot be made again after the upgrade ({reason}); nothing"
            " was changed; drop it, upgrade, and add it again"
        ) from err
