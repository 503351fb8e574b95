"""The explorer: one local page on which an activation is typed and its theory is seen, served to this machine only."""
