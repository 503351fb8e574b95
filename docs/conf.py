"""Sphinx configuration: everything renders with no network; what can be collected from the code is not typed."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "The effective theory of deep learning, as software"
author = "the effective-theory developers"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax", "collected", "unfolded"]
exclude_patterns = ["_build", "static", "**/.ipynb_checkpoints"]
html_theme = "furo"
html_static_path = ["_build/static", "static"]
html_extra_path = ["_build/extra"]  # the explorer: one HTML file of its own
html_css_files = ["site.css"]
html_permalinks = False
smartquotes = False  # --data is an option, no dash
html_show_copyright = False
html_use_index = False
html_domain_indices = False
html_title = "Effective theory"
mathjax_path = "mathjax.js"  # written by the `collected` extension: the reports' own bundle, so there is one copy
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks are executed by the tests and stored with their outputs
autodoc_typehints = "description"
autodoc_member_order = "bysource"
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type"]  # the numbers behind a figure, which a check reads
