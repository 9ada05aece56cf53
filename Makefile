# Everything one does here, by name. `make` alone lists it.

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check --no-input
SEED ?= 1
TASKS ?= 1000000

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help up test check peers chaos sim bench look docs format lock clean

help: ## Lists what there is
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

up: $(VENV)/runtime ## Starts a node with a demo agent on 127.0.0.1:8420 (first installs into .venv)
	@exec $(VENV)/bin/dragoman up

test: $(VENV)/dev ## The project's own tests; what they need is installed first
	@tools/need.sh strace=strace
	$(PY) -m pytest -n 2 --dist worksteal

check: $(VENV)/dev ## Format, lint, types, and the rules of the house; under a minute
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy --strict src
	$(PY) -m pytest -q tests/test_house.py tests/test_manifest.py

peers: $(VENV)/dev ## Tests against other parties' SDKs, pinned, each in an environment of its own under .peers
	@tools/need.sh node=nodejs npm=npm
	$(PY) -m pytest -m peers tests/peers

chaos: $(VENV)/dev ## The long fault campaigns
	@tools/need.sh strace=strace
	DRAGOMAN_TEST_SCALE=10 $(PY) -m pytest -m "chaos or slow"

sim: $(VENV)/dev ## The simulation of the heart: make sim SEED=7 TASKS=20000
	$(PY) -m tests.sim --seed $(SEED) --tasks $(TASKS)

bench: $(VENV)/dev ## Our rows, others' rows and the floor, interleaved
	$(PY) bench/run.py

look: $(VENV)/dev ## Looks at the house: writes LOOK.txt, prints what changed since the last tag
	@$(PY) tools/look.py all > LOOK.txt.part && mv LOOK.txt.part LOOK.txt
	@$(PY) tools/look.py change

docs: $(VENV)/dev ## Writes the pages of docs/reference that are drawn from tables
	$(PY) tools/docs.py

format: $(VENV)/dev ## Formats, and mends what lint can mend
	$(PY) -m ruff check --fix-only --quiet .
	$(PY) -m ruff format .

lock: ## Resolves the dependencies again (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml -o requirements.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml \
		--extra auth --extra otel --group dev -c requirements.lock -o requirements-dev.lock

clean: ## Removes what was installed and what tools left behind
	rm -rf $(VENV) .bench .peers .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Files that say: this was installed, and from these. Newer ones are installed again; nothing else is.

$(VENV)/bin/python:
	tools/venv.sh

$(VENV)/runtime: pyproject.toml requirements.lock | $(VENV)/bin/python
	$(PIP) --require-hashes -r requirements.lock
	$(PIP) --no-deps -e .
	@touch $@

$(VENV)/dev: requirements-dev.lock $(VENV)/runtime
	$(PIP) --require-hashes -r requirements-dev.lock
	@touch $@
