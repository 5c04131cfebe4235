"""How Sphinx turns this folder into pages."""

project = "robo-eval"
author = "The robo-eval contributors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["README.md"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
autodoc_typehints = "none"
autodoc_member_order = "bysource"
html_theme = "alabaster"
html_theme_options = {"page_width": "70rem", "sidebar_width": "14rem"}
html_show_copyright = False
