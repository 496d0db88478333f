# Two commands on a fresh machine: `make train` and `make test`. Both set up what they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=

.PHONY: help setup train test quick nightly lint bench clean

help:
	@echo "make train [ARGS='--max-minutes 3 --run first']   set up and train stage 1-1"
	@echo "make test                                         set up and run all tests"
	@echo "make quick                                        only the tests that take seconds"
	@echo "make nightly                                      the tests that take many minutes"
	@echo "make lint                                         ruff and mypy"
	@echo "make bench [ARGS='env']                           measure this machine"
	@echo "make clean                                        remove the virtual environment"

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt launch/setup.sh
	@sh launch/setup.sh $(PYTHON) $(VENV) ".[plot]"

$(VENV)/.installed-dev: pyproject.toml constraints.txt launch/setup.sh
	@sh launch/setup.sh $(PYTHON) $(VENV) ".[dev]" dev

# CUDA where there is one, otherwise the CPU with a warning.
train: $(VENV)/.installed
	@MARIO_ALLOW_CPU_AUTO=$${MARIO_ALLOW_CPU_AUTO-1} $(BIN)/python launch/local.py --preset laptop $(ARGS)

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m "not nightly" $(ARGS)

nightly: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m nightly $(ARGS)

quick: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed
	@$(BIN)/python launch/benchmark.py $(ARGS)

clean:
	rm -rf $(VENV)
