# One verb each, the same for people and for continuous integration. `make` lists them.
#
# Everything runs as `.venv/bin/python -m ...`: the scripts pip writes into .venv/bin name their
# interpreter in a first line that breaks when the path of the checkout holds a space.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

PY := .venv/bin/python
RUFF := .venv/bin/ruff
TYPOS := .venv/bin/typos

# A stamp says which lock is installed where; another lock or checkout path is another stamp. The
# digest does not look at file times, which a fresh clone does not keep. A .venv whose interpreter
# is gone counts as not installed.
digest = $(shell { pwd; cat pyproject.toml $(1); } | cksum | tr -d ' ')
$(shell $(PY) -c '' 2>/dev/null || rm -rf .venv/stamps)
DEMO := .venv/stamps/demo-$(call digest,requirements/demo.txt requirements/ros.txt)
DEV := .venv/stamps/dev-$(call digest,requirements/*.txt)

# The plugin of schemathesis takes a second to load in each process, and no test uses it.
PYTEST := $(PY) -m pytest -p no:schemathesis
LONG := HYPOTHESIS_PROFILE=ci $(PYTEST) -m slow --timeout 1800
# Processes at once. Tests of robots and pages wait more than they compute, so 2 cores serve 3.
WORKERS ?= 3
TESTS ?=
# Where torch is loaded, processes start anew instead of being copied, and what tests have changed
# in this one is not in them.
NO_TORCH := --ignore tests/train
# In this order: with no torch there, a resolver takes the build with libraries for GPUs.
TORCH := torch==2.13.0
BASELINES := stable-baselines3==2.9.2

.PHONY: help setup train demo fmt lint type test test-long docs bench check lock clean

help: ## list the verbs
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(DEV) ## create .venv with everything development needs
	@echo ".venv is ready"

train: $(DEV) ## add torch and Stable-Baselines3, which only the tests of training need
	@$(PY) -m pip install -q --disable-pip-version-check $(TORCH)
	@$(PY) -m pip install -q --disable-pip-version-check $(BASELINES)

demo: $(DEMO) ## play the demo trial and write its report (two minutes, and an installation the first time)
	@$(PY) -m robo_eval demo

fmt: $(DEV) ## rewrite the code in the project's format
	@$(RUFF) check --fix-only --quiet .
	@$(RUFF) format .

lint: $(DEV) ## style, spelling, import directions, data files
	@$(RUFF) check .
	@$(RUFF) format --check .
	@$(TYPOS)
	@$(PY) -c "from importlinter.cli import lint_imports_command as check; check()" --no-logo
	@$(PY) .ci/check_files.py

type: $(DEV) ## static types, strict
	@$(PY) -m mypy

test: $(DEV) ## the tests, but for the long ones; lists what was skipped and why
	@$(PYTEST) -m "not slow" -n $(WORKERS) --dist worksteal $(or $(TESTS),$(NO_TORCH))
	$(if $(TESTS),,@$(PYTEST) tests/train || [ $$? -eq 5 ] # 5: without torch all are skipped)

# Robots first and alone: beside tests that start dozens of processes, one that asks for commands was
# seen to wait for the processor for a second, and a guard stops its robot for less.
test-long: $(DEV) ## the long tests: kills at random moments, many examples, built packages
	@failed=0; $(if $(TESTS),,$(LONG) tests/ros || failed=1;) \
		$(LONG) -n $(WORKERS) --dist worksteal $(or $(TESTS),--ignore tests/ros $(NO_TORCH)) \
		|| failed=1; exit $$failed

docs: $(DEV) ## build docs/ into build/docs; a broken link is an error
	@$(PY) -m sphinx --fail-on-warning --fresh-env --quiet -b html docs build/docs
	@echo "build/docs/index.html"

bench: $(DEV) ## measure speed, as ratios; never pass or fail
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(PY) "$$file"; done

check: ## what a change must pass: lint, type, test
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory type
	@$(MAKE) --no-print-directory test

lock: $(DEMO) ## rewrite requirements/*.txt from pyproject.toml; UPGRADE=1 moves to newest
	@UPGRADE=$(UPGRADE) requirements/lock.sh

clean: ## remove .venv, builds and caches; trial directories in runs/ stay
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(DEMO):
	@requirements/install.sh demo "$@"

# After the other, so that two pips never write into one .venv when make runs with -j.
$(DEV): $(DEMO)
	@requirements/install.sh dev "$@"
