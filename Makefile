# Everything starts here: `make demo` and `make test` set themselves up on a fresh machine.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# Without compiled modules each process that a test starts would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow smoke lint size docs regenerate bench clean

help:  ## show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(STAMP)  ## create .venv and install dcem into it (once; later runs reuse it)

$(STAMP): pyproject.toml constraints.txt
	@echo "==> setting up $(VENV): installing dcem, its extras and its test tools (a few minutes, once)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dcem needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12 setup"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(STAMP)  ## audit simulated patients, compare models, show the truth beside, write the pages
	@echo "==> dcem demo: simulated patients, an audit, a comparison, two pages (under a minute)"
	@$(BIN)/dcem demo --out demo-output

test: $(STAMP)  ## run the tests
	@echo "==> running the tests"
	@$(BIN)/python -m pytest -n 2 --dist loadfile

test-slow: $(STAMP)  ## run all tests, the long ones included
	@$(BIN)/python -m pytest -n 2 --dist loadfile --slow

smoke: $(STAMP)  ## install what is published into empty environments: the core alone, and everything
	@echo "==> the wheel without torch, the sdist with every extra"
	@PYTHON=$(abspath $(BIN)/python) .ci/smoke core
	@PYTHON=$(abspath $(BIN)/python) .ci/smoke all

lint: $(STAMP)  ## ruff (lint and format) and mypy
	@echo "==> ruff and mypy"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

size:  ## lines, tokens and branchy functions of each room, against its budget
	@$(PYTHON) .ci/size.py

docs: $(STAMP)  ## build the documentation site, strictly, into site/
	@echo "==> building the documentation"
	@$(BIN)/zensical build --clean --strict

regenerate: $(STAMP)  ## write anew whatever in docs/ is made from code and recorded results
	@for f in $(filter-out docs/make/running.py,$(wildcard docs/make/*.py)) experiments/figures.py; \
	  do $(BIN)/python $$f || exit 1; done

bench: $(STAMP)  ## measure speed, as ratios within one run
	@echo "==> speed (ratios within one run; machines are noisy)"
	@for f in speed/bench_*.py; do echo "--- $$f"; $(BIN)/python $$f || exit 1; done

clean:  ## remove what was made, .venv included
	rm -rf $(VENV) dist site .cache demo-output .mypy_cache .pytest_cache .ruff_cache
