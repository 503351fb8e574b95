# Two commands do everything from a fresh clone: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ACTIVATION ?= tanh

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -e ".[test]"
	touch $@

.PHONY: install demo test lint verify stored mutants clean generate bench docs notebooks
install: $(VENV)/.installed

demo: install  # the report of the default activation; make demo ACTIVATION=gelu for another one
	$(BIN)/derive report "$(ACTIVATION)" -o reports
	@echo "Open the HTML file above in a browser. Next: $(BIN)/derive --help"

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: install lint  # a file goes to one core: what it compiles and its fixtures are made once
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow"

verify: docs mutants  # the slow checks, every page of the docs in a browser among them
	$(BIN)/pytest -n 2 -m slow
	$(BIN)/python tests/data/recheck.py --long

mutants: install  # do the tests of trained networks notice changed code? MUTANTS="--sample 400 --seed 1" for another sample
	$(BIN)/python tests/mutation/reach.py
	$(BIN)/python tests/mutation/run.py $(or $(MUTANTS),--again)

stored: install  # does what is stored still hold? STORED=--long for all of it, notebooks included
	$(BIN)/python tests/data/recheck.py $(STORED)

generate: install  # renew numeric/generated/
	$(BIN)/python -m derive.codegen

bench: install  # BENCH=--peer also runs neural-tangents, in an environment of its own
	$(BIN)/python bench/run.py $(BENCH)

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[docs,notebooks]"
	touch $@

docs: $(VENV)/.docs  # the site, with the reports of all built-in activations
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "The site is docs/_build/html/index.html"

notebooks: $(VENV)/.docs  # execute all of them and store their outputs
	$(BIN)/python notebooks/build.py

clean:
	rm -rf $(VENV) build dist *.egg-info
