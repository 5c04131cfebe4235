"""How content and templates become one HTML page that needs nothing but itself."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

import jinja2
from jinja2.bccache import Bucket
from markupsafe import Markup

import robo_eval
from robo_eval.core.wording import NOT_RECORDED, in_short, p_text
from robo_eval.page import words
from robo_eval.page.embed import packed_plotly, script_json, static
from robo_eval.page.figures import Forms, heights_of
from robo_eval.page.theme import PERFORMANCE_SCALE, POLICY, Style, dark_colours

_DASH_ARRAYS: Final = {
    "solid": "none",
    "dash": "7 4",
    "dot": "2.5 3",
    "dashdot": "7 3 2 3",
    "longdash": "12 4",
    "longdashdot": "12 3 2 3",
}


class Kept(jinja2.FileSystemBytecodeCache):
    """Compiled templates, kept as Python keeps its own code; none where there is no place."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was compiled, if there is a place for it."""
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                Path(self.directory).mkdir(exist_ok=True)
                super().dump_bytecode(bucket)


@cache
def environment() -> jinja2.Environment:
    """The templates, with autoescape on for every one of them."""
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("robo_eval.page", "templates"),
        autoescape=True,
        # Compiling takes longer than all else of a small report.
        bytecode_cache=Kept(str(Path(__file__).with_name("templates") / "__pycache__")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals.update(
        static=static,
        number=words.number,
        mark=words.MARK,
        no_interval_mark=words.NO_INTERVAL,
        no_interval=words.no_interval,
        bounds_or_reason=words.bounds_or_reason,
        bounds=words.bounds,
        percent=words.percent,
        count=words.count,
        in_short=in_short,
        p_text=p_text,
        missing_words=words.missing_words,
        not_recorded=NOT_RECORDED,
        interval_text=words.interval_text,
        thousands=words.thousands,
        tone=tone,
        dash_array=_DASH_ARRAYS.__getitem__,
        colour_variable=_colour_variable,
        software=robo_eval.__version__,
    )
    return env


def render_page(
    template: str,
    charts: Mapping[str, Forms],
    packs: Mapping[str, str] | None = None,
    **content: object,
) -> str:
    """A page with pictures.

    Args:
        template: Its file.
        charts: Its pictures by name.
        packs: What it carries besides the program that draws them, by id; see `embed.packed`.
        content: What the template asks for.
    """
    carried = {"plotly": packed_plotly(), **(packs or {})}
    return (
        environment()
        .get_template(template)
        .render(
            heights=heights_of(charts),
            figures=script_json(charts),
            packs=[(key, Markup(text)) for key, text in carried.items()],  # noqa: S704 - base64
            dark_colours=script_json(dark_colours()),
            **content,
        )
    )


def tone(value: float) -> str:
    """The heat map's colour for a performance, as a CSS colour.

    Example:
        >>> tone(0.0)
        '#4d1430'
    """
    stops = PERFORMANCE_SCALE
    for (left, low), (right, high) in pairwise(stops):
        if value <= right:
            share = (value - left) / (right - left)
            mixed = (
                round(int(low[i : i + 2], 16) * (1 - share) + int(high[i : i + 2], 16) * share)
                for i in (1, 3, 5)
            )
            return "#" + "".join(f"{part:02x}" for part in mixed)
    return stops[-1][1]


def _colour_variable(style: Style) -> str:
    return f"var(--policy-{POLICY.index(style.colour)})"
