PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint types unit trial clean

demo: $(VENV)/.installed
	@$(BIN)/holdfast demo

test: lint types unit

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks

types: $(VENV)/.installed-dev
	$(BIN)/mypy

unit: $(VENV)/.installed-dev
	$(BIN)/pytest -n 2 --durations 10

# The long form of the trials, about two hours: make trial SEED=1 TRIALS="api files"
SEED ?= 0
trial: $(VENV)/.installed-dev
	PYTHONPATH=tests:benchmarks OMP_NUM_THREADS=1 $(BIN)/python -m trial $(TRIALS) --seed $(SEED)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# torch comes by name alone: asked for as a range, pip would fetch gigabytes of CUDA.
$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing into $(VENV) ..."
	@$(PIP) "$$(grep '^torch==' constraints.txt)"
	@$(PIP) -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "installing the dev extra into $(VENV) ..."
	@$(PIP) -e ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) holdfast-demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
