"""Every example in the README and the pages runs, and every link in them leads somewhere.

Python blocks of a page share their names, in order. In a console block, a line `$ command` is
run; lines under it are what it must print, where `...` stands for anything. A block after a
comment `<!-- file: NAME -->` is saved under that name, and one after a comment
`<!-- not run: REASON -->` is left out.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("*.md", "*/README.md", "docs/**/*.md")
    for path in REPOSITORY.glob(pattern)
    if not path.relative_to(REPOSITORY).parts[0].startswith((".", "build"))
)
PAGE_NAMES = [str(page.relative_to(REPOSITORY)) for page in PAGES]

# Commands that set up or change the machine: named in pages, not run by a test.
NOT_RUN = {"git", "cd", "pip", "apt-get", "export", "xdg-open", "python3.11"}

FENCE = re.compile(
    r"^(?P<ticks>`{3,})(?P<language>[\w-]*)[^\n]*\n(?P<body>.*?)^(?P=ticks)\s*$",
    re.MULTILINE | re.DOTALL,
)
NOTE = re.compile(r"<!--\s*(?P<kind>file|not run):\s*(?P<value>[^>]*?)\s*-->\s*\Z")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?(?P<target>[^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    language: str
    body: str
    line: int
    file: str | None
    runs: bool


def blocks_of(text: str) -> Iterator[Block]:
    for match in FENCE.finditer(text):
        note = NOTE.search(text[: match.start()])
        kind = note["kind"] if note else None
        yield Block(
            language=match["language"],
            body=match["body"],
            line=text.count("\n", 0, match.start()) + 2,
            file=note["value"] if note and kind == "file" else None,
            runs=kind != "not run",
        )


def commands_of(body: str) -> Iterator[tuple[str, str]]:
    """Each command with the output the page shows for it."""
    body = body.replace("\\\n", " ")
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command.split(" # ")[0].strip(), output.strip()


def pattern_of(shown: str) -> re.Pattern[str]:
    words = [re.escape(word).replace(r"\.\.\.", ".*?") for word in shown.split()]
    return re.compile(r"\s+".join(words).replace(r"\s+.*?\s+", r"\s.*?"), re.DOTALL)


def run_command(command: str, shown: str, folder: Path) -> None:
    words = shlex.split(command)
    program = Path(words[0]).name
    if program == "make":
        verbs = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
        for word in words[1:]:
            assert "=" in word or word.startswith("-") or word in verbs, f"no such verb: {word}"
        return
    if program in NOT_RUN or words[1:3] in (["-m", "pip"], ["-m", "pre_commit"]):
        return
    if program == "robo-eval":
        words[:1] = [sys.executable, "-m", "robo_eval"]
    elif program == "python":
        words[0] = sys.executable
    else:
        pytest.fail(f"{command!r}: neither run by this test nor listed as not run")
    done = subprocess.run(
        words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240
    )
    if "robo-eval:" not in shown:  # a page may show how something is refused
        assert done.returncode == 0, f"$ {command}\n{done.stdout}"
    assert pattern_of(shown).search(done.stdout), f"$ {command}\nprinted:\n{done.stdout}"


@pytest.mark.parametrize("page", PAGES, ids=PAGE_NAMES)
def test_examples_of_the_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(page.read_text()):
        if not block.runs:
            continue
        if block.file is not None:
            (tmp_path / block.file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / block.file).write_text(block.body)
        elif block.language == "python":
            # Line numbers of a traceback are those of the page.
            code = compile("\n" * (block.line - 1) + block.body, str(page), "exec")
            exec(code, names)
        elif block.language == "console":
            for command, shown in commands_of(block.body):
                run_command(command, shown, tmp_path)


def anchors_of(page: Path) -> set[str]:
    """What a page's headings are called in links."""
    text = FENCE.sub("", page.read_text())
    titles = re.findall(r"^#+\s+(.*?)\s*$", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", title.lower()) for title in titles]
    explicit = re.findall(r"^\((\S+)\)=\s*$", text, re.MULTILINE)
    return {title.replace(" ", "-") for title in plain} | set(explicit)


@pytest.mark.parametrize("page", PAGES, ids=PAGE_NAMES)
def test_links_of_the_page_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text())
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
        run_command("python -c 'print(1)'", "2", tmp_path)
    with pytest.raises(AssertionError, match="no such verb"):
        run_command("make no-such-verb", "", tmp_path)
    run_command("python -c 'print(1, 2, 3)'", "1 ... 3", tmp_path)
