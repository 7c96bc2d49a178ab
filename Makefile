.DEFAULT_GOAL := help
.PHONY: help setup quick test every check bench

help:  ## Show the commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 8

setup:  ## Install the package, editable, with everything that tests and checks need
	pip install -e '.[dev]'

quick:  ## Run the tests for daily work: all but those marked slow
	pytest -n auto -m 'not slow'

test:  ## Run every test, of slow ones a sixth of the cases
	pytest -n auto

every:  ## Run every case of every test
	HTAGRAPH_EVERY_CASE=1 pytest -n auto

check:  ## Run ruff, mypy and import-linter
	ruff check .
	ruff format --check .
	mypy
	lint-imports

bench:  ## Measure speed (benchmarks/README.md says what else can be measured)
	python -m benchmarks.run
