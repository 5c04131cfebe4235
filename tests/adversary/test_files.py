"""What is not a plain file, or no file anybody wrote, is refused by every verb at once."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(20 * 2**30)  # takes no room


KINDS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": _socket,
    "folder": Path.mkdir,
    "endless device": lambda path: path.symlink_to("/dev/zero"),
    "empty device": lambda path: path.symlink_to("/dev/null"),
    "huge": _huge,
    "link to itself": lambda path: path.symlink_to(path.name),
    "link with a long name": lambda path: path.symlink_to("x" * 3000),
    "bytes": lambda path: path.write_bytes(bytes(range(256)) * 50),
    "deep": lambda path: path.write_bytes(b"[" * 6000 + b"]" * 6000),
}
QUICK_FIRST = [
    pytest.param(kind, marks=[pytest.mark.slow] if place else [])
    for place, kind in enumerate(KINDS)
]
DOORS = (
    "run @.yaml --out out",
    "metrics @.d",
    "verify @.db",
    "metrics trial --config @.yaml",
    "metrics trial --faults @.csv",
    "metrics trial --incidents @.json",
    "assess trial --profile @.toml",
    "verify log.db --checkpoint @.json",
    "import csv table.csv --map @.yaml --out out",
    "import csv @.csv --map map.yaml --out out",
    "import eval-info @.json --map map.yaml --out out",
    "aiq run @.yaml --out out",
    "aiq show @.d",
    "incidents list --log @.db",
    "incidents merge @.jsonl --log log.db",
    "incidents import @.csv --by me --log log.db",
    "incidents import @.json --by me --log log.db",
)
INSIDE = (
    "plan.yaml",
    "manifest.json",
    "episodes.db",
    "faults.csv",
    "ratings.csv",
    "preflight.json",
)


@pytest.mark.parametrize("kind", QUICK_FIRST)
def test_a_file_that_is_none_is_refused(lab, calm, monkeypatch, kind):
    monkeypatch.chdir(lab)
    for door in DOORS:
        name = next(word for word in door.split() if word.startswith("@"))
        path = lab / name.replace("@", "odd")
        if os.path.lexists(path):
            continue
        KINDS[kind](path)
        done = calm(*door.replace("@", "odd").split(), folder=lab)
        assert done.code == 2, (door, done)
        assert "odd" in done.err, (door, done)
        assert not (lab / "out").exists(), door
        path.rmdir() if kind == "folder" else path.unlink()


@pytest.mark.parametrize("kind", QUICK_FIRST)
def test_such_a_file_inside_a_trial_stops_nothing(lab, calm, monkeypatch, kind):
    for name in INSIDE:
        path = lab / "trial" / name
        was = path.read_bytes() if path.exists() else None
        path.unlink(missing_ok=True)
        monkeypatch.chdir(path.parent)
        KINDS[kind](path)
        for verb in ("metrics", "verify"):
            calm(verb, "trial", folder=lab)
        path.rmdir() if kind == "folder" else path.unlink()
        if was is not None:
            path.write_bytes(was)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda file: file.write_bytes(b"not a database" * 99), 2),
        (lambda file: file.write_bytes(b""), 2),
        (lambda file: os.truncate(file, 6000), 2),
        (lambda file: (file.unlink(), file.mkdir()), 2),
        (lambda file: (file.unlink(), file.symlink_to(file.name)), 2),
        (lambda file: (file.unlink(), os.mkfifo(file)), 2),
        (lambda file: file.unlink(), 1),
    ],
)
def test_a_database_that_cannot_be_read_is_no_verdict(lab, calm, change, code):
    change(lab / "trial/episodes.db")
    done = calm("verify", "trial", folder=lab)
    assert done.code == code, done
    assert ("do not trust this log" in done.err) == (code == 1)
    assert "episodes.db" in done.out + done.err
