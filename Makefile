# Everything a user or a contributor runs. Each target works alone in a new clone: it makes what it needs first.
#
#   make demo         train a spelling-to-sound model in about five minutes and look inside it
#   make test         the test suite (COVERAGE=1 adds the coverage table)
#   make lint         ruff, mypy and the floor plan of the package
#   make docs         the documentation site, into site/
#   make bench        speed beside other libraries, and the quality of every recipe (half a day; wants HEEDFUL_DATA and
#                     an idle machine)
#   make constraints  pin anew what a fresh environment gets

SHELL := /bin/bash
PYTHON ?= $(firstword $(shell command -v python3.11) python3)
BIN := .venv/bin
WORKERS ?= auto
TESTS ?=

.PHONY: install demo test lint format docs bench constraints clean

install: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Heedful needs Python 3.11 or newer. Try: make $(or $(MAKECMDGOALS),install) PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo 'Installing into .venv: PyTorch and the rest, some minutes the first time'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,demo]'
	@touch $@

demo: install
	$(BIN)/heedful demo

# One thread a worker: several workers with several threads each would stand in each other's way.
test: install
	OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) $(if $(COVERAGE),--cov=heedful --cov-report=term:skip-covered) $(TESTS)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Resumable: what stands in benchmarks/results/quality.json and bottleneck.json is not trained again.
bench: install
	for name in train_speed decode_speed quality bottleneck independence kill_resume; do \
		$(BIN)/python benchmarks/$$name.py || exit 1; \
	done

constraints:
	bash tools/constraints.sh "$(PYTHON)"

clean:
	rm -rf .venv build dist site htmlcov .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
