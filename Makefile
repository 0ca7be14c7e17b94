# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Many tests start Python anew. Where writing bytecode is switched off, each would compile torch again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup test test-all lint types unit demo figures clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@# Python compiles what is imported, once; compiling all of torch beforehand takes half a minute.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
		-c constraints.txt -e ".[dev]"
	@touch $@

test: lint types unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

unit: setup
	$(BIN)/pytest -n auto --dist worksteal -m "not slow"

# Before a release: the tests marked `slow` too, some minutes more.
test-all: lint types
	$(BIN)/pytest -n auto --dist worksteal

demo: setup
	$(BIN)/python examples/demo.py out

figures: setup
	$(BIN)/python docs/figures.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
