# Every target makes what it needs first: `make test` on a fresh clone is enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
RUNNABLE := $(VENV)/.runnable

.DEFAULT_GOAL := help
.PHONY: help install java chromium minio-binary test unit spark long fuzz simulate restarts chaos check format demo tour minio s3 bench-plan bench-storage bench-runtime bench-migration bench-pmc soak clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: $(INSTALLED) ## make the virtual environment and compile the kernels

$(INSTALLED): pyproject.toml scripts/venv.sh
	@bash scripts/venv.sh "$(PYTHON)" "$(VENV)" dev
	@touch $(INSTALLED) $(RUNNABLE)

# What the demo needs, in a third of the time.
$(RUNNABLE): pyproject.toml scripts/venv.sh
	@bash scripts/venv.sh "$(PYTHON)" "$(VENV)" fast,spark,s3,charts,api
	@touch $(RUNNABLE)

java: ## check that Java 17 is there
	@bash scripts/java.sh

chromium: ## install Debian's Chromium for the tests of the page, where that is possible
	@bash scripts/chromium.sh

minio-binary:
	@bash scripts/minio.sh

test: $(INSTALLED) java minio-binary chromium ## all tests; the S3 ones against real MinIO where Go can build it
	$(BIN)/pytest

unit: $(INSTALLED) ## the tests that need neither Java nor a server; about a minute
	$(BIN)/pytest -m "not spark and not server and not browser"

spark: $(INSTALLED) java ## the Spark tests only
	$(BIN)/pytest -m "spark and not long"

long: $(INSTALLED) java chromium ## the Spark tests that take minutes each
	$(BIN)/pytest -m long

fuzz: $(INSTALLED) ## the property tests for much longer, with fresh seeds
	ELASTIC_TEST_PROFILE=long $(BIN)/pytest -m "not spark and not server and not browser"

simulate: $(INSTALLED) ## 5,000 seeds of the simulated cluster; about half an hour
	ELASTIC_SIMULATION_SEEDS=5000 $(BIN)/pytest tests/elastic/runtime/test_simulation.py

restarts: $(INSTALLED) java ## restart a job with every two settings changed; all results must stay the same; about a minute
	$(BIN)/pytest -m "long or not long" tests/restarts

chaos: $(INSTALLED) java minio-binary ## lose, suspend and starve nodes, drivers, executors and the store; all counts must stay exact; an hour
	$(BIN)/python -m tests.chaos.campaign

check: $(INSTALLED) ## lint, format, types, layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED) ## rewrite the code in the house format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

demo: $(RUNNABLE) java $(if $(filter s3,$(STORE)),minio-binary) ## frequent patterns that scale 4 -> 6 -> 3 live and lose a node; STORE=s3 for MinIO, TEXTS=tweets.csv
	$(BIN)/elastic demo $(if $(STORE),--store $(STORE)) $(if $(TEXTS),--texts $(TEXTS))

tour: $(RUNNABLE) ## a day of scaling, planned by four strategies and scheduled, with a picture
	$(BIN)/python -m examples.planning_tour

minio: $(INSTALLED) minio-binary ## build MinIO from source if need be, and run it on loopback with a temporary folder
	$(BIN)/python -m scripts.s3_server --minio

s3: $(INSTALLED) minio-binary ## a running S3 server for development, and the settings to use it
	$(BIN)/python -m scripts.s3_server

bench-plan: $(INSTALLED) ## how long planning takes, and how that grows
	$(BIN)/python -m benchmarks.planning

bench-storage: $(INSTALLED) minio-binary ## how fast state becomes bytes, travels and comes back
	$(BIN)/python -m benchmarks.storage

bench-runtime: $(INSTALLED) java minio-binary ## rows a second and triggers, next to Spark's own stateful operators
	$(BIN)/python -m benchmarks.runtime

bench-migration: $(INSTALLED) java ## what a stream notices of a migration in every mode, next to Spark's own way
	$(BIN)/python -m benchmarks.migration

bench-pmc: $(INSTALLED) java ## how long projected migration costs take through Spark
	$(BIN)/python -m benchmarks.projecting

soak: $(INSTALLED) java ## half an hour of steady load: does anything grow?
	$(BIN)/python -m benchmarks.soak

clean: ## remove what make made
	rm -rf $(VENV) build dist benchmarks/results .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
