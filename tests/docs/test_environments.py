"""The pages of our tasks hold what docstrings of environments and specifications say.

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
BEGIN_CONSTANTS = BEGIN.replace("docstring", "specification")
END_CONSTANTS = "<!-- end of constants -->"


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


def constants_of(env: str) -> str:
    """The table of the constants of a task."""
    lines = ["| constant | unit | nominal | from, to | what it is |", "|---|---|---|---|---|"]
    for one in tasks()[env].constants:
        span = f"{one.low:g}, {one.high:g}"
        about = one.about[0].lower() + one.about[1:]
        lines.append(f"| `{one.name}` | {one.unit} | {one.nominal:g} | {span} | {about} |")
    return "\n".join(lines)


def parts_of(path: Path, begin: str = BEGIN, end: str = END) -> tuple[str, str, str]:
    before, rest = path.read_text(encoding="utf-8").split(begin)
    middle, after = rest.split(end)
    return before + begin, middle.strip(), end + after


def test_there_are_such_pages() -> None:
    assert "RoboEval/CartPole3D-v0" in dict(written())


@pytest.mark.parametrize(("env", "path"), written())
def test_a_page_holds_the_docstring(env: str, path: Path) -> None:
    assert parts_of(path)[1] == documented(env), f"run {__file__} to write the page anew"


@pytest.mark.parametrize(("env", "path"), written())
def test_a_page_lists_the_constants(env: str, path: Path) -> None:
    if tasks()[env].constants:
        listed = parts_of(path, BEGIN_CONSTANTS, END_CONSTANTS)[1]
        assert listed == constants_of(env), f"run {__file__} to write the page anew"


@pytest.mark.parametrize("env", dict(written()))
def test_a_docstring_has_what_the_task_declares(env: str) -> None:
    text, spec = documented(env), tasks()[env]
    for heading in ("## Action", "## Observation", "## Start", "## Reward and end"):
        assert heading in text
    for number, action in enumerate(spec.actions):
        assert f"| {number} | {action} |" in text


if __name__ == "__main__":
    for task, page in written():
        for text, marks in (
            (documented(task), (BEGIN, END)),
            (constants_of(task), (BEGIN_CONSTANTS, END_CONSTANTS)),
        ):
            first, _, last = parts_of(page, *marks)
            page.write_text(f"{first}\n\n{text}\n\n{last}", encoding="utf-8")
