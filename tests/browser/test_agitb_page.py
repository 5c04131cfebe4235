"""The page of AGITB in a real browser: verdicts, rasters of bits and times are drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from examples.agitb.models import Last
from robo_eval.analysis.agitb import run_testbed
from robo_eval.analysis.agitb.models import Seen
from tests.browser.conftest import MARKS, OVERFLOW

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def agitb_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a model that fails in many ways, and of one trial of liveness."""
    from dataclasses import replace

    from robo_eval.report.agitb import write_page

    found = run_testbed(Last, trials=1, seed=1)
    more = [run_testbed(Last, seed=1, only=(test, 0)).tests[0] for test in ("5", "7", "10")]
    # Measured times would depend on what else the computer does.
    times = {f"a motif of {period} inputs": [400 + period] * 100 for period in range(2, 12)}
    seen = Seen(times_us={"random inputs": [400] * 100, "nearly nothing": [390] * 100, **times})
    more.append(replace(found.tests[-1], verdict="pass", trials=1, seen=seen))
    by_number = {one.test: one for one in (*found.tests, *more)}
    found = replace(found, tests=tuple(by_number.values()))
    # `look` waits for pages in a folder called report.
    folder = tmp_path_factory.mktemp("agitb") / "report"
    folder.mkdir()
    facts = [("Model", "a <b>bold</b> one"), ("Seed", "1")]
    write_page(found, folder / "report.html", facts)
    return folder / "report.html"


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
@pytest.mark.parametrize("width", [390, pytest.param(1300, marks=pytest.mark.slow)])
def test_everything_is_drawn_and_nothing_overflows(
    look: Callable[..., Any], agitb_file: Path, width: int, scheme: str
) -> None:
    opened = look(agitb_file, width=width, color_scheme=scheme)
    page = opened.page
    assert opened.messages == []
    assert page.evaluate(OVERFLOW) <= 0
    shown = {chart.get_attribute("data-figure") for chart in page.locator(".chart").all()}
    assert shown == {"raster-5", "raster-7", "raster-10", "times"}, "nothing was set in test 3"
    for name in sorted(shown):
        chart = page.locator(f".chart[data-figure={name}]")
        assert chart.evaluate(MARKS)["paths"] >= (12 if name == "times" else 1), name
    assert page.locator("tbody tr").count() == 12
    assert page.locator("dl.facts dd").first.inner_text() == "a <b>bold</b> one"
    badge = page.locator("tbody tr", has_text="trace").locator(".status")
    assert badge.inner_text() == "fail"
