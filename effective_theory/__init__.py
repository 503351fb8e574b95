"""What `derive` and `numeric` both ask of the operating system: files written safely, cache folders of our own."""
