"""Source text of modules and of what they import, so that a digest can cover behaviour."""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Iterator
from typing import Any

from robo_eval.core.errors import InputError


def sources(module: str, within: tuple[str, ...], *, but: str = "") -> dict[str, str]:
    """Source text of a module and of the modules it imports, directly or not.

    Imports are read from the text, not followed by importing; one that is made by a call at run
    time is not seen.

    Args:
        module: Full name of the module.
        within: Packages and modules that count; what lies elsewhere is left out.
        but: A module that is left out.

    Returns:
        Text by name of the module, sorted.

    Raises:
        InputError: If the source text of a module is not installed.
    """
    return {name: source_of(name) for name in sorted(_closure(module, within, but))}


@functools.cache
def source_of(module: str) -> str:
    """Source text of a module, with line ends that do not depend on the machine.

    Raises:
        InputError: If it is not installed.
    """
    spec = importlib.util.find_spec(module)
    loader: Any = spec.loader if spec is not None else None
    text: str | None = loader.get_source(module) if hasattr(loader, "get_source") else None
    if text is None:
        raise InputError(f"module {module}: its source text is not installed")
    return text.replace("\r\n", "\n")


@functools.cache
def _closure(module: str, within: tuple[str, ...], but: str) -> frozenset[str]:
    found = {module}
    todo = [module]
    while todo:
        for name in _imported(source_of(todo.pop())):
            if name not in found and name != but and name.startswith(within):
                found.add(name)
                todo.append(name)
    return frozenset(found)


def _imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
