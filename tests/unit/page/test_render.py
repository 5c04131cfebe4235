"""A page is made whether or not compiled templates can be kept."""

from __future__ import annotations

import sys
from pathlib import Path

import jinja2
import pytest

from robo_eval.page.render import Kept


@pytest.fixture(autouse=True)
def _writing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


def made(folder: Path, text: str) -> str:
    loader = jinja2.DictLoader({"page": text})
    env = jinja2.Environment(loader=loader, autoescape=True, bytecode_cache=Kept(str(folder)))
    return env.get_template("page").render(name="<b>")


@pytest.mark.parametrize("place", ["kept", "not/there"])
def test_templates_are_kept_where_there_is_a_place(tmp_path: Path, place: str) -> None:
    folder = tmp_path / place
    for text, said in (("a {{ name }}", "a &lt;b&gt;"), ("b {{ name }}", "b &lt;b&gt;")):
        for _ in range(2):
            assert made(folder, text) == said
    assert folder.exists() == (place == "kept")


@pytest.mark.parametrize("damage", [b"", b"not what was kept", None])
def test_a_damaged_copy_is_made_anew(tmp_path: Path, damage: bytes | None) -> None:
    assert made(tmp_path, "a {{ name }}") == "a &lt;b&gt;"
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-20] if damage is None else damage)
    assert made(tmp_path, "a {{ name }}") == "a &lt;b&gt;"


def test_nothing_is_kept_where_python_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert made(tmp_path, "a {{ name }}") == "a &lt;b&gt;"
    assert not list(tmp_path.iterdir())
