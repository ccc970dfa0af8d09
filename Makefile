# Two commands are enough on a bare machine with Python 3.11, git and make: `make up`, `make test`.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
PY := $(VENV)/bin/python
PYTHON ?= $(shell command -v python3.11 || command -v python3)
# The environment is made anew when what it must hold has changed: the stamp carries its hash.
stamp = $(VENV)/.$(1)-$(shell sha256sum requirements/$(1).txt | cut -c1-16)
APP := $(call stamp,app)
DEV := $(call stamp,dev)
BROWSERS := chromium chromium-browser google-chrome
# Static checks need settings, and no secrets.
LINT_ENV := SECRET_KEY=lint INTERLOCK_DATA_DIR=$(VENV)/lint-data
ARGS ?=
# Tests run in as many processes as this, each on services of its own; 0: in one, as a debugger wants it.
WORKERS ?= 2

.PHONY: help up demo test lint bench faults evals requirements browser clean

help: ## Say what there is
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-14s %s\n", $$1, $$2}'

up: $(APP) ## Set up everything and run it here; Ctrl-C ends all of it (PORT=8123 moves it)
	@INTERLOCK_LEASH=1 exec $(PY) manage.py up

demo: $(APP) ## Do the main job without a person, on a stack of its own (ARGS=--auto)
	@exec $(PY) manage.py demo $(ARGS)

test: $(DEV) browser ## Run the whole suite (ARGS="tests/config -k port" runs a part)
	@# Both halves run, whatever the first comes to; 5 says that nothing of what was asked for belongs to a half.
	@status=0; \
	$(PY) -m pytest -n $(WORKERS) --dist loadfile -m "not alone" $(ARGS) || test $$? = 5 || status=1; \
	$(PY) -m pytest -m alone $(ARGS) || test $$? = 5 || status=1; \
	exit $$status

lint: $(DEV) ## Check style, types, layers, migrations and templates
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check --quiet .
	$(LINT_ENV) $(VENV)/bin/mypy
	$(LINT_ENV) $(VENV)/bin/lint-imports
	$(LINT_ENV) $(PY) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	$(VENV)/bin/djlint --lint --quiet templates approvals traces runtime_core

bench: $(DEV) ## Measure, and print the table of docs/performance.md
	$(PY) -m benchmarks $(ARGS)

faults: $(DEV) ## Kill, stop and starve it in every way there is (ARGS=--mutants shows that this finds what it should)
	@$(PY) -m tests.faults $(ARGS)

evals: $(DEV) ## Score the scripted agents
	$(PY) -m evals $(ARGS)

requirements: $(DEV) ## Compile requirements/*.in again (ARGS=--upgrade for newer releases)
	cd requirements && for name in app dev; do \
		../$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --no-emit-find-links --no-annotate \
			--custom-compile-command "make requirements" $(ARGS) $$name.in -o $$name.txt; \
	done

clean: ## Remove caches and test leftovers (data and environment stay)
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache test-results
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# dev.txt holds all of app.txt, so either environment serves the running product.
$(APP): | $(VENV)/.made
	@umask 022; test -e $(DEV) || $(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/app.txt
	@rm -f $(VENV)/.app-* && touch $@

$(DEV): | $(VENV)/.made
	@umask 022; $(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@rm -f $(VENV)/.dev-* && touch $@

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: apt-get install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; $(PYTHON) is older" >&2; exit 1; }
	@echo "making the environment in $(VENV) (once)"
	@umask 022; $(PYTHON) -m venv $(VENV) \
		|| { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -qq -y python3-venv && $(PYTHON) -m venv --clear $(VENV); } \
		|| { echo "venv does not work here: apt-get install python3-venv" >&2; exit 1; }
	@touch $@

browser:
	@for name in $(BROWSERS); do command -v $$name > /dev/null && exit 0; done; \
	root=; test "$$(id -u)" = 0 || root="sudo -n"; \
	echo "installing chromium for the browser tests (once)"; \
	{ $$root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$root apt-get install -qq -y --no-install-recommends chromium > /dev/null; } \
		|| { echo "chromium is needed for the browser tests: apt-get install chromium" >&2; exit 1; }
