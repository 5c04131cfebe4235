"""The pages of our tasks hold what the docstrings of their environments say.

This file, run as a program, writes it there.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

from robo_eval.core.task import tasks

PAGES = Path(__file__).parents[2] / "docs/environments"
BEGIN = "<!-- begin: tests/docs/test_environments.py writes this from the docstring -->"
END = "<!-- end -->"


def documented(env: str) -> str:
    """What the docstring of an environment says between its first line and its arguments."""
    module, _, name = tasks()[env].environment.partition(":")
    text = inspect.getdoc(getattr(importlib.import_module(module), name)) or ""
    return text.partition("\n")[2].partition("\nArgs:\n")[0].strip()


def written() -> list[tuple[str, Path]]:
    """Tasks with such a page."""
    found = []
    for env, spec in tasks().items():
        path = PAGES / f"{spec.environment.split('.')[-2]}.md"  # named as the task's folder
        if path.exists() and BEGIN in path.read_text(encoding="utf-8"):
            found.append((env, path))
    return found


def parts_of(path: Path) -> tuple[str, str, str]:
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    middle, after = rest.split(END)
    return before + BEGIN, middle.strip(), END + after


def test_there_are_such_pages() -> None:
    assert "RoboEval/CartPole3D-v0" in dict(written())


@pytest.mark.parametrize(("env", "path"), written())
def test_a_page_holds_the_docstring(env: str, path: Path) -> None:
    assert parts_of(path)[1] == documented(env), f"run {__file__} to write the page anew"


@pytest.mark.parametrize("env", dict(written()))
def test_a_docstring_has_what_the_task_declares(env: str) -> None:
    text, spec = documented(env), tasks()[env]
    for heading in ("## Action", "## Observation", "## Start", "## Reward and end"):
        assert heading in text
    for number, action in enumerate(spec.actions):
        assert f"| {number} | {action} |" in text


if __name__ == "__main__":
    for task, page in written():
        first, _, last = parts_of(page)
        page.write_text(f"{first}\n\n{documented(task)}\n\n{last}", encoding="utf-8")
