"""The scripts here make reference data; they are run by hand and hold no tests."""

collect_ignore_glob = ["*/make*.py"]
