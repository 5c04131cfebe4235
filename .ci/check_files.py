"""Says which files are too large, hold a secret, name a task of others, or cannot be read."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import yaml

MAX_BYTES: Final = 1_000_000

# Larger files that are meant: path -> why.
LARGE: Final[dict[str, str]] = {}

TASKS: Final = Path("sim/robo_eval_sim/tasks")
# What is of a task although neither file nor folder has its name: path -> task.
OF_TASKS: Final[dict[str, str]] = {
    "robo_eval/analysis/panel": "cartpole3d",
    "ros2_ws/src/robo_eval_twin/robo_eval_twin/gantry.py": "cartpole3d",
}
CODE: Final = (".py", ".j2", ".js", ".css", ".xml")
PRODUCT: Final = ("robo_eval", "sim", "ros2_ws", "calibration", "incidents", "launch")

SECRETS: Final[dict[str, re.Pattern[str]]] = {
    "private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "cloud access key": re.compile(r"\b(AKIA|ASIA)[0-9A-Z]{16}\b"),
    "forge token": re.compile(r"\b(gh[pousr]_\w{36,}|github_pat_\w{50,}|glpat-[\w-]{20,})"),
    "package index token": re.compile(r"\bpypi-[A-Za-z0-9_-]{60,}"),
    "chat token": re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}"),
    "password in an address": re.compile(
        r"\b[a-z][a-z0-9+.-]*://[^\s/:@'\"<{]+:[^\s/@'\"<{]+@[\w.-]+"
    ),
}


def _yaml(text: str) -> None:
    # Composing checks the syntax without asking what tags such as !!python/name stand for.
    list(yaml.compose_all(text, Loader=yaml.SafeLoader))


def _xml(text: str) -> None:
    ET.fromstring(text)  # noqa: S314 - our own files


PARSERS: Final[dict[str, Callable[[str], object]]] = {
    ".toml": tomllib.loads,
    ".yaml": _yaml,
    ".yml": _yaml,
    ".json": json.loads,
    ".xml": _xml,
    ".urdf": _xml,
    ".svg": _xml,
}


def problems_of(path: Path) -> Iterator[str]:
    """One line for each thing wrong with a file."""
    data = path.read_bytes()
    if len(data) > MAX_BYTES and str(path) not in LARGE:
        yield f"{path}: {len(data)} bytes, more than {MAX_BYTES}; name it in LARGE if it is meant"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    for kind, pattern in SECRETS.items():
        if match := pattern.search(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: looks like a secret ({kind})"
    if re.search(r"^(<{7} |>{7} )", text, re.MULTILINE):
        yield f"{path}: holds a merge conflict"
    yield from _tasks_named_in(path, text)
    parse = PARSERS.get(path.suffix)
    if parse is not None:
        try:
            parse(text)
        except (ValueError, yaml.YAMLError, ET.ParseError) as err:
            yield f"{path}: not valid {path.suffix[1:].upper()}: {err}"


def _tasks_named_in(path: Path, text: str) -> Iterator[str]:
    """Tasks whose name stands in code that is not theirs: such code would not serve another one."""
    if path.parts[0] not in PRODUCT or path.suffix not in CODE:
        return
    for spec in sorted(TASKS.glob("*/spec.py")):
        task = spec.parent.name
        others = (Path(place) for place, whose in OF_TASKS.items() if whose == task)
        is_own = task in (*path.parts, path.stem) or any(path.is_relative_to(it) for it in others)
        pattern = re.compile(f"{task}|{task.replace('_', '')}", re.IGNORECASE)
        if not is_own and (match := pattern.search(text)):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: names the task {match[0]}, which only its own folder may"


def tracked_files() -> list[Path]:
    """Every file git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    paths = {Path(name) for name in listed.split("\0") if name}
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())


def main() -> int:
    """Check the files named, or all; the exit code is 1 if something is wrong."""
    paths = [Path(name) for name in sys.argv[1:]] or tracked_files()
    problems = [problem for path in paths for problem in problems_of(path)]
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
