"""Which levels there are: those in this folder, and those in the folders of ROBO_EVAL_LEVELS."""

from __future__ import annotations

import importlib
import importlib.util
import operator
import os
import pkgutil
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Final

from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval_sim.novelty.base import Level

FOLDERS_VARIABLE: Final = "ROBO_EVAL_LEVELS"
"""Environment variable with further folders of level files, separated as in PATH."""
_PREFIX: Final = "level_"


def levels() -> dict[int, Level]:
    """Every level by number, in order.

    Raises:
        InputError: If a folder or file of ROBO_EVAL_LEVELS cannot be used, or two levels have
            one number.
    """
    return dict(_levels(os.environ.get(FOLDERS_VARIABLE, "")))


def load_level(number: object) -> Level:
    """The level with this number.

    Raises:
        UnknownNameError: If there is none.
    """
    found = _levels(os.environ.get(FOLDERS_VARIABLE, ""))
    try:
        # Whatever counts as a whole number, numpy's as well; a truth value does not.
        return found[-1 if isinstance(number, bool) else operator.index(number)]  # type: ignore[arg-type]
    except (TypeError, KeyError):
        raise unknown_name("level", number, found) from None


@lru_cache(maxsize=8)
def _levels(folders: str) -> dict[int, Level]:
    found: dict[int, tuple[Level, str]] = {}
    for module in [*_own_modules(), *_modules_of(folders)]:
        origin = str(module.__file__)
        for level in _levels_of(module):
            if level.number in found and found[level.number][1] != origin:
                raise InputError(
                    f"{origin}: level {level.number} is already {found[level.number][0].name!r}"
                    f" in {found[level.number][1]}; choose another number"
                )
            found[level.number] = (level, origin)
    return {number: found[number][0] for number in sorted(found)}


def _own_modules() -> list[ModuleType]:
    package = importlib.import_module("robo_eval_sim.novelty")
    names = sorted(
        info.name for info in pkgutil.iter_modules(package.__path__) if _is_level(info.name)
    )
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


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
