"""Tests of the page as text: what it says, and what it never says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from robo_eval.core.estimate import Estimate
from robo_eval.page.embed import packed
from robo_eval.page.render import tone
from robo_eval.report.model import LogCheck, Report
from robo_eval.report.page import Download, render

Maker = Callable[..., Report]
EVIL = "<script>alert(1)</script>"
VOID = {"meta", "link", "br", "input", "img", "hr"}


class Outline(HTMLParser):
    """Collects elements and checks that every one that opens closes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def outline(html: str) -> Outline:
    parser = Outline()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser


def test_every_section_is_there_and_the_verdict_is_first(make_report: Maker) -> None:
    page = outline(render(make_report(), []))
    sections = [attributes["id"] for attributes in page.of("section")]
    assert sections == [
        "verdict", "levels", "episode", "lengths", "effects", "acc", "cells", "data",
    ]  # fmt: skip
    charts = [a["data-figure"] for a in page.of("div") if a.get("class") == "chart"]
    assert charts == ["heat_map", "lengths", "effects", "curves", "spread"]


def test_every_table_has_a_caption_and_scoped_headers(make_report: Maker) -> None:
    page = outline(render(make_report(), []))
    assert len(page.of("table")) == len(page.of("caption")) == 5
    assert all(attributes.get("scope") for attributes in page.of("th"))
    figures = [a for a in page.of("div") if a.get("class") == "chart"]
    assert all(a["role"] == "img" and a["aria-label"] for a in figures)


def test_the_page_asks_nothing_of_the_network(make_report: Maker) -> None:
    page = outline(render(make_report(), []))
    for tag, attributes in page.elements:
        for name in ("src", "srcset", "href", "action", "data", "poster"):
            value = attributes.get(name) or ""
            is_link = tag == "a" and name == "href"
            assert is_link or not value or value.startswith("data:"), (tag, name, value)
    policy = next(a["content"] for a in page.of("meta") if a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "unsafe-eval" not in policy


def test_names_are_text_wherever_they_stand(make_report: Maker) -> None:
    html = render(make_report((EVIL, '" onload="alert(2)'), title=EVIL), [])
    assert EVIL not in html
    page = outline(html)
    assert not [a for _, a in page.elements if "onload" in a]
    scripts = len(page.of("script"))
    assert scripts == len(outline(render(make_report(), [])).of("script"))


def test_a_rate_stands_only_where_nearly_all_is_scored(make_report: Maker) -> None:
    full = render(make_report(scored=40), [])
    assert '<span class="rate">0.50</span>' in full
    assert "<b>20/40</b> scored episodes succeeded" in full
    nearly = render(make_report(scored=39), [])
    assert "1 missing (1 fault)" in nearly
    assert '<span class="rate">0.49</span>' in nearly
    partly = render(make_report(scored=14), [])
    assert '<span class="rate">' not in partly
    assert "14 of 40 scored" in partly
    assert "26 missing (26 fault)" in partly


@pytest.mark.parametrize(
    ("scored", "log", "badge"),
    [
        (40, LogCheck(rows=80), '<span class="status done">complete</span>'),
        (39, LogCheck(rows=80), '<span class="status open">complete, 2 without a score</span>'),
        (
            40,
            LogCheck(rows=80, problems=("row 3 was changed",)),
            '<span class="status bad">complete, not verified</span>',
        ),
    ],
)
def test_the_badge_is_calm_only_where_nothing_is_missing(
    make_report: Maker, scored: int, log: LogCheck, badge: str
) -> None:
    assert badge in render(make_report(scored=scored, log=log), [])


def test_a_log_that_does_not_verify_has_a_banner_before_the_result(make_report: Maker) -> None:
    problems = tuple(f"row {i} was changed <b>" for i in range(7))
    html = render(make_report(log=LogCheck(rows=80, problems=problems)), [])
    page = outline(html)
    banner = html.index('<div class="warning bad" role="alert">')
    assert banner < html.index('id="verdict"')
    assert "this log does not verify:" in html
    assert "row 4 was changed &lt;b&gt;" in html
    assert "and 2 more" in html
    assert "log verified" not in html
    assert not page.of("b") or all("row" not in str(a) for a in page.of("b"))
    sound = render(make_report(log=LogCheck(rows=1020)), [])
    assert "log verified (1\N{NO-BREAK SPACE}020 rows)" in sound
    assert 'class="warning bad"' not in sound


def test_every_printed_number_of_lengths_and_curves_has_interval_and_n(make_report: Maker) -> None:
    report = make_report()
    html = render(report, [])
    for caption in ("Time an episode lasts", "Read off the curves"):
        table = html.split(f"<caption>{caption}")[1].split("</table>")[0]
        for row in re.findall(r"<tr role=\"row\">.*?</tr>", table.split("<tbody")[1], re.DOTALL):
            values = re.findall(r'data-label="(?!episodes)[^"]*">(.*?)</td>', row)
            assert len(values) >= 2
            assert all(re.search(r'class="interval">[−0-9.]+ to', value) for value in values), row
            assert re.search(r'data-label="episodes">(<[^>]+>)?[0-9]', row)
    unknown = replace(
        report.lengths[0],
        median_s=Estimate(value=3.0, n=2, method="none", unit="s", reason="too few episodes"),
    )
    assert "no interval: too few episodes" in render(replace(report, lengths=[unknown]), [])


def test_outcomes_are_told_by_colour_and_in_words(make_report: Maker) -> None:
    page = outline(render(make_report(scored=14), []))
    bars = [a for a in page.of("span") if a.get("class") == "outcome"]
    assert [bar["aria-label"] for bar in bars] == [
        "steady: 7 succeeded, 7 failed, 26 missing",
        "shaky: 7 succeeded, 7 failed, 26 missing",
    ]
    assert all(bar["role"] == "img" for bar in bars)
    kinds = [a.get("class") for a in page.of("i") if "flex-grow" in (a.get("style") or "")]
    assert kinds == ["good", "bad", "missing"] * 2


def test_all_that_can_be_opened_is_open_on_paper(make_report: Maker) -> None:
    parts = outline(render(make_report(), [])).of("details")
    assert len(parts) == 5
    assert all("printed" in (part.get("class") or "") for part in parts)


def test_embedded_json_is_valid_and_finite(make_report: Maker) -> None:
    html = render(make_report(), [])
    found = re.findall(
        r'<script type="application/json" id="([^"]+)">(.*?)</script>', html, re.DOTALL
    )
    assert {key for key, _ in found} == {"figures", "dark-colours"}
    for _, text in found:
        json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


def test_downloads_are_inside_where_they_fit_and_beside_where_not(make_report: Maker) -> None:
    files = [
        Download(name="episodes.csv", mime="text/csv", size="1 kB", packed=packed(b"a\n")),
        Download(name="metrics.json", mime="application/json", size="9 MB"),
    ]
    page = outline(render(make_report(), files))
    links = {a["download"]: a for a in page.of("a") if "download" in a}
    assert links["episodes.csv"]["data-packed"] == "file-episodes-csv"
    assert "data-packed" not in links["metrics.json"]
    assert links["metrics.json"]["href"] == "metrics.json"


def test_tone_meets_the_scale_at_its_stops() -> None:
    assert tone(1.0) == "#e2eed0"
    assert tone(0.25) == "#98323f"
    assert tone(0.0) < tone(1.0)
