# Two commands do everything from a fresh clone: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ACTIVATION ?= tanh

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[test]"
	touch $@

.PHONY: install demo test lint verify clean generate bench
install: $(VENV)/.installed

demo: install  # the main job on the default activation
	@mkdir -p reports
	$(BIN)/derive criticality $(ACTIVATION) > reports/$(ACTIVATION)-criticality.txt
	@cat reports/$(ACTIVATION)-criticality.txt
	@echo
	@echo "This is in reports/$(ACTIVATION)-criticality.txt. Next: $(BIN)/derive --help"

lint: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: install lint
	$(BIN)/pytest -n 2 -m "not slow"

verify: install
	$(BIN)/pytest -n 2 -m slow

generate: install  # renew numeric/generated/
	$(BIN)/python -m derive.codegen

bench: install  # BENCH=--peer also runs neural-tangents, in an environment of its own
	$(BIN)/python bench/run.py $(BENCH)

clean:
	rm -rf $(VENV) build dist *.egg-info
