"""What every test run shares: how many examples Hypothesis draws, and whether a skip is allowed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import hypothesis
import pytest

# Continuous integration installs all that tests need and sets this, so that a test that cannot
# run there is a failure and not a line nobody reads.
REQUIRE_ALL: Final = "ROBO_EVAL_REQUIRE_ALL"

# Tests that may be skipped even then: part of the test's id -> why.
ALLOWED_SKIPS: Final[dict[str, str]] = {
    "test_a_full_disk_loses_no_acknowledged_row": "containers may not mount a small file system",
    "tests/train/": "torch is large, and only training needs it",
    "test_a_write_protected_trial_can_be_read": "containers may not mount a folder read-only",
}

# Hundreds of tests start the command line: without byte code each would compile everything anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Tests sign with a key of their own, not with that of whoever runs them.
_KEYS: Final = tempfile.TemporaryDirectory(prefix="robo-eval-keys-")
os.environ["ROBO_EVAL_KEY"] = str(Path(_KEYS.name) / "key.pem")

hypothesis.settings.register_profile("dev", max_examples=25, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=300, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


class NoSkips:
    """Turns a skipped test, and a skipped module, into a failed one."""

    @staticmethod
    def _fail(report: pytest.TestReport | pytest.CollectReport) -> None:
        expected_failure = hasattr(report, "wasxfail")
        allowed = any(part in report.nodeid for part in ALLOWED_SKIPS)
        if report.outcome != "skipped" or expected_failure or allowed:
            return
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{REQUIRE_ALL} is set, but this did not run: {reason}"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        report = yield
        self._fail(report)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, Any, Any]:
        report = yield
        self._fail(report)
        return report


def pytest_configure(config: pytest.Config) -> None:
    # A plugin and not hooks of this file: those would not see the doctests of the packages.
    if os.environ.get(REQUIRE_ALL, "") not in {"", "0"}:
        config.pluginmanager.register(NoSkips(), "no_skips")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the tests over ROS first.

    They run one at a time and mostly wait. Workers start at both ends of the list, so one plays
    them while the other gets on with the rest, and neither waits for the other.
    """
    items.sort(key=lambda item: "/tests/ros/" not in item.path.as_posix())
