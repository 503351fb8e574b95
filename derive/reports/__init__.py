"""Derivation reports: what was derived for an activation, as one self-contained HTML file, Markdown and LaTeX."""
