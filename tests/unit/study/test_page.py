"""The page of a study holds what was found, in one file, whatever tests are called."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from robo_eval.analysis.aiq import mccp
from robo_eval.core.errors import TrialDirectoryError
from robo_eval.report.build import MAX_BYTES
from robo_eval.study import figures, space_figures
from robo_eval.study.agent_figures import measures
from robo_eval.study.page import PAGE_NAME, hull_choices, page_data, render, write_page
from robo_eval.study.page_words import accord, notes

Made = Callable[..., Any]
HOSTILE = [
    "</script><script>window.harmed=1</script>",
    "<img src=x onerror=alert(1)>",
    "\"&amp;'",
    "d",
]


def _embedded(page: str, key: str) -> Any:
    found = re.search(rf'<script type="application/json" id="{key}">(.*?)</script>', page)
    assert found is not None
    return json.loads(found[1])


def _texts(page: str) -> str:
    """What the page says outside its programs."""
    bare = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]*>", " ", bare))


@pytest.fixture(scope="module")
def made(invented_study: Made) -> Any:
    return invented_study(["north", "south", "east", "west", "up"])


@pytest.fixture(scope="module")
def page(made: Any) -> str:
    suite, outcome, rankings = made
    return render(outcome, rankings, suite=suite)


def test_the_page_says_what_was_found(made: Any, page: str) -> None:
    suite, outcome, _ = made
    text = _texts(page)
    for place, name in enumerate(outcome.measured.tests):
        assert name in text
        area = f"{round(outcome.complexities[place].value):,}".replace(",", "\N{NO-BREAK SPACE}")
        assert area in text
    for estimate in outcome.pairs.values():
        assert f"{estimate.value:.3f}" in text
    for expected in (f"seed {suite.seed}", "60 policies", "3 trainings", *outcome.warnings):
        assert expected in text
    assert "not measured" in text  # the entropy of the second test


def test_the_page_shows_ranked_agents(made: Any, page: str) -> None:
    text = _texts(page)
    assert "simulation, all difficulties" in text
    assert "robot, all difficulties" in text
    assert "partial has a higher mean than blind and a lower AIQ, because of north." in text
    assert "not played" in text
    suite, outcome, _ = made
    without = render(outcome, suite=suite)
    assert 'id="agents"' not in without
    assert 'id="agents"' in page


def test_pictures_are_filled_from_the_raw_numbers(made: Any, page: str) -> None:
    _, outcome, _ = made
    data = _embedded(page, "study")
    assert np.array(data["pool"]) == pytest.approx(outcome.measured.performances, abs=1e-4)
    assert data["sizes"] == outcome.measured.sizes.tolist()
    for (i, j), estimate in outcome.pairs.items():
        ends = [np.mean(data["alone"][j]), np.mean(data["alone"][i])]
        inner = np.array(data["mixed"][f"{i} {j}"]).mean(axis=0)
        observed = np.array([ends[0], *inner, ends[1]])
        assert data["reached"][f"{i} {j}"] == pytest.approx(observed, abs=1e-3)
        p = np.array([0.0, *data["shares"], 1.0])
        line = p * ends[1] + (1.0 - p) * ends[0]
        assert np.trapezoid(np.abs(observed - line), p) == pytest.approx(estimate.value, abs=1e-3)
    for place, curve in enumerate(outcome.curves):
        assert np.mean(data["curves"][place]) == pytest.approx(curve.area, abs=0.1)
        low, high = data["seen"][place]
        assert np.isfinite(curve.observed[[low, high]]).all()


def test_hulls_are_those_of_the_agents_that_played_everything(made: Any) -> None:
    _, outcome, rankings = made
    keys = [item.key for group in hull_choices(rankings) for item in group.items]
    assert keys == ["0 0", "0 1", "0 2", "1 0", "1 1"]
    hulls = page_data(outcome, rankings)["hulls"]
    assert set(hulls) == {"suite", *keys}
    points = np.array(hulls["0 1"]["points"])
    own = outcome.space.points[:, :3] * rankings[0].agents[1].performances[:, None]
    assert points[0] == pytest.approx(0.0)
    assert points[1:] == pytest.approx(own, abs=1e-4)
    # Every face has all points on one side.
    for face in hulls["0 1"]["faces"]:
        a, b, c = points[face]
        side = (points - a) @ np.cross(b - a, c - a)
        assert side.max() < 1e-4 or side.min() > -1e-4


def test_an_agent_that_fails_everywhere_has_no_hull(made: Any) -> None:
    _, outcome, rankings = made
    rankings[0].agents[2].performances[:] = 0.0
    hull = page_data(outcome, rankings)["hulls"]["0 2"]
    assert hull["faces"] == []
    assert hull["ring"] == []
    assert render(outcome, rankings)


def test_the_page_needs_nothing_but_itself(page: str) -> None:
    bare = re.sub(r'<script type="application/octet-stream".*?</script>', "", page, flags=re.DOTALL)
    assert re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?(?:https?:)?//', bare) == []
    assert "default-src 'none'" in page
    packed = re.search(r'id="plotly">(.*?)</script>', page)
    assert packed is not None
    assert b"plotly.js" in gzip.decompress(base64.b64decode(packed[1]))[:300]


def test_names_of_tests_are_text_wherever_they_stand(invented_study: Made) -> None:
    suite, outcome, rankings = invented_study(HOSTILE)
    text = render(outcome, rankings, suite=suite)
    assert "window.harmed=1</script>" not in text
    assert "<img src=x" not in text
    for key in ("study", "figures"):
        assert "<img" not in json.dumps(_embedded(text, key))
    assert _texts(text).count(HOSTILE[1]) > 5


@pytest.mark.slow
def test_seventeen_tests_fit(invented_study: Made) -> None:
    suite, outcome, rankings = invented_study([f"level {number}" for number in range(17)])
    assert len(render(outcome, rankings * 4, suite=suite).encode()) < MAX_BYTES


def test_what_is_not_a_number_is_no_number_on_the_page(page: str) -> None:
    for key in ("study", "figures"):
        assert _embedded(page, key)
    assert "nan" not in _texts(page).lower().split()


def test_pairs_like_noise_are_marked(made: Any) -> None:
    _, outcome, _ = made
    floor, table = outcome.dissimilarities.floor, outcome.dissimilarities.table
    marked = {pair for pair in outcome.pairs if figures.is_like_noise(outcome, *pair)}
    assert marked == {(i, j) for i, j in outcome.pairs if table[i, j] <= 2 * floor}


def test_the_envelope_has_no_gap_below() -> None:
    sizes, performances = [10, 20, 40], [0.35, 0.55, 0.75]
    assert figures.seen(mccp(sizes, performances, bins=10)) == (3, 7)
    assert figures.seen(mccp(sizes, performances, bins=10, variant="envelope")) == (0, 7)


def test_measures_agree_only_where_there_is_something_to_agree_on(made: Any) -> None:
    _, _, rankings = made
    one = replace(rankings[0], disagreements=[])
    assert accord([one]) == "No measure ranks two agents otherwise than their means do."
    assert accord(rankings[:1]) == ""  # partial and blind
    assert accord([]) == accord([replace(one, agents=one.agents[:1])]) == ""


def test_plotly_knows_all_that_pictures_say(page: str) -> None:
    for name, forms in _embedded(page, "figures").items():
        for form in forms.values():
            assert go.Figure(form).layout.height > 0, name


def test_alike_tests_stand_side_by_side(made: Any) -> None:
    _, outcome, _ = made
    order = outcome.tree.leaves
    assert sorted(order) == list(range(5))
    table = outcome.dissimilarities.table
    i, j = min(outcome.pairs, key=lambda key: table[key])
    assert abs(order.index(i) - order.index(j)) == 1
    drawn = figures.dissimilarity_map(outcome)
    z = np.array(next(one["z"] for one in drawn.data if one["type"] == "heatmap"))
    expected = table.copy()
    np.fill_diagonal(expected, outcome.itself)
    assert z == pytest.approx(expected[np.ix_(order, order)])


@pytest.mark.parametrize("is_narrow", [False, True])
def test_bars_are_complexities_and_say_what_is_extrapolated(made: Any, is_narrow: bool) -> None:
    _, outcome, _ = made
    drawn = figures.complexities(outcome, narrow=is_narrow)
    seen, beyond = (np.array(one["x"]) for one in drawn.data[:2])
    areas = sorted((one.area for one in outcome.curves), reverse=True)
    assert seen + beyond == pytest.approx(areas)
    shares = {one.area: one.extrapolated_share for one in outcome.curves}
    assert beyond == pytest.approx([area * shares[area] for area in areas])


def test_dimensions_are_drawn_without_sign(made: Any) -> None:
    _, outcome, _ = made
    drawn = figures.dimensions(outcome)
    reach = np.array(next(one["z"] for one in drawn.data if one["type"] == "heatmap"))
    assert reach == pytest.approx(np.abs(outcome.space.points)[outcome.tree.leaves])
    shares = next(one["y"] for one in drawn.data if one["type"] == "bar")
    assert list(shares) == pytest.approx(list(outcome.space.shares))


def test_names_in_the_plane_do_not_cover_each_other() -> None:
    places = np.random.default_rng(2).uniform(0.0, 300.0, (40, 2))
    texts, sides = space_figures._labels(places, [f"test {number}" for number in range(40)])
    boxes = []
    for place, text, side in zip(places, texts, sides, strict=True):
        if text:
            half = np.array([3.4 * len(text), 7.0])
            boxes.append((place + np.array(space_figures._SIDES[side]) * (half + 5.0), half))
    assert 10 < len(boxes) < 40
    for number, (centre, half) in enumerate(boxes):
        for other, own in boxes[:number]:
            assert (np.abs(centre - other) >= half + own - 1e-9).any()


def test_agents_without_a_value_have_no_point(made: Any) -> None:
    _, _, rankings = made
    drawn = measures(rankings)
    by_name = [one for one in drawn.data if "robot" in one["name"]]
    assert len(by_name[0]["x"]) == 2  # the third was not played on the robot
    assert len(drawn.data) == 2 * 6


def test_doubts_are_said_once_for_all_agents(invented_study: Made) -> None:
    _, _, rankings = invented_study(["a", "b", "c"])
    few = "a test has 3 episodes only"
    agents = [replace(one, aiq=replace(one.aiq, reason=few)) for one in rankings[0].agents]
    acc = replace(rankings[0].acc, panel_members={"calm": "steady 3, a member of the panel)"})
    said = notes(replace(rankings[0], agents=agents, acc=acc))
    assert said[0] == f"AIQ of {', '.join(one.policy for one in agents)}: {few}"
    assert any("calm is steady 3" in text for text in said)
    assert notes(rankings[0]) == []


def test_the_page_goes_into_a_folder_or_under_a_name(made: Any, tmp_path: Path) -> None:
    _, outcome, _ = made
    assert write_page(outcome, tmp_path) == tmp_path / PAGE_NAME
    assert write_page(outcome, tmp_path / "other.html") == tmp_path / "other.html"
    assert (tmp_path / PAGE_NAME).read_bytes() == (tmp_path / "other.html").read_bytes()


def test_a_page_that_cannot_be_written_is_one_clear_message(made: Any, tmp_path: Path) -> None:
    _, outcome, _ = made
    with pytest.raises(TrialDirectoryError, match=r"page\.html: cannot be written"):
        write_page(outcome, tmp_path / "nowhere" / "page.html")
