# make demo: set up and run the main job. make test: every check. See README.md.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
# What is imported is compiled to bytecode then; all that is installed would take half a minute more.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile

# Each module is compiled once for all processes, also where the environment says otherwise: it takes seconds of every command.
unexport PYTHONDONTWRITEBYTECODE

SOURCES := src tests benchmarks examples tools docs/hooks.py
OLDEST := .venv-oldest

CHROMIUM := /usr/bin/chromium
APT := $(if $(filter 0,$(shell id -u)),,sudo -n )apt-get

.PHONY: install demo chromium style types kernels test test-gpu test-slow test-faults test-oldest coverage bench figures docs constraints audit dist clean

# A stamp per set of packages: each is installed when first needed, and again when pyproject.toml changes.
$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/.installed-%: pyproject.toml $(VENV)/.installed
	$(PIP) -e '.[$*]'
	touch $@

$(VENV)/.installed-test $(VENV)/.installed-lint &: pyproject.toml $(VENV)/.installed
	$(PIP) -e '.[test,lint]'
	touch $(VENV)/.installed-test $(VENV)/.installed-lint

install: $(VENV)/.installed

demo: install $(VENV)/.installed-console
	$(BIN)/ringleader demo

# The report is tested in a browser. Where there is none and none can be had, that test is skipped and says so.
chromium:
	@test -x $(CHROMIUM) || { $(APT) update -qq && $(APT) install -y -qq --no-install-recommends chromium; } \
		>/dev/null 2>&1 || echo "no chromium: the report is not tested in a browser"

style: $(VENV)/.installed-lint
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/lint-imports

types: $(VENV)/.installed-lint
	$(BIN)/mypy

# They need no package of the tests, which are installed meanwhile: hence the path.
kernels: $(VENV)/.installed
	PYTHONPATH=src $(BIN)/python tests/compile_kernels.py

# Files go to the workers in the order of their names: units, which are short, come last, so that all end together. Three
# workers for two processors: tests wait for disks, browsers and clusters a quarter of their time.
test: chromium
	$(MAKE) --no-print-directory -j 3 kernels $(VENV)/.installed-test style types
	$(BIN)/python -m pytest -m "not slow" -n 3 --dist loadfile --no-loadscope-reorder --durations 40

test-slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m "slow and not faults"

# Faults of the disk at every call, kills, damage and forgery of every part, ten minutes of fuzz, load: an hour of one core.
test-faults: $(VENV)/.installed-test
	RINGLEADER_FUZZ_SECONDS=600 $(BIN)/python -m pytest -m "faults or not slow" tests/faults

# On a machine with an NVIDIA GPU: the same tests as everywhere, on the device, and the device's memory watched.
test-gpu: $(VENV)/.installed-test $(VENV)/.installed-gpu
	$(BIN)/python -m pytest tests/contract tests/unit/test_device.py tests/unit/test_device_faults.py -k cuda
	RINGLEADER_GPUS=0,0 $(BIN)/python -m pytest tests/contract/test_kernels_backends.py -k "cuda and every_operation"
	for tool in memcheck racecheck; do for gpus in 0 0,0; do RINGLEADER_GPUS=$$gpus compute-sanitizer --tool $$tool \
	    --error-exitcode 1 $(BIN)/python tests/contract/bits.py cuda 100 7 24 33 64 || exit 1; done; done

# The lower bounds of pyproject.toml, in an environment of its own: they install as wheels (but for odfpy, which has none)
# and the quick tests pass.
test-oldest:
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(PYTHON) tools/lower_bounds.py > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip --disable-pip-version-check install --quiet --only-binary :all: --no-binary odfpy \
		--constraint $(OLDEST)/constraints.txt -e '.[test]'
	NUMBA_CACHE_DIR=$(OLDEST)/numba RINGLEADER_FRESH_COMMANDS=1 $(OLDEST)/bin/python -m pytest -m "not slow" -n 2 --dist loadfile --no-loadscope-reorder \
		tests/unit tests/contract tests/cli

# Kernels are measured with the compiler off, by the tests of their contract; all the rest as it runs.
coverage: $(VENV)/.installed-test
	for problem in "150 3 9 24" "2200 3"; do \
		NUMBA_DISABLE_JIT=1 $(BIN)/python -m coverage run tests/contract/bits.py numba $$problem >/dev/null || exit 1; done
	$(BIN)/python -m coverage combine
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile --no-loadscope-reorder --cov --cov-append \
		--cov-report=term:skip-covered --cov-report=html:build/coverage

bench: $(VENV)/.installed-test
	$(BIN)/python benchmarks/data_path.py

# Figures that README.md and docs/ show below their commands, from what the commands print now.
figures: $(VENV)/.installed-test
	$(BIN)/python benchmarks/write_docs.py --figures

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The test environment by version and hash; make audit: known vulnerabilities, a bill of materials in build/, and the
# workflow by its schema. Where the database of vulnerabilities cannot be reached, it says so and fails.
constraints: $(VENV)/.installed-test
	$(BIN)/python tools/constraints.py > constraints.txt.partial && mv constraints.txt.partial constraints.txt

audit: $(VENV)/.installed-test $(VENV)/.installed-release
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/python tools/audit.py build

# Wheel and source distribution, built twice with the same bytes, installed into an empty environment and tried there.
dist: $(VENV)/.installed-release
	$(BIN)/python tools/reproducible.py dist

clean:
	rm -rf $(VENV) $(OLDEST) .coverage site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis test-artifacts
