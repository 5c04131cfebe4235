"""Every example in the README and the pages runs, and every link in them leads somewhere."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).parents[2]
RUNNER = Path(__file__).with_name("run_page.py")
PAGES = sorted(
    path
    for pattern in ("*.md", "*/README.md", "docs/**/*.md")
    for path in REPOSITORY.glob(pattern)
    if not path.relative_to(REPOSITORY).parts[0].startswith((".", "build"))
)
PAGE_NAMES = [str(page.relative_to(REPOSITORY)) for page in PAGES]


def load_runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_page", RUNNER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["run_page"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


run_page = load_runner()
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?(?P<target>[^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")


LONG = ("aiq.md", "autonomy.md", "bags.md", "calibration.md", "comparison.md", "incidents.md")
"""Pages whose examples take half a minute; what they show has tests of its own."""
WITH_EXAMPLES = [
    page
    for page in PAGES
    if {"python", "console"} & {block.language for block in run_page.blocks_of(page.read_text())}
]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=str(page.relative_to(REPOSITORY)),
            marks=[pytest.mark.slow] if page.name in LONG else [],
        )
        for page in WITH_EXAMPLES
    ],
)
def test_examples_of_the_page_run(page: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    done = subprocess.run(
        [sys.executable, RUNNER, page],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout


def anchors_of(page: Path) -> set[str]:
    """What a page's headings are called in links."""
    text = run_page.FENCE.sub("", page.read_text())
    titles = re.findall(r"^#+\s+(.*?)\s*$", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", title.lower()) for title in titles]
    explicit = re.findall(r"^\((\S+)\)=\s*$", text, re.MULTILINE)
    return {title.replace(" ", "-") for title in plain} | set(explicit)


@pytest.mark.parametrize("page", PAGES, ids=PAGE_NAMES)
def test_links_of_the_page_lead_somewhere(page: Path) -> None:
    text = run_page.FENCE.sub("", page.read_text())
    broken = []
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        known = there.exists() and there.is_relative_to(REPOSITORY)
        if known and anchor and there.suffix == ".md":
            known = anchor in anchors_of(there)
        if not known:
            broken.append(target)
    assert not broken


def test_a_wrong_output_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="printed"):
        run_page.run_command("python -c 'print(1)'", "2", tmp_path)
    with pytest.raises(AssertionError, match="no such verb"):
        run_page.run_command("make no-such-verb", "", tmp_path)
    run_page.run_command("python -c 'print(1, 2, 3)'", "1 ... 3", tmp_path)
