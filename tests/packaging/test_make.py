"""The verbs of the Makefile, in a checkout whose path holds a space."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
VERBS = ["setup", "demo", "fmt", "lint", "type", "test", "docs", "bench", "check", "lock"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the set-up reads, where nothing is installed."""
    if shutil.which("make") is None:
        pytest.skip("no make here")
    folder = tmp_path / "a check out"
    shutil.copytree(REPOSITORY / "requirements", folder / "requirements")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, folder / name)
    return folder


def make(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "PYTHON"))}
    return subprocess.run(
        ["make", *arguments],
        cwd=folder,
        env=clean | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
    )


def tools_without_python(tmp_path: Path) -> Path:
    """A folder to stand as PATH."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "make", "cat", "cksum", "tr", "rm", "dirname", "mkdir"):
        (tools / name).symlink_to(shutil.which(name) or name)
    return tools


def test_help_is_the_default_and_lists_every_verb(checkout: Path) -> None:
    shown = make(checkout).stdout
    for verb in VERBS:
        assert re.search(rf"^{verb} +\w", shown, re.MULTILINE), verb


def test_set_up_comes_first_and_in_order(checkout: Path) -> None:
    planned = make(checkout, "-n", "-j4", "test", "demo").stdout
    assert "robo_eval demo" in planned
    assert planned.index("install.sh demo") < planned.index("install.sh dev")
    assert planned.index("install.sh dev") < planned.index("-m pytest")


def test_what_is_installed_is_not_installed_again(checkout: Path) -> None:
    python = checkout / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(shutil.which("python3") or "/usr/bin/python3")
    stamps = re.findall(r'install\.sh \w+ "(.+?)"', make(checkout, "-n", "setup").stdout)
    assert len(stamps) == 2
    for stamp in stamps:
        (checkout / stamp).parent.mkdir(exist_ok=True)
        (checkout / stamp).touch()
    assert "install.sh" not in make(checkout, "-n", "setup").stdout

    with (checkout / "requirements/dev.txt").open("a") as lock:
        lock.write("# another lock\n")
    again = make(checkout, "-n", "setup").stdout
    assert "install.sh dev" in again
    assert "install.sh demo" not in again

    python.unlink()  # as if the interpreter had been uninstalled
    assert "install.sh demo" in make(checkout, "-n", "setup").stdout


def stand_in(path: Path, version: tuple[int, int]) -> Path:
    """A Python that says it is of another version and makes no environments."""
    told = f"import sys; sys.version_info = (*{version}, 0); exec(sys.argv[1])"
    path.write_text(
        f'#!/bin/sh\n[ "$1" = -c ] && exec "{sys.executable}" -c "{told}" "$2"\nexit 1\n'
    )
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("version", [None, (3, 10), (3, 14)])
def test_an_unusable_python_is_refused_in_words(version, checkout: Path, tmp_path: Path) -> None:
    python = stand_in(tmp_path / "python", version) if version else "/no/such/python"
    done = make(checkout, "demo", f"PYTHON={python}")
    assert done.returncode != 0
    assert f"error: PYTHON={python} is not a Python of version 3.11, 3.12 or 3.13" in done.stdout
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize("minor", [11, 12, 13])
def test_the_python_that_is_there_is_taken(minor: int, checkout: Path, tmp_path: Path) -> None:
    tools = tools_without_python(tmp_path)
    for other in (11, 12, 13):  # as pyenv's of versions that are not in use
        (tools / f"python3.{other}").write_text("#!/bin/sh\nexit 127\n")
        (tools / f"python3.{other}").chmod(0o755)
    stand_in(tools / f"python3.{minor}", (3, minor))
    done = make(checkout, "demo", PATH=str(tools))
    assert f"Creating .venv with Python 3.{minor}" in done.stdout
    assert f"apt-get install python3.{minor}-venv" in done.stdout  # which stands in for the rest


def test_no_python_is_refused_in_words(checkout: Path, tmp_path: Path) -> None:
    done = make(checkout, "demo", PATH=str(tools_without_python(tmp_path)))
    assert done.returncode != 0
    assert "no Python of version 3.11, 3.12 or 3.13 was found" in done.stdout
    assert "apt-get install python3" in done.stdout


def test_locks_name_versions_and_digests_and_nothing_else() -> None:
    for name in ("demo", "dev"):
        text = (REPOSITORY / f"requirements/{name}.txt").read_text()
        entries = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
        assert len(entries) > 30
        for entry in entries:
            assert re.match(r"[\w.\[\],-]+==[\w.]+( ;| \\)", entry), entry[:80]
            assert "--hash=sha256:" in entry
        assert "://" not in text
        assert not re.search(r"^(torch|nvidia)", text, re.MULTILINE)


def test_both_locks_agree() -> None:
    def versions(name: str) -> dict[str, str]:
        text = (REPOSITORY / f"requirements/{name}.txt").read_text()
        return dict(re.findall(r"^([\w.-]+)==([\w.]+)", text, re.MULTILINE))

    demo, dev = versions("demo"), versions("dev")
    assert demo.items() <= dev.items()
