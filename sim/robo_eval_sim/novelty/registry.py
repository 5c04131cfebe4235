"""Which levels a task has: those in its folder, and those in the folders of ROBO_EVAL_LEVELS."""

from __future__ import annotations

import importlib
import importlib.util
import operator
import os
import pkgutil
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.core.task import task_named
from robo_eval_sim.novelty.base import Level

FOLDERS_VARIABLE: Final = "ROBO_EVAL_LEVELS"
"""Environment variable with further folders of level files, separated as in PATH."""
_PREFIX: Final = "level_"


def levels(task: str = "") -> dict[int, Level]:
    """Every level of a task by number, in order.

    Args:
        task: Gymnasium id; without one the task that is meant then.

    Raises:
        InputError: If a folder or file of ROBO_EVAL_LEVELS cannot be used, or two levels have
            one number.
        UnknownNameError: If there is no such task.
    """
    return dict(cast("Mapping[int, Level]", task_named(task).levels()))


def load_level(number: Any, task: str = "") -> Level:
    """The level of a task with this number.

    Raises:
        UnknownNameError: If there is none.
    """
    found = levels(task)
    try:
        # Whatever counts as a whole number, numpy's as well; a truth value does not.
        return found[-1 if isinstance(number, bool) else operator.index(number)]
    except (TypeError, KeyError):
        raise unknown_name("level", number, found) from None


def levels_in(package: str, task: str) -> dict[int, Level]:
    """The levels of a task by number: those in a package, and those in ROBO_EVAL_LEVELS.

    Args:
        package: Its modules whose names begin with `level_` are looked through.
        task: Gymnasium id. Of files elsewhere a level counts that names it; one that names no task
            is of the task that is meant then.
    """
    return dict(_levels(package, task, os.environ.get(FOLDERS_VARIABLE, "")))


@lru_cache(maxsize=32)
def _levels(package: str, task: str, folders: str) -> dict[int, Level]:
    found: dict[int, tuple[Level, str]] = {}
    for module in [*_own_modules(package), *_modules_of(folders)]:
        origin = str(module.__file__)
        for level in _levels_of(module):
            if not module.__name__.startswith(f"{package}.") and task_named(level.task).env != task:
                continue
            if level.number in found and found[level.number][1] != origin:
                raise InputError(
                    f"{origin}: level {level.number} is already {found[level.number][0].name!r}"
                    f" in {found[level.number][1]}; choose another number"
                )
            found[level.number] = (level, origin)
    return {number: found[number][0] for number in sorted(found)}


def _own_modules(package: str) -> list[ModuleType]:
    path = importlib.import_module(package).__path__
    names = sorted(info.name for info in pkgutil.iter_modules(path) if _is_level(info.name))
    return [importlib.import_module(f"{package}.{name}") for name in names]


def _is_level(name: str) -> bool:
    return name.startswith(_PREFIX)


def _modules_of(folders: str) -> list[ModuleType]:
    modules = []
    for entry in filter(None, folders.split(os.pathsep)):
        folder = Path(entry)
        if not folder.is_dir():
            raise InputError(
                f"{FOLDERS_VARIABLE}: {entry!r} is not a folder; name folders that hold"
                f" {_PREFIX}*.py files, separated by {os.pathsep!r}"
            )
        modules += [_load(path) for path in sorted(folder.glob(f"{_PREFIX}*.py"))]
    return modules


def _load(path: Path) -> ModuleType:
    name = f"robo_eval_level_files.{path.stem}_{abs(hash(path.resolve()))}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path}: not a Python file that can be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as err:
        del sys.modules[name]
        raise InputError(f"{path}: {type(err).__name__}: {err}") from err
    if not list(_levels_of(module)):
        raise InputError(f"{path}: holds no level; decorate a subclass of Level with @novelty")
    return module


def _levels_of(module: ModuleType) -> list[Level]:
    return [
        thing()
        for thing in vars(module).values()
        if isinstance(thing, type)
        and issubclass(thing, Level)
        and "number" in vars(thing)
        and thing.__module__ == module.__name__
    ]
