"""What `derive` and `numeric` both need and neither owns: files written safely, cache folders of our own, axes."""
