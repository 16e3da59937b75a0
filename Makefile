# `make` lists what can be done. Needs Python 3.11 to 3.13; brings uv, the packages and, where there
# is no Java 17 or newer, a Java along, all inside this folder.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

UV_VERSION := 0.13.8
VERSITYGW := github.com/versity/versitygw/cmd/versitygw@v1.8.0

# The first Python on the PATH that Eventlake runs on. Version managers leave commands that fail.
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
    $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' >/dev/null 2>&1 \
    && $$p -c 'import sys; print(sys.executable)' && break; done)
endif
# A uv that is there is used if it is young enough to know dependency groups.
UV := $(shell uv sync --help 2>/dev/null | grep -q -e '--no-default-groups' \
    && echo uv || echo .bootstrap/bin/uv)

export UV_PROJECT_ENVIRONMENT := .venv
ifneq ($(PYTHON),)
export UV_PYTHON := $(PYTHON)
endif
export PATH := $(CURDIR)/.services/bin:$(PATH)

ENV := .venv/.ready
BIN := .venv/bin

.PHONY: help demo test lint format bench torture docs services clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(ENV) ## a lake from nothing in a minute
	@$(BIN)/eventlake demo

test: $(ENV) ## the whole suite
	@EVENTLAKE_CACHE_DIR=.services/cache $(BIN)/python -m eventlake.compute.prepare
	@$(BIN)/pytest -n auto --maxprocesses 4 --dist loadgroup

lint: $(ENV) ## ruff, formatting and types
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

format: $(ENV) ## write the code as lint wants it
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: $(ENV) ## speed against plain PySpark, dlt and DuckDB, as one table
	@$(UV) sync --locked --inexact --group bench
	@$(BIN)/python bench/run.py

torture: $(ENV) ## kill and race real syncs, 1,000 and 200 times
	@EVENTLAKE_TORTURE=full $(BIN)/pytest -m torture

docs: $(ENV) ## write the reference pages again from the code
	@$(BIN)/python docs/generate.py

services: ## the servers that tests run against (needs Go)
	@command -v versitygw >/dev/null || GOBIN=$(CURDIR)/.services/bin go install $(VERSITYGW)

clean: ## forget the environment and all caches
	@rm -rf .venv .bootstrap .services .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Made again when what it was made from changes. A later `make` does not even start uv.
$(ENV): pyproject.toml uv.lock $(filter .bootstrap/%,$(UV))
	@$(UV) sync --locked
	@$(BIN)/python -m eventlake.compute.java >/dev/null 2>&1 || $(UV) sync --locked --extra java
	@touch $@

# With venv where Python has it, else with pip alone (Debian packages both apart from Python).
.bootstrap/bin/uv: Makefile
	@test -n "$(PYTHON)" || { echo "Eventlake needs Python 3.11, 3.12 or 3.13 on the PATH." >&2; exit 1; }
	@rm -rf .bootstrap
	@if $(PYTHON) -m venv .bootstrap >/dev/null 2>&1; then \
	    .bootstrap/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION); \
	else \
	    $(PYTHON) -m pip install --quiet --disable-pip-version-check --target .bootstrap uv==$(UV_VERSION); \
	fi || { rm -rf .bootstrap; \
	    echo "Could not install uv with $(PYTHON): it needs the venv or the pip module and the" \
	        "network (Debian, Ubuntu: apt install python3-venv). Or install uv yourself." >&2; exit 1; }
	@touch $@
