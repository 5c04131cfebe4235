"""The report in a real browser: drawn, usable by keyboard, offline, on phone and on paper."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import CUT, INK, MARKS, OVERFLOW, OVERLAPS

pytestmark = pytest.mark.browser
Look = Callable[..., Any]

# Marks each chart of the trial must have: a panel a difficulty; a line or point a policy.
CHARTS = {"heat_map": 2, "lengths": 3, "effects": 6, "curves": 9, "spread": 6}
SCHEMES = ["light", pytest.param("dark", marks=pytest.mark.slow)]
"""Dark is light in other colours; the long tests look at it, too."""
WIDTHS = [390, pytest.param(1300, marks=pytest.mark.slow)]
"""What fits on a phone mostly fits elsewhere; the long tests look at wide screens, too."""


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [390, 1300])
def test_every_chart_is_drawn_and_nothing_overflows(
    shown: Look, page_file: Path, width: int, scheme: str
) -> None:
    opened = shown(page_file, width, scheme)
    page = opened.page
    opened.assert_fits()
    assert page.locator(".chart").count() == len(CHARTS)
    for name in CHARTS:
        drawn = page.locator(f".chart[data-figure={name}]").evaluate(MARKS)
        assert drawn["paths"] + drawn["images"] >= CHARTS[name], (name, drawn)
        assert drawn["texts"] >= 4, (name, drawn)
        assert drawn["cut"] == [], (name, drawn)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in re.findall(r"\d+", background)[:3])
    assert (brightness < 200) == (scheme == "dark")


def test_the_page_asks_for_nothing_but_itself(wide: Any, page_file: Path) -> None:
    outside = [url for url in wide.requests if not url.startswith(("file:", "data:", "blob:"))]
    assert outside == []
    assert wide.requests.count(page_file.as_uri()) == 1


def test_markup_in_the_plan_stays_text(wide: Any) -> None:
    page = wide.page
    assert page.evaluate("window.harmed === undefined")
    assert page.locator("h1").inner_text() == "Trial <script>window.harmed = 1</script> & more"
    assert page.locator("p.lead b").count() == 0


def test_the_animation_is_driven_by_keyboard(wide: Any) -> None:
    page = wide.page
    scene = page.locator("canvas.scene")
    page.locator("select.clip").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "stage"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    colours, first = scene.evaluate(INK)
    assert colours > 20
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert page.locator(".player input[type=range]").input_value() == "11"
    _, later = scene.evaluate(INK)
    assert later != first
    assert page.locator(".clock").inner_text().startswith("0.22 s / ")
    page.keyboard.press("Home")
    assert page.locator(".player input[type=range]").input_value() == "0"
    assert scene.evaluate(INK)[1] == first
    page.keyboard.press("d")
    assert scene.evaluate(INK)[1] != first
    page.keyboard.press(" ")
    page.wait_for_timeout(400)
    page.keyboard.press(" ")
    stopped = int(page.locator(".player input[type=range]").input_value())
    assert stopped > 3
    page.wait_for_timeout(150)
    assert int(page.locator(".player input[type=range]").input_value()) == stopped
    assert "roll" in (page.locator(".player input[type=range]").get_attribute("aria-valuetext"))


@pytest.mark.slow
def test_every_episode_of_the_list_can_be_drawn(wide: Any) -> None:
    page = wide.page
    values = page.locator("select.clip option").evaluate_all("list => list.map(o => o.value)")
    assert len(values) >= 2
    for value in values:
        page.locator("select.clip").select_option(value)
        page.locator(f".player[data-ready={value}]").wait_for()
        for view in ("follow", "arena"):
            page.locator("select.view").select_option(view)
            assert page.locator("canvas.scene").evaluate(INK)[0] > 20
        assert page.locator(".clip-caption").inner_text()
    assert wide.messages == []


@pytest.mark.slow
def test_reduced_motion_shows_still_pictures(look: Look, page_file: Path) -> None:
    page = look(page_file, reduced_motion="reduce").page
    count = """async () => {
      const canvas = document.querySelector('.player input[type=range]');
      const seen = new Set();
      document.querySelector('[data-do=play]').click();
      const end = performance.now() + 1100;
      while (performance.now() < end) {
        seen.add(canvas.value);
        await new Promise(done => requestAnimationFrame(done));
      }
      return seen.size;
    }"""
    assert page.evaluate(count) <= 4


def test_downloads_are_the_files_of_the_bundle(wide: Any, page_file: Path) -> None:
    page = wide.page
    for name in ("episodes.csv", "metrics.json"):
        with page.expect_download() as waiting:
            page.locator(f"a[download='{name}']").click()
        saved = Path(waiting.value.path()).read_bytes()
        assert saved == (page_file.parent / name).read_bytes()
    rows = list(csv.DictReader(io.StringIO((page_file.parent / "episodes.csv").read_text())))
    assert len(rows) >= 54
    json.loads((page_file.parent / "metrics.json").read_text())


@pytest.mark.slow
def test_a_browser_without_decompression_draws_the_same(look: Look, page_file: Path) -> None:
    opened = look(page_file, script="delete window.DecompressionStream;")
    assert opened.page.evaluate("typeof DecompressionStream") == "undefined"
    assert opened.messages == []
    drawn = opened.page.locator(".chart[data-figure=lengths]").evaluate(MARKS)
    assert drawn["paths"] >= 3


def test_without_scripts_every_number_is_there(look: Look, page_file: Path) -> None:
    page = look(page_file, java_script_enabled=False).page
    assert page.locator("noscript .warning").count() == 1
    assert page.locator("table.cells td").count() == 3 * 2 * 3


def test_the_phone_shows_one_policy_of_the_cells_at_a_time(shown: Look, page_file: Path) -> None:
    page = shown(page_file, 390, "light").page
    columns = "[...document.querySelectorAll('.cells thead th')].filter(t => t.offsetWidth).length"
    assert page.evaluate(columns) == 3
    page.locator("#picker").select_option("adaptive")
    names = page.locator(".cells thead th:visible").all_inner_texts()
    assert names == ["level", "difficulty", "adaptive"]
    assert page.evaluate(CUT) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["few", "changed", "killed", "empty"])
@pytest.mark.parametrize("width", [390, 1300])
def test_a_trial_that_is_not_as_it_should_be_has_a_clear_page(
    shown: Look, odd: Path, width: int, name: str
) -> None:
    opened = shown(odd / name / "report" / "index.html", width, "light")
    page = opened.page
    opened.assert_fits()
    for chart in page.locator(".chart").all():
        drawn = chart.evaluate(MARKS)
        assert drawn["cut"] == []
        assert drawn["paths"] + drawn["images"] > 0, chart.get_attribute("data-figure")
    badge = {
        "few": "complete",
        "changed": "complete, not verified",
        "killed": "interrupted at 3/30",
        "empty": "interrupted at 0/30",
    }
    assert page.locator(".status").inner_text() == badge[name]
    alarms = page.locator(".warning.bad[role=alert]")
    assert alarms.count() == (name == "changed")
    if name == "changed":
        text = alarms.inner_text()
        assert "this log does not verify" in text
        assert "row 7" in text
        result = page.locator("#verdict").bounding_box()
        banner = alarms.bounding_box()
        assert banner["y"] + banner["height"] <= result["y"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.slow
def test_the_robot_stands_beside_its_simulation_at_every_width(
    shown: Look, robot_page: Path, width: int
) -> None:
    opened = shown(robot_page, width, "light")
    page = opened.page
    opened.assert_fits()
    assert page.locator(".chart[data-figure=heat_map]").evaluate(MARKS)["cut"] == []
    drawn = page.locator(".chart[data-figure=robots]").evaluate(MARKS)
    assert drawn["paths"] >= 20  # two policies of five points with an interval each
    assert drawn["cut"] == []
    text = page.locator("#robots").inner_text()
    assert text.startswith("On the robot")
    for part in ("AR_sim", "S2R", "AR_twin", "S2S", "agrees least", "a stand-in for the robot"):
        assert part in text


LIGHTS = """all => all.map(e => {
  const box = e.getBoundingClientRect(), sign = e.querySelector('svg').getBoundingClientRect();
  return [e.innerText.trim(), box.width > sign.width && box.height > 0 && sign.width > 5];
})"""
# Lights that reach beyond the cell they stand in, where they would lie on their neighbour.
CROSSING = """() => [...document.querySelectorAll('#autonomy td .light')].filter(e =>
  e.getBoundingClientRect().right > e.closest('td').getBoundingClientRect().right + 1
).map(e => e.closest('tr').innerText.slice(0, 60))"""


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_autonomy_level_is_readable_at_every_width_and_without_colour(
    shown: Look, robot_page: Path, width: int, scheme: str
) -> None:
    opened = shown(robot_page, width, scheme)
    page = opened.page
    assert opened.messages == []
    section = page.locator("#autonomy")
    assert section.locator("h2").inner_text() == "Autonomy level"
    assert section.locator(".aai").all_inner_texts() == ["no level", "no level"]
    assert section.locator(".tag").all_inner_texts() == ["evidence: self-declared"] * 2
    assert section.locator(".lacking li").first.is_visible()
    for details in section.locator("details").all():
        details.evaluate("part => { part.open = true; }")
    assert page.evaluate(OVERFLOW) <= 0
    assert page.evaluate(CUT) == []
    assert page.evaluate(CROSSING) == []
    for box in section.locator(".scroll").all():
        assert box.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    lights = section.locator(".light").evaluate_all(LIGHTS)
    assert len(lights) > 100
    assert {word for word, _ in lights} == {"pass", "fail", "missing"}
    assert all(is_drawn for _, is_drawn in lights)
    assert page.locator("nav a[href='#autonomy']").inner_text() == "Autonomy level"


# Marks each chart of the levels must have: axes, days and drifts, or degrees of autonomy.
LEVEL_CHARTS = {"axes": 8, "capability": 40, "frontier": 12}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.slow
def test_every_chart_of_the_levels_is_drawn_and_nothing_is_cut(
    shown: Look, levels_page: Path, width: int, scheme: str
) -> None:
    opened = shown(levels_page, width, scheme)
    page = opened.page
    assert opened.messages == []
    section = page.locator("#autonomy")
    for details in section.locator("details").all():
        details.evaluate("part => { part.open = true; }")
    opened.assert_fits()
    assert page.evaluate(CROSSING) == []
    for box in section.locator(".scroll").all():
        assert box.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    for name, least in LEVEL_CHARTS.items():
        chart = section.locator(f".chart[data-figure={name}]")
        drawn = chart.evaluate(MARKS)
        assert drawn["paths"] >= least, (name, drawn)
        assert drawn["cut"] == [], (name, drawn)
        assert chart.get_attribute("aria-label")


@pytest.mark.slow
def test_on_paper_the_charts_of_the_levels_are_whole(look: Look, levels_page: Path) -> None:
    page = look(levels_page).on_paper()
    assert page.evaluate(OVERFLOW) <= 0
    assert page.evaluate(OVERLAPS) == []
    for name in LEVEL_CHARTS:
        assert page.locator(f".chart[data-figure={name}]").evaluate(MARKS)["cut"] == []


def test_a_trial_in_simulation_has_no_autonomy_level(wide: Any, page_file: Path) -> None:
    assert wide.page.locator("#autonomy").count() == 0
    assert not (page_file.parent / "assessment.json").exists()


# Marks each chart of a robot must have: conditions, severities, faults or values of all policies.
LAB_CHARTS = {
    "robots": 14,
    "conditions": 8,
    "incidents": 8,
    "recovery": 6,
    "control": 80,
    "cost": 5,
}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_chart_of_a_robot_is_drawn_and_nothing_is_cut(
    shown: Look, lab_page: Path, width: int, scheme: str
) -> None:
    opened = shown(lab_page, width, scheme)
    page = opened.page
    opened.assert_fits()
    for details in page.locator("details").all():
        details.evaluate("part => { part.open = true; }")
    opened.assert_fits()
    for name, least in LAB_CHARTS.items():
        chart = page.locator(f".chart[data-figure={name}]")
        drawn = chart.evaluate(MARKS)
        assert drawn["paths"] >= least, (name, drawn)
        assert drawn["texts"] >= 4, (name, drawn)
        assert drawn["cut"] == [], (name, drawn)
        assert chart.get_attribute("aria-label")


def test_how_a_trial_was_run_is_told_and_what_is_wrong_stands_on_top(
    shown: Look, lab_page: Path
) -> None:
    page = shown(lab_page, 390, "light").page
    top = page.locator("#verdict").inner_text()
    assert "The audit of the evidence failed: incidents.csv: line 3" in top
    assert "were declared void" in top
    conduct = page.locator("#conduct").inner_text()
    for part in ("4 power cut", "more than 5", "second", "24 blind", "faults.csv", "nowhere"):
        assert part in conduct
    page.locator("#conduct a[href='#settings']").click()
    settings = page.locator("#settings")
    assert settings.evaluate("part => part.open")
    rows = dict(settings.locator("tbody tr").evaluate_all(
        "rows => rows.map(r => [r.cells[0].innerText, r.cells[2].innerText])"
    ))  # fmt: skip
    assert rows["severity_weights"] == "this project's choice"
    assert rows["price_card"] == "for this trial"
    digest = json.loads((lab_page.parent / "metrics.json").read_text())["configuration_digest"]
    assert digest in settings.inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_on_paper_the_charts_of_a_robot_are_whole(
    look: Look, lab_page: Path, tmp_path: Path, scheme: str
) -> None:
    page = look(lab_page, color_scheme=scheme).on_paper()
    assert page.locator("details:not([open])").count() == 0
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate(OVERFLOW) <= 0
    for name in LAB_CHARTS:
        assert page.locator(f".chart[data-figure={name}]").evaluate(MARKS)["cut"] == []
    paper = tmp_path / "report.pdf"
    page.pdf(path=paper, prefer_css_page_size=True)
    if shutil.which("pdftotext"):
        command = ["pdftotext", "-layout", str(paper), "-"]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for part in (
            "Conditions as a table", "MTBSI", "Settings of the metrics", "max_unmatched",
            "Missing for level 4", "calibration snapshots",
        ):  # fmt: skip
            assert part in text


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1300])
def test_curves_over_magnitudes_are_drawn_and_nothing_is_cut(
    shown: Look, arm_page: Path, width: int
) -> None:
    opened = shown(arm_page, width, "light")
    page = opened.page
    opened.assert_fits()
    drawn = page.locator(".chart[data-figure=doses]").evaluate(MARKS)
    # Five panels, two policies, and marks at three magnitudes.
    assert drawn["paths"] >= 5 * 2 * (1 + 3), drawn
    assert drawn["cut"] == []
    section = page.locator("#doses")
    rows = section.locator("table").first.locator("tbody tr")
    assert rows.count() == 5 * 2
    assert "object_noise (m) at payload 12" in section.inner_text()
    # Every condition has its cell: 1 without novelty, 3 and 3 along the axes, 9 pairs.
    assert page.locator("#cells tbody tr").count() == 16
    # What novelty changes this section tells alone; an arm does not tilt.
    assert page.locator("#effects").count() == 0
    assert page.locator("#stages tbody tr").count() == 2
    assert page.locator(".legend-line").count() == 0
    assert not page.locator("canvas.tilt").is_visible()
    assert arm_page.stat().st_size < 6_000_000


@pytest.mark.slow
def test_a_member_of_the_panel_is_said_to_have_no_curve(shown: Look, odd: Path) -> None:
    page = shown(odd / "few" / "report" / "index.html", 390, "light").page
    text = page.locator("#acc").inner_text()
    assert "firm has no curve: it is panel-firm, one of the 10 reference controllers" in text
    assert "random" in page.locator("#acc table").inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 768, 1300])
def test_the_index_shows_what_is_wrong_at_every_width(look: Look, odd: Path, width: int) -> None:
    opened = look(odd / "index.html", width=width)
    page = opened.page
    opened.assert_fits()
    badges = page.locator(".status").all_inner_texts()
    assert sorted(badges) == [
        "complete", "complete, not verified", "interrupted at 0/30", "interrupted at 3/30",
    ]  # fmt: skip
    dots = page.locator(".status").evaluate_all(
        "all => all.map(e => getComputedStyle(e, '::before').backgroundColor)"
    )
    good = page.evaluate(
        "() => { const e = document.querySelector('.outcome .good');"
        " return e ? getComputedStyle(e).backgroundColor : null; }"
    )
    assert good is not None
    assert good not in dots  # a finished run is not for that a good one


def test_who_prints_at_once_gets_the_charts(look: Look, page_file: Path, tmp_path: Path) -> None:
    never = "window.DecompressionStream = class { constructor() { return new TransformStream({"
    never += " transform: () => new Promise(() => {}) }) } }"
    page = look(shutil.copy(page_file, tmp_path / "page.html"), script=never).page
    assert page.locator(".chart[data-drawn]").count() == 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.locator(".chart:not([data-drawn])").first.wait_for(state="detached")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["few", "killed"])
def test_on_paper_no_text_of_a_chart_lies_on_another(look: Look, odd: Path, name: str) -> None:
    page = look(odd / name / "report" / "index.html").on_paper()
    assert page.evaluate(OVERLAPS) == []
    for chart in page.locator(".chart").all():
        assert chart.evaluate(MARKS)["cut"] == []


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_paper_no_column_is_cut_and_the_page_is_light(
    look: Look, page_file: Path, tmp_path: Path, scheme: str
) -> None:
    page = look(page_file, color_scheme=scheme).page
    paper = tmp_path / "report.pdf"
    page.pdf(path=paper, prefer_css_page_size=True)
    assert paper.stat().st_size > 30_000
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 695, "height": 1000})  # A4 between the margins
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate(OVERFLOW) <= 0
    wide = """[...document.querySelectorAll('table, .chart, svg.main-svg, canvas, pre')].filter(e =>
      e.getBoundingClientRect().right > document.documentElement.clientWidth + 1
    ).map(e => e.outerHTML.slice(0, 80))"""
    assert page.evaluate(wide) == []
    # What is closed on the screen is printed: the plan, the differences, what numbers mean.
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    # Every policy's column of the table of cells is shown, whatever the screen showed.
    assert page.locator(".cells thead th:visible").count() == 2 + 3
    if shutil.which("pdftotext"):
        command = ["pdftotext", "-layout", str(paper), "-"]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for name in ("random", "balancer", "adaptive"):
            assert text.count(name) >= 3
        for part in ("void_reasons:", "minus that of the matched control", "Reference panel"):
            assert part in text


def test_labels_and_roles_tell_what_is_drawn(wide: Any) -> None:
    page = wide.page
    unnamed = """
      [...document.querySelectorAll('canvas, .chart, input, select, button, nav, svg.range')]
      .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length))
      .map(e => e.outerHTML.slice(0, 80))"""
    assert page.evaluate(unnamed) == []
    assert page.locator("h1").count() == 1
    assert page.evaluate("document.documentElement.lang") == "en"
    tables = page.locator("table").count()
    assert page.locator("table caption").count() == tables


def test_the_index_lists_trials_and_says_what_is_broken(
    look: Look, trials: Path, tmp_path: Path
) -> None:
    from robo_eval.report.index import build_index

    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(3):
        shutil.copytree(trials / "small", folder / f"trial-{number}")
    (folder / "trial-1" / "plan.yaml").write_text("name: [broken", encoding="utf-8")
    shutil.rmtree(folder / "trial-2" / "report")
    for width in (390, 1300):
        opened = look(build_index(folder), width=width)
        page = opened.page
        opened.assert_fits()
        assert page.locator("tbody > tr").count() == 3
        broken = page.locator("tr.broken")
        assert broken.count() == 1
        assert "plan.yaml" in broken.inner_text()
        assert str(folder) not in page.content()
        assert page.locator("tbody a").count() == 1
    opened.page.locator("tbody a").click()
    opened.page.locator("html[data-ready=yes]").wait_for(state="attached")


def test_the_picture_of_the_page_is_not_blank(wide: Any) -> None:
    picture = wide.page.screenshot()
    assert len(zlib.compress(picture)) > 40_000
