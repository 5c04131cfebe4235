"""With ROBO_EVAL_REQUIRE_ALL set, a test that does not run is a failed test."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"

SUITE = """
import pytest

def test_runs():
    pass

@pytest.mark.skipif(True, reason="no browser here")
def test_is_skipped_by_mark():
    pass

def test_skips_itself():
    pytest.skip("no display here")

@pytest.mark.xfail(reason="known")
def test_fails_as_expected():
    raise AssertionError
"""

MODULE = """
import pytest

pytest.importorskip("no_such_module_anywhere")

def test_never_reached():
    pass
"""


def run_suite(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(CONFTEST, folder / "conftest.py")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_suite.py").write_text(SUITE)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "ROBO_EVAL_"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", *options],
        cwd=folder,
        # Plugins that are installed take longer to load than these tests take.
        env=clean | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=800,
    )


def test_skips_pass_and_are_listed_by_default(tmp_path: Path) -> None:
    done = run_suite(tmp_path)
    assert done.returncode == 0, done.stdout
    assert "1 passed, 2 skipped, 1 xfailed" in done.stdout
    assert "no browser here" in done.stdout


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="one process"),
        pytest.param(("-p", "xdist", "-n", "2"), id="xdist", marks=pytest.mark.slow),
    ],
)
def test_skips_fail_when_all_is_required(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run_suite(tmp_path, *options, ROBO_EVAL_REQUIRE_ALL="1")
    assert done.returncode == 1, done.stdout
    # pytest calls a failure of the set-up phase, where a mark skips, an error.
    assert "1 failed, 1 passed, 1 xfailed, 1 error" in done.stdout
    assert "did not run: Skipped: no browser here" in done.stdout
    assert "did not run: Skipped: no display here" in done.stdout


def test_a_skipped_module_fails_when_all_is_required(tmp_path: Path) -> None:
    (tmp_path / "test_module.py").write_text(MODULE)
    done = run_suite(tmp_path, ROBO_EVAL_REQUIRE_ALL="1")
    assert done.returncode != 0
    assert "no_such_module_anywhere" in done.stdout
