# Each target sets up .venv by itself. Nothing here needs root, a server or an API key.

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
RUN := $(BIN)/python

.PHONY: demo test check check-deep eval bench screenshots format lock clean

demo: .venv/.runtime
	@LOG_LEVEL=$${LOG_LEVEL:-WARNING} $(RUN) manage.py demo $(ARGS)

# How far the long tests go: a quick look in `make test`, the promised figures in `make check`.
CHECKED := RACE_RUNS=1000 MACHINE_RUNS=200 BRIDGE_FUZZ=10000 KILL_POINTS=14 KILL_JOBS=170

test: .venv/.dev
	@VAR_DIR=var/test $(RUN) -m pytest -m "not deep" -n 2 --dist loadgroup $(ARGS)

check: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	VAR_DIR=var/test $(BIN)/mypy
	VAR_DIR=var/test $(RUN) manage.py makemigrations --check --dry-run
	VAR_DIR=var/test ./deploy/check
	./deploy/audit
	RESULTS=docs/results.md $(CHECKED) $(MAKE) --no-print-directory test ARGS="--cov --cov-report=term:skip-covered $(ARGS)"
	$(RUN) -m coverage report --include="memory_portal/store/*" --fail-under=100 --skip-covered --show-missing

check-deep: check .venv/.deep
	VAR_DIR=var/test $(RUN) -m pytest -m deep

# How fast, beside others, on this machine; writes docs/performance.md. ARGS=--small for a few minutes, ARGS=--huge for a million.
bench: .venv/.runtime
	@$(RUN) -W ignore -m benchmarks $(ARGS)

screenshots: .venv/.dev
	@VAR_DIR=var/test $(RUN) -m pytest -s tests/screenshots.py

eval: .venv/.dev
	@$(RUN) -m tests.eval

format: .venv/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Names, versions and hashes only; no index address ends up in the files.
lock: .venv/.dev
	$(BIN)/uv pip compile pyproject.toml --extra redis --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-index-url --no-emit-find-links --upgrade -q -o requirements.txt
	$(BIN)/uv pip compile pyproject.toml --group dev --all-extras -c requirements.txt --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-emit-index-url --no-emit-find-links --upgrade -q -o requirements-dev.txt
	./deploy/sbom
	$(BIN)/uv pip compile pyproject.toml --group deep -c requirements-dev.txt --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-emit-index-url --no-emit-find-links --upgrade -q -o requirements-deep.txt

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; this is $$($(PYTHON) --version). Name another one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip, ssl, sqlite3' \
	  || { echo "This Python lacks the module named above; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv .venv

.venv/.runtime: requirements.txt | .venv/bin/python
	@echo "Installing what is needed into .venv ..."
	@$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

.venv/.dev: requirements-dev.txt | .venv/bin/python
	@echo "Installing what is needed into .venv ..."
	@$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@ .venv/.runtime

.venv/.deep: requirements-deep.txt | .venv/.dev
	@$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements-deep.txt
	@touch $@

clean:
	rm -rf .venv var .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis
