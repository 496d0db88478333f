# Two commands on a fresh machine: `make train` and `make test`. Both set up what they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
# A change of any of these needs a new installation; the native core is built by it.
INSTALLED_FROM := pyproject.toml constraints.txt launch/setup.sh setup.py $(wildcard actor/env/native/*.?pp)

.PHONY: help setup train test quick nightly faults soak lockstep compat lint bench clean

help:
	@echo "make train [ARGS='--max-minutes 3 --run first']   set up and train stage 1-1"
	@echo "make test                                         set up and run all tests"
	@echo "make quick                                        only the tests that take seconds"
	@echo "make nightly                                      the tests that take many minutes"
	@echo "make faults                                       what the system stands, a line per fault"
	@echo "make soak [ARGS='--minutes 6 --kills 4']           half an hour with random kills"
	@echo "make lockstep [ARGS='--frames 50000']             native core against nes_py, a million frames"
	@echo "make compat [ARGS='--sets pinned numpy-1.26']      small runs over the supported versions"
	@echo "make lint                                         ruff and mypy"
	@echo "make bench [ARGS='env']                           measure this machine"
	@echo "make clean                                        remove the virtual environment"

setup: $(VENV)/.installed

$(VENV)/.installed: $(INSTALLED_FROM)
	@sh launch/setup.sh $(PYTHON) $(VENV) ".[plot,video]"

$(VENV)/.installed-dev: $(INSTALLED_FROM)
	@sh launch/setup.sh $(PYTHON) $(VENV) ".[dev]" dev

# CUDA where there is one, otherwise the CPU with a warning.
train: $(VENV)/.installed
	@MARIO_ALLOW_CPU_AUTO=$${MARIO_ALLOW_CPU_AUTO-1} $(BIN)/python launch/local.py --preset laptop $(ARGS)

# Two at a time, file by file: most of these tests wait for processes.
test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 --dist loadfile -rs -m "not nightly and not faults_only" $(ARGS)

nightly: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m nightly $(ARGS)

faults: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 --dist loadfile -rs -m "not nightly" tests/faults --fault-table docs/reliability.md $(ARGS)

soak: $(VENV)/.installed-dev
	$(BIN)/python -m tests.faults.soak $(ARGS)

lockstep: $(VENV)/.installed-dev
	$(BIN)/python -m tests.native.lockstep $(ARGS)

# Virtual environments of some gigabytes in .compat; they are used again.
compat: $(VENV)/.installed-dev
	$(BIN)/python -m tests.compat $(ARGS)

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
