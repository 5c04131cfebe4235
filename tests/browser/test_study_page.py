"""The page of a study in a real browser: every picture drawn, and changed by what is chosen."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser.conftest import CUT, INK, MARKS, OVERFLOW

pytestmark = pytest.mark.browser
Look = Callable[..., Any]

NAMES = [*(f"level {number}" for number in range(8)), "poles <b>of</b> lead & longer than others"]
FLAT = {"complexity", "dissimilarity", "dimensions", "sizes", "mixture", "measures", "coherence"}
CURVES = {"curves", "spread"}
# Drawn paths, images of cells, and texts that the edge of the picture cuts.
PATHS = """element => [...element.querySelectorAll('.scatterlayer path')]
  .map(p => p.getAttribute('d')).join()"""
# How many colours the solid picture has, and a sum that tells one picture from another.
SOLID = f"""element => {{
  element._fullLayout.scene._scene.glplot.redraw();  // what was drawn is gone after a frame
  return ({INK})(element.querySelector('canvas'));
}}"""
DRIVER = ("GPU stall", "willReadFrequently")
"""What a browser without a graphics card says about its own speed."""


@pytest.fixture(scope="session")
def study_file(
    invented_study: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The page of an invented study with agents."""
    from robo_eval.study.page import write_page

    suite, outcome, rankings = invented_study(NAMES)
    # `look` waits for pages in a folder called report.
    folder = tmp_path_factory.mktemp("study") / "report"
    folder.mkdir()
    return write_page(outcome, folder, rankings, suite=suite)


def _said(opened: Any) -> list[str]:
    return [text for text in opened.messages if not any(known in text for known in DRIVER)]


def _chart(opened: Any, name: str) -> Any:
    return opened.page.locator(f".chart[data-figure={name}]")


def _changed(page: Any, chart: Any, what: str, before: Any) -> None:
    """Wait until a picture is another one."""
    for _ in range(50):
        if chart.evaluate(what) != before:
            return
        page.wait_for_timeout(100)
    pytest.fail(f"{chart} is what it was")


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
@pytest.mark.parametrize("width", [390, pytest.param(1300, marks=pytest.mark.slow)])
def test_every_picture_is_drawn_and_nothing_overflows(
    look: Look, study_file: Path, width: int, scheme: str
) -> None:
    opened = look(study_file, width=width, color_scheme=scheme)
    page = opened.page
    assert _said(opened) == []
    assert [url for url in opened.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert page.evaluate("window.harmed === undefined")
    assert page.evaluate(OVERFLOW) <= 0
    assert page.evaluate(CUT.replace("svg,", "svg, .chart,")) == []
    shown = {chart.get_attribute("data-figure") for chart in page.locator(".chart").all()}
    assert shown == FLAT | CURVES | {"space"}
    for name in sorted(FLAT | CURVES):
        drawn = _chart(opened, name).evaluate(MARKS)
        assert drawn["paths"] + drawn["images"] >= 3, (name, drawn)
        assert drawn["cut"] == [], (name, drawn)
    assert _chart(opened, "space").evaluate(SOLID)[0] > 20
    for chart in page.locator(".chart").all():
        assert len(chart.get_attribute("aria-label")) > 40
    assert page.locator("figcaption").count() == len(shown)


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1300])
def test_what_is_chosen_changes_the_picture(look: Look, study_file: Path, width: int) -> None:
    opened = look(study_file, width=width)
    page = opened.page
    choices = {
        "test": ("sizes", "1"), "mixture-first": ("mixture", "8"),
        "mixture-second": ("mixture", "0"), "group": ("coherence", "1"),
    }  # fmt: skip
    for field, (name, value) in choices.items():
        before = _chart(opened, name).evaluate(PATHS)
        page.locator(f"#{field}").select_option(value)
        _changed(page, _chart(opened, name), PATHS, before)
    assert "dissimilarity" in page.locator("#mixture-words").inner_text()
    page.locator("#mixture-second").select_option("8")
    page.locator("#mixture-words", has_text="to itself").wait_for()
    assert "difficulty of these items is not known" in _chart(opened, "curves").inner_text()
    space = _chart(opened, "space")
    for field, value in (("hull-a", "suite"), ("hull-b", "")):
        before = space.evaluate(SOLID)
        page.locator(f"#{field}").select_option(value)
        _changed(page, space, SOLID, before)
    before = space.evaluate(SOLID)
    page.locator("#turn").focus()
    page.keyboard.press("ArrowRight")
    _changed(page, space, SOLID, before)
    assert _said(opened) == []


@pytest.mark.slow
def test_turning_by_hand_outlives_another_choice(look: Look, study_file: Path) -> None:
    page = look(study_file).page
    space = page.locator(".chart[data-figure=space]")
    eye = "element => JSON.stringify(element._fullLayout.scene.camera.eye)"
    space.scroll_into_view_if_needed()
    box = space.bounding_box()
    start = space.evaluate(eye)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 120, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    page.wait_for_timeout(300)
    turned = space.evaluate(eye)
    assert turned != start
    page.locator("#hull-a").select_option("suite")
    page.wait_for_timeout(500)
    assert space.evaluate(eye) == turned


@pytest.mark.slow
def test_a_browser_without_solid_pictures_draws_two_dimensions(
    look: Look, study_file: Path
) -> None:
    script = """const get = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
      return kind.includes('webgl') ? null : get.call(this, kind, ...rest); };"""
    opened = look(study_file, script=script)
    assert _said(opened) == []
    drawn = _chart(opened, "space-flat").evaluate(MARKS)
    assert drawn["paths"] >= len(NAMES)
    assert opened.page.locator("#flat-words").is_visible()
    assert not opened.page.locator("#turn").is_visible()
    before = _chart(opened, "space-flat").evaluate(PATHS)
    opened.page.locator("#hull-a").select_option("suite")
    _changed(opened.page, _chart(opened, "space-flat"), PATHS, before)


@pytest.mark.slow
def test_two_tests_without_agents_have_a_page(
    look: Look, invented_study: Callable[..., Any], tmp_path: Path
) -> None:
    from robo_eval.study.page import write_page

    _, outcome, _ = invented_study(["one", "other"], trainings=1)
    folder = tmp_path / "report"
    folder.mkdir()
    opened = look(write_page(outcome, folder), width=390)
    assert _said(opened) == []
    assert opened.page.evaluate(OVERFLOW) <= 0
    assert opened.page.locator("#agents").count() == 0
    for name in ("complexity", "dissimilarity", "space-flat", "dimensions", "sizes", "mixture"):
        drawn = _chart(opened, name).evaluate(MARKS)
        assert drawn["paths"] + drawn["images"] > 0, name


def test_without_scripts_every_number_is_there(look: Look, study_file: Path) -> None:
    page = look(study_file, java_script_enabled=False).page
    assert page.locator("noscript .warning").count() == 1
    pairs = len(NAMES) * (len(NAMES) - 1) // 2
    assert page.locator("#dissimilarity tbody tr").count() == pairs
    assert page.locator("#complexity tbody tr").count() == len(NAMES)
    assert page.locator("#agents table.measures tbody tr").count() == 6


@pytest.mark.slow
def test_on_paper_every_picture_is_there(look: Look, study_file: Path) -> None:
    from pypdf import PdfReader

    paper = PdfReader(BytesIO(look(study_file).page.pdf(format="A4")))
    drawn = [image.image for page in paper.pages for image in page.images]
    # Two heat maps, and the space, which is the largest.
    assert len(drawn) == 3
    largest = max(drawn, key=lambda image: image.width)
    colours = np.asarray(largest.convert("RGB")).reshape(-1, 3)
    assert len(np.unique(colours, axis=0)) > 20
