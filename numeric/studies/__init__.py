"""Studies that run for a while, leave a record on disk and a figure: depth, width and linearization."""
