"""What others write down and rely on: verbs, options, keys, columns, functions, ids and words.

`public_names.json` beside this file holds the names that are frozen. A new name harms nobody and
fails nothing; this adds all new ones to the file:

    .venv/bin/python tests/golden/test_public_names.py
"""

from __future__ import annotations

import enum
import importlib
import inspect
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args, get_origin

import pytest

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("public_names.json")
PACKAGES = (
    "robo_eval", "robo_eval_sim", "robo_eval_incidents", "robo_eval_robot", "robo_eval_twin",
)  # fmt: skip
DOCUMENTED = ("README.md", "docs/*.md", "examples/**/*.py", "examples/**/*.md")


def options() -> Iterator[str]:
    """Verbs with their options and arguments, as a line is typed."""
    import typer.main

    from robo_eval.cli.app import app

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[str]:
        yield " ".join(words)
        for parameter in command.params:
            for name in (*parameter.opts, *parameter.secondary_opts):
                yield " ".join((*words, name if name.startswith("-") else name.upper()))
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*words, name))

    yield from walk(typer.main.get_command(app), ("robo-eval",))


def exit_codes() -> Iterator[str]:
    """What a command ends with, by the error that ends it."""
    from robo_eval.core.errors import RoboEvalError

    found = [RoboEvalError]
    for error in found:
        found += error.__subclasses__()
        if error.__module__ == RoboEvalError.__module__:
            yield f"{error.__name__} {error.exit_code}"


def keys_of(model: Any, place: str = "") -> Iterator[str]:
    """Keys of a file that a model reads, and the words that may stand there."""
    for name, field in model.model_fields.items():
        path = f"{place}{field.alias or name}"
        yield path
        yield from _keys_in(field.annotation, path)


def _keys_in(hint: Any, path: str) -> Iterator[str]:
    if hasattr(hint, "__value__"):
        hint = hint.__value__
    if get_origin(hint) is Literal:
        yield from (f"{path} = {word}" for word in get_args(hint))
    elif isinstance(hint, type) and issubclass(hint, enum.Enum):
        yield from (f"{path} = {word.value}" for word in hint)
    elif hasattr(hint, "model_fields"):
        yield from keys_of(hint, f"{path}.")
    else:
        for inner in get_args(hint):
            yield from _keys_in(inner, path)


def map_keys(model: Any) -> Iterator[str]:
    """Keys of an import's map: what it says of any column and of any end is there once."""
    for name in keys_of(model):
        found = re.sub(r"^stops\.\w+\.", "stops.END.", re.sub(r"^columns\.", "columns.NAME.", name))
        yield found.replace("columns.NAME.take = ", "columns.NAME.take.")


def functions(known: Iterable[str]) -> Iterator[str]:
    """Functions and classes that are exported, documented or frozen, with what they take and have.

    Where a package is not installed that a module needs, its frozen names count as there.
    """
    wanted = {
        f"{module}:{name}"
        for module in sorted(_modules())
        for name in getattr(_imported(module), "__all__", ())
    }
    text = "\n".join(
        path.read_text(encoding="utf-8") for glob in DOCUMENTED for path in ROOT.glob(glob)
    )
    for module, names in re.findall(r"from (robo_eval[\w.]*) import ([\w, ]+)", text):
        wanted |= {f"{module}:{name.strip()}" for name in names.split(",") if name.strip()}
    wanted |= set(re.findall(r"\b(robo_eval[\w.]*:[A-Za-z]\w+)", text))
    wanted |= {line.split()[0] for line in known}
    for target in sorted(wanted):
        module, _, name = target.partition(":")
        if _imported(module) is None:
            yield from (line for line in known if line.split()[0] == target)
            continue
        found = getattr(_imported(module), name, None)
        if found is None or inspect.ismodule(found):
            continue
        yield target
        names: set[str] = set()
        if isinstance(found, type):
            ours = [one for one in found.__mro__ if one.__module__.split(".")[0] in PACKAGES]
            names = {name for one in ours for name in (*vars(one), *_annotations(one))}
            yield from (f"{target} .{name}" for name in names if not name.startswith("_"))
        if callable(found) and not isinstance(found, enum.EnumType):  # that takes what Python says
            # What a class takes and has under one name is there once.
            yield from (f"{target} {one}" for one in _parameters(found) if one not in names)


def _parameters(function: Any) -> list[str]:
    try:
        given = inspect.signature(function).parameters
    except ValueError:
        return []
    left_out = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [name for name, one in given.items() if one.kind not in left_out]


def _annotations(kind: type) -> Iterable[str]:
    return vars(kind).get("__annotations__", {})


def _modules() -> Iterator[str]:
    """Those that say what they export."""
    for package, path in sources():
        if "\n__all__" in path.read_text(encoding="utf-8"):
            parts = path.relative_to(_folder(package)).with_suffix("").parts
            yield ".".join((package, *(part for part in parts if part != "__init__")))


def _folder(package: str) -> Path:
    return Path(importlib.import_module(package).__path__[0])


def sources() -> Iterator[tuple[str, Path]]:
    """Our files, each with its package."""
    for package in PACKAGES:
        yield from ((package, path) for path in sorted(_folder(package).rglob("*.py")))


def _imported(name: str) -> ModuleType | None:
    """A module; none if another package is missing, or if there is no such module any more."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as err:
        if err.name and err.name.split(".")[0] in PACKAGES:
            return ModuleType(name)
        return None


def environments() -> Iterator[str]:
    """Gymnasium ids, with the keywords of `gymnasium.make`."""
    import gymnasium

    import robo_eval_sim.registration

    robo_eval_sim.registration.register_environments()
    for name, spec in gymnasium.registry.items():
        if name.startswith("RoboEval/"):
            yield name
            module, _, attribute = str(spec.entry_point).partition(":")
            entry = getattr(importlib.import_module(module), attribute)
            yield from (f"{name} {parameter}" for parameter in _parameters(entry))


def words() -> Iterator[str]:
    """Words that get into rows, records and messages."""
    from robo_eval.agents import agent_names

    for module in (
        "robo_eval.core.kinds", "robo_eval_incidents.words", "robo_eval_incidents.accounts",
        "robo_eval_robot.guard", "robo_eval_robot.guard_checks", "robo_eval_robot.recording",
    ):  # fmt: skip
        for name, kind in vars(importlib.import_module(module)).items():
            if isinstance(kind, type) and issubclass(kind, enum.Enum) and kind.__module__ == module:
                yield from (f"{name} {word.value}" for word in kind)
    yield from (f"agent {name}" for name in agent_names())


def evidence() -> Iterator[str]:
    """Columns of the tables of a trial, by file."""
    from robo_eval.core import episode
    from robo_eval.log import evidence, evidence_read, notes

    tables = {}
    for kind, form in evidence.FORMS.items():
        must, may = evidence_read.columns_of(form)
        tables[kind] = [*must, *may]
    for kind, header in notes._HEADERS.items():
        tables[kind] = [*tables.get(kind, ()), *header]
    tables["episodes"] = list(episode.COLUMNS)
    for kind, columns in tables.items():
        yield from (f"{kind}.csv {column}" for column in columns)


def variables() -> Iterator[str]:
    """Environment variables that are looked at."""
    for _, path in sources():
        yield from re.findall(r"\"(ROBO_EVAL_[A-Z_]+)\"", path.read_text(encoding="utf-8"))


def public_names(known: dict[str, list[str]]) -> dict[str, list[str]]:
    """Every public name of the product as it is, by kind."""
    from robo_eval.core.plan import TrialPlan
    from robo_eval.gates.profile import Profile
    from robo_eval.log.bag_map import TopicMap
    from robo_eval.log.cells import UNITS
    from robo_eval.log.column_map import ColumnMap
    from robo_eval.study.suite import Suite
    from robo_eval_incidents.clocks import Clock
    from robo_eval_incidents.hours_table import HoursMap
    from robo_eval_incidents.incident_map import IncidentMap
    from robo_eval_incidents.rule import RuleFile
    from robo_eval_incidents.tables import Row
    from robo_eval_robot.config import RobotConfig

    found = {
        "environment variables": variables(),
        "errors and exit codes": exit_codes(),
        "files: clocks of incidents": ("since", *keys_of(Clock)),
        "files: incident rules": keys_of(RuleFile),
        "files: incident table": keys_of(Row),
        "files: map of hours": keys_of(HoursMap),
        "files: map of incidents": keys_of(IncidentMap),
        "files: map of recordings": map_keys(TopicMap),
        "files: map of tables": (
            *map_keys(ColumnMap),
            *(f"columns.NAME.unit.{unit}" for unit in UNITS),
        ),
        "files: plan": keys_of(TrialPlan),
        "files: profile": keys_of(Profile),
        "files: robot": keys_of(RobotConfig),
        "files: suite": keys_of(Suite),
        "files: evidence": evidence(),
        "functions": functions(known.get("functions", [])),
        "Gymnasium": environments(),
        "verbs": options(),
        "words": words(),
    }
    return {kind: sorted(set(names)) for kind, names in found.items()}


def frozen() -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def live() -> dict[str, list[str]]:
    return public_names(frozen())


@pytest.mark.parametrize("kind", frozen())
def test_every_frozen_name_is_still_there(live: dict[str, list[str]], kind: str) -> None:
    gone = [name for name in frozen()[kind] if name not in live.get(kind, [])]
    assert not gone, (
        f"{kind}: somebody may use {', '.join(gone)}. If it goes on purpose: say so in CHANGELOG.md"
        f" with what replaces it, and delete its line in {FILE.name}"
    )


def main() -> None:
    """Add what is new to the file; what is gone stays until somebody deletes it."""
    known = frozen() if FILE.exists() else {}
    new = public_names(known)
    whole = {kind: sorted({*known.get(kind, []), *new.get(kind, [])}) for kind in {**known, **new}}
    text = json.dumps(dict(sorted(whole.items())), indent=1, ensure_ascii=False)
    FILE.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
