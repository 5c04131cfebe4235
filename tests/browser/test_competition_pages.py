"""The pages of a competition in a real browser, from a real server, by keyboard and on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from robo_eval.compete.ledger import KEY
from robo_eval.compete.pages import desk, site
from tests.unit.compete.door.conftest import Served, tiny
from tests.unit.compete.pages.conftest import played

pytestmark = pytest.mark.browser
PATIENCE_MS = 120_000


@pytest.fixture(scope="module")
def cup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A competition that `alice` has played; tests go on with it in their order."""
    pytest.importorskip("pybullet", reason="the simulator is not installed: pip install .[sim]")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "EVERY", "300ms")
        patch.setattr(desk, "_REST_S", (0.0, 0.0))
        served: Any = Served(tmp_path_factory.mktemp("pages") / "cup", tiny(level=6, ticks=60))
        served.tokens = {"alice": played(served, "alice")}
        served.tokens["organiser"] = (served.folder / KEY).read_text().strip()
        yield served
        served.stop()


@pytest.fixture
def come(chromium: Any, cup: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page in a browser of its own; no console may say anything."""
    said: list[str] = []
    with ExitStack() as stack:

        def one(path: str, *, width: int = 1300, scheme: str = "light", name: str = "") -> Any:
            size = {"width": width, "height": 900}
            context = chromium.new_context(viewport=size, color_scheme=scheme, base_url=cup.url)
            stack.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(PATIENCE_MS)
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.goto(path)
            if name:
                page.fill("[name=password]", cup.tokens[name])
                page.keyboard.press("Enter")
                page.wait_for_url(lambda url: "/login" not in url)
            return page

        yield one
    assert said == []


def press(page: Any, key: str, until: str, most: int = 30) -> None:
    """Press a key until something has the focus, and shows it."""
    for _ in range(most):
        page.keyboard.press(key)
        if page.evaluate("one => document.activeElement.matches(one)", until):
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", f"{until} shows that it has the focus"
            return
    raise AssertionError(f"{key} does not lead to {until}")


def test_a_leaderboard_is_live_and_a_team_logs_in_by_keyboard(come: Any, cup: Any) -> None:
    page = come("/")
    row = page.locator(".board tr", has_text="alice")
    assert "0." in row.inner_text()
    page.evaluate("window.isSamePage = true")
    cup.team("late-comers")
    page.get_by_role("rowheader", name="late-comers").wait_for()
    assert page.evaluate("window.isSamePage"), "the page was not loaded anew"
    press(page, "Tab", "a[href='/login']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/login")
    page.keyboard.type(cup.tokens["alice"])
    page.keyboard.press("Enter")
    page.wait_for_url("**/team")
    assert page.locator("h1").inner_text() == "alice"
    assert "hidden until" in page.locator("main").inner_text()
    press(page, "Tab", ".leave button")
    page.keyboard.press("Enter")
    page.wait_for_url("**/login")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_on_a_phone(come: Any, scheme: str) -> None:
    for path, name in (("/", ""), ("/team", "alice"), ("/organiser", "organiser")):
        page = come(path, width=390, scheme=scheme, name=name)
        assert page.locator("main section").count() >= 3
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(15, 20, 27)") == (scheme == "dark")


def test_after_the_reveal_a_film_plays_by_keyboard(come: Any, cup: Any) -> None:
    page = come("/team", name="alice")
    page.evaluate("window.isSamePage = true")
    cup.ledger.close()
    cup.ledger.reveal()
    page.get_by_role("link", name="Film").first.wait_for()
    assert page.evaluate("window.isSamePage")
    press(page, "Tab", "a[aria-label^='Film']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/team/1/*/*")
    page.locator(".player[data-ready]").wait_for()
    press(page, "Tab", ".stage")
    page.keyboard.press("End")
    slider = page.locator(".player input[type=range]")
    assert slider.input_value() == slider.get_attribute("max")
    ink = page.evaluate(
        """() => { const scene = document.querySelector("canvas.scene");
          const { data } = scene.getContext("2d").getImageData(0, 0, scene.width, scene.height);
          return data.filter((value, at) => at % 4 === 3 && value).length; }"""
    )
    assert ink > 1000, "something is drawn"
    page.goto("/")
    page.get_by_role("columnheader", name="level 6 gravity, easy").wait_for()
    page.get_by_role("columnheader", name="M2.1 false alarm").wait_for()
    page.set_viewport_size({"width": 390, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    table = page.locator(".scroll", has_text="M2.1 false alarm")
    assert table.evaluate("one => one.scrollWidth > one.clientWidth"), "it scrolls by itself"
    shades = "one => getComputedStyle(one).backgroundAttachment"
    assert table.evaluate(shades) == "local, local, scroll, scroll", "its cut edge is shaded"
