"""How Sphinx turns this folder into pages."""

from __future__ import annotations

import re
from typing import Any

project = "robo-eval"
author = "The robo-eval contributors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["README.md", "environments/*_strengths.md"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
autodoc_typehints = "none"
autodoc_member_order = "bysource"
html_theme = "furo"
html_title = "robo-eval"
html_static_path = ["static"]
html_css_files = ["tables.css"]
html_show_copyright = False


def name_files_outside(_app: Any, _page: str, source: list[str]) -> None:
    """Name, instead of link, the files that are in the repository but not in these pages."""
    link = r"(?<!!)\[([^\]]+)\]\(\.\./([^)\s]+)\)"
    source[0] = re.sub(link, r"\1 (`\2`)", source[0])


def double_backticks(
    _app: Any,
    _what: str,
    _name: str,
    _object: object,
    _options: object,
    lines: list[str],
) -> None:
    """Docstrings mark code with one backtick, as Markdown does; reStructuredText wants two."""
    lines[:] = [re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", line) for line in lines]


def setup(app: Any) -> None:
    """Connect the two rewritings; before napoleon, which reads the sections of docstrings."""
    app.connect("source-read", name_files_outside)
    app.connect("autodoc-process-docstring", double_backticks, priority=400)
