"""Runs the examples of one page, in order: `python run_page.py PAGE` in an empty folder.

Python blocks share their names. In a console block, a line `$ command` is run; lines under it are
what it must print, where `...` stands for anything; `$ export NAME=VALUE` holds from there on. A
block after a comment `<!-- file: NAME -->` is saved under that name, and one after a comment
`<!-- not run: REASON -->` is left out.

A program and not part of the test, so that what a page imports, registers or puts into the
environment ends with it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]

# Commands that set up or change the machine: named in pages, not run by a test.
NOT_RUN = {"git", "cd", "pip", "apt-get", "source", "xdg-open", "python3"}

FENCE = re.compile(
    r"^(?P<ticks>`{3,})(?P<language>[\w-]*)[^\n]*\n(?P<body>.*?)^(?P=ticks)\s*$",
    re.MULTILINE | re.DOTALL,
)
NOTE = re.compile(r"<!--\s*(?P<kind>file|not run):\s*(?P<value>[^>]*?)\s*-->\s*\Z")


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
    if program == "export":
        os.environ.update(word.split("=", 1) for word in words[1:])
        return
    if program in NOT_RUN or words[1:3] in (["-m", "pip"], ["-m", "pre_commit"]):
        return
    if program == "robo-eval":
        words[:1] = [sys.executable, "-m", "robo_eval"]
    elif program == "python":
        words[0] = sys.executable
    else:
        raise AssertionError(f"{command!r}: neither run here nor listed as not run")
    done = subprocess.run(
        words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=800
    )
    if "robo-eval:" not in shown:  # a page may show how something is refused
        assert done.returncode == 0, f"$ {command}\n{done.stdout}"
    assert pattern_of(shown).search(done.stdout), f"$ {command}\nprinted:\n{done.stdout}"


def run_page(page: Path, folder: Path) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(page.read_text()):
        if not block.runs:
            continue
        if block.file is not None:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.body)
        elif block.language == "python":
            # Line numbers of a traceback are those of the page.
            code = compile("\n" * (block.line - 1) + block.body, str(page), "exec")
            exec(code, names)
        elif block.language == "console":
            for command, shown in commands_of(block.body):
                run_command(command, shown, folder)


if __name__ == "__main__":
    # As if the examples were typed there: modules beside them can be imported.
    sys.path[0] = ""
    run_page(Path(sys.argv[1]), Path.cwd())
