"""The command's help shows every verb in a group."""

from __future__ import annotations

import typer

from robo_eval.cli.app import GROUPS, app


def test_every_verb_is_in_one_group_and_shown_there(cli) -> None:
    verbs = sorted(typer.main.get_group(app).commands)
    assert sorted(name for names in GROUPS.values() for name in names) == verbs
    shown = cli("--help")
    assert shown.code == 0
    for group, names in GROUPS.items():
        part = shown.out.partition(f"\n{group}:\n")[2].partition("\n\n")[0]
        assert tuple(line.split()[0] for line in part.splitlines()) == tuple(names)
