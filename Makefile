# Two commands matter: `make demo` and `make test`. Each sets up what it needs first.
BIN := .venv/bin

.PHONY: setup setup-dev demo test test-slow lint format bench protos requirements clean

setup:
	@deploy/setup.sh run

setup-dev:
	@deploy/setup.sh dev

demo: setup
	@exec $(BIN)/lintello demo

test: setup-dev
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile

test-slow: setup-dev
	$(BIN)/python -m pytest -m slow

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy kit services gateway cli protos/generate.py tests
	$(BIN)/lint-imports
	$(BIN)/buf lint protos

format: setup-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup-dev
	$(BIN)/python -m tests.benchmarks.tree
	$(BIN)/python -m tests.benchmarks.start
	$(BIN)/python -m tests.benchmarks.stream

protos: setup-dev
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python protos/generate.py

requirements:
	requirements/compile.sh

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
