# make demo: set up and run the main job. make test: every check. See README.md.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

CHROMIUM := /usr/bin/chromium
APT := $(if $(filter 0,$(shell id -u)),,sudo -n )apt-get

.PHONY: install demo chromium test test-slow bench docs clean

# A stamp per set of packages: each is installed when first needed, and again when pyproject.toml changes.
$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/.installed-%: pyproject.toml $(VENV)/.installed
	$(PIP) -e '.[$*]'
	touch $@

install: $(VENV)/.installed

demo: install
	$(BIN)/ringleader demo

# The report is tested in a browser. Where there is none and none can be had, that test is skipped and says so.
chromium:
	@test -x $(CHROMIUM) || { $(APT) update -qq && $(APT) install -y -qq --no-install-recommends chromium; } \
		>/dev/null 2>&1 || echo "no chromium: the report is not tested in a browser"

test: $(VENV)/.installed-test chromium
	$(BIN)/ruff check src tests benchmarks examples docs/hooks.py
	$(BIN)/ruff format --check src tests benchmarks examples docs/hooks.py
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile

test-slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m slow

bench: $(VENV)/.installed-test
	$(BIN)/python benchmarks/data_path.py

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis test-artifacts
