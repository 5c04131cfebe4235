"""How large an installation is and how long pip takes, for each extra, in fresh environments."""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
EXTRAS = ("", "[sim]", "[sim,ros]", "[sim,dev]")


def size_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def run(*command: str | Path) -> None:
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


def measure(extra: str, wheel: Path, folder: Path) -> tuple[float, float, int]:
    """Seconds, megabytes and distributions that installing the wheel with an extra takes."""
    venv = folder / f"venv{extra.strip('[]').replace(',', '-')}"
    run(sys.executable, "-m", "venv", venv)
    python = venv / "bin/python"
    (site,) = venv.glob("lib/python*/site-packages")
    before = size_mb(site)
    started = time.perf_counter()
    run(python, "-m", "pip", "install", "-qq", "--no-cache-dir", "--no-compile", f"{wheel}{extra}")
    seconds = time.perf_counter() - started
    distributions = len(list(site.glob("*.dist-info"))) - 1  # without pip
    return seconds, size_mb(site) - before, distributions


def main() -> None:
    print(f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "-w", folder, REPOSITORY)
        (wheel,) = folder.glob("*.whl")
        print(f"wheel: {wheel.stat().st_size / 1e6:.2f} MB")
        print(f"{'extra':<12}{'seconds':>9}{'MB':>7}{'distributions':>15}")
        for extra in EXTRAS:
            seconds, megabytes, distributions = measure(extra, wheel, folder)
            print(f"{extra or '(none)':<12}{seconds:>9.1f}{megabytes:>7.0f}{distributions:>15}")


if __name__ == "__main__":
    main()
