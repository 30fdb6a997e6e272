PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test bench format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

demo: $(READY) ## watch holdfast at work
	@$(BIN)/holdfast demo

test: $(READY) ## format, lint, types and tests, then the tests on every other supported Python found
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pytest
	$(BIN)/python tools/other_pythons.py

bench: $(READY) ## measure the storage backends
	@$(BIN)/python benchmarks/storage.py

format: $(READY) ## format the code and fix what the linter can
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean: ## remove the environments and caches
	rm -rf .venv .venv-3.* .hypothesis .mypy_cache .pytest_cache .ruff_cache dist
	find . -name __pycache__ -prune -exec rm -rf {} +

# Build isolation heeds no -c option: older pips read PIP_CONSTRAINT there, newer ones PIP_BUILD_CONSTRAINT.
# Both hold a URI because pip splits them at spaces.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
		echo "holdfast needs Python 3.10 or newer, which $(PYTHON) is not; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; \
		exit 1; }
	@echo "setting up .venv (once) …"
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv
	@pins=$$($(BIN)/python -c 'from pathlib import Path; print(Path("constraints.txt").absolute().as_uri())'); \
	PIP_CONSTRAINT=$$pins PIP_BUILD_CONSTRAINT=$$pins \
	$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[dev]'
	@touch $@
