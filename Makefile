PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
READY_FOR_DEMO := .venv/.ready-for-demo

.DEFAULT_GOAL := help
.PHONY: help demo test pythons docs bench format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

demo: $(READY_FOR_DEMO) ## watch holdfast at work
	@$(BIN)/holdfast demo

test: $(READY) ## format, lint, types, and the tests, also on the oldest and the newest supported Python found
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/python tools/every_python.py

pythons: $(READY) ## the tests on every supported Python found
	$(BIN)/python tools/every_python.py --all

docs: $(READY) ## build the documentation into site/, and check its links
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html; its search works on a server: $(BIN)/python -m http.server --directory site"

bench: $(READY) ## measure everything (or ONLY="search tokens"), and write the figures into the pages
	@$(BIN)/python benchmarks/run.py $(ONLY)

format: $(READY) ## format the code and fix what the linter can
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean: ## remove the environments and caches
	rm -rf .venv .venv-3.* .hypothesis .mypy_cache .pytest_cache .ruff_cache dist site
	find . -name __pycache__ -prune -exec rm -rf {} +

# Build isolation heeds no -c option: older pips read PIP_CONSTRAINT there, newer ones PIP_BUILD_CONSTRAINT.
# Both hold a URI because pip splits them at spaces.
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
		echo "holdfast needs Python 3.10 or newer, which $(PYTHON) is not; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; \
		exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv
	@pins=$$($(BIN)/python -c 'from pathlib import Path; print(Path("constraints.txt").absolute().as_uri())'); \
	PIP_CONSTRAINT=$$pins PIP_BUILD_CONSTRAINT=$$pins \
	$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[$(1)]'
	@touch $@
endef

$(READY): pyproject.toml constraints.txt
	@echo "setting up .venv (once, about a minute) …"
	$(call install,dev)

$(READY_FOR_DEMO): pyproject.toml constraints.txt
	@echo "setting up .venv (once) …"
	$(call install,cli)
