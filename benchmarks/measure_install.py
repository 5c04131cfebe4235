"""How large an installation is, byte code included, and how long pip takes: base and every extra.

Prints the table of the README. Each row is a fresh virtual environment; a row that cannot be
measured is named with `--skip train="why"`.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


def extras() -> list[str]:
    """No extra, then each of the project's."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return ["", *sorted(project["optional-dependencies"])]


def size_mb(folder: Path) -> float:
    """What the files take on the disk, as `du` has it."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) / 1e6


def run(*command: str | Path) -> None:
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


def measure(extra: str, wheel: Path, folder: Path) -> tuple[float, float]:
    """Megabytes and seconds that installing the wheel with an extra takes."""
    venv = folder / f"venv-{extra}"
    run(sys.executable, "-m", "venv", venv)
    (site,) = venv.glob("lib/python*/site-packages")
    before = size_mb(site)
    started = time.perf_counter()
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    # pip compiles what it installs.
    run(venv / "bin/python", "-m", "pip", "install", "-qq", "--no-cache-dir", wanted)
    seconds = time.perf_counter() - started
    megabytes = size_mb(site) - before
    shutil.rmtree(venv)
    return megabytes, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extras", nargs="*", help="which rows; all if none is named")
    parser.add_argument("--skip", action="append", default=[], metavar="EXTRA=WHY")
    given = parser.parse_args()
    skipped = dict(text.split("=", 1) for text in given.skip)
    print(f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}\n")
    print("| install | size | time |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "-w", folder, REPOSITORY)
        (wheel,) = folder.glob("*.whl")
        for extra in given.extras or extras():
            row = f"`.[{extra}]`" if extra else "`.`"
            if extra in skipped:
                print(f"| {row} | not measured: {skipped[extra]} | |", flush=True)
                continue
            megabytes, seconds = measure(extra, wheel, folder)
            print(f"| {row} | {megabytes:.0f} MB | {seconds:.0f} s |", flush=True)


if __name__ == "__main__":
    main()
