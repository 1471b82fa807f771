# Every target first installs what it needs: `make test` works in a fresh clone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
RUNNABLE := $(VENV)/.runnable

.DEFAULT_GOAL := help
.PHONY: help install java chromium minio-binary kafka-jars test unit spark long fuzz simulate mutants restarts chaos check format demo tour minio s3 kafka bench-plan bench-keys bench-rekeying bench-balancing bench-storage bench-runtime bench-nexmark bench-migration bench-failover bench-pmc soak clean

UNIT := not spark and not server and not browser
# Tests without Spark run in three processes on two cores, since one of them mostly waits for timeouts; they need not
# import the tests with Spark.
PARALLEL := -n 3 --dist worksteal --ignore=tests/spark --ignore=tests/browser
# Tests with Spark run in two processes with a Spark each, because they often wait. Those of a file share a process, and
# files start in the order of tests/conftest.py.
PARALLEL_SPARK := -n 2 --dist loadgroup --no-loadscope-reorder
# Keep compiled modules: pytest rewrites the assertions of every test module, which takes 10 s per process, and nodes
# and commands are processes that import the engine.
unexport PYTHONDONTWRITEBYTECODE

help: ## show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 17

install: $(INSTALLED) ## create the virtual environment and compile the kernels

$(INSTALLED): pyproject.toml scripts/venv.sh
	@bash scripts/venv.sh "$(PYTHON)" "$(VENV)" dev
	@touch $(INSTALLED) $(RUNNABLE)

# Only what the demo needs, in a third of the time.
$(RUNNABLE): pyproject.toml scripts/venv.sh
	@bash scripts/venv.sh "$(PYTHON)" "$(VENV)" fast,spark,s3,charts,api
	@touch $(RUNNABLE)

java: ## check that Java 17 is installed
	@bash scripts/java.sh

chromium: | $(INSTALLED) ## install Debian's Chromium for the browser tests, where possible
	@bash scripts/chromium.sh

minio-binary:
	@bash scripts/minio.sh

kafka-jars: java
	@bash scripts/kafka.sh

# Tests that fail beside others run once more, alone: on a busy machine a test may miss a deadline. Both runs are reported.
run-tests = $(BIN)/pytest $(1) || { [ $$? -eq 1 ] && $(BIN)/pytest $(1) -n 0 --last-failed --last-failed-no-failures none; }

test: $(INSTALLED) java minio-binary kafka-jars chromium ## run all tests except the long ones; S3 tests use MinIO if Go can build it
	export ELASTIC_SIMULATION_SEEDS=72; $(call run-tests,$(PARALLEL) -m "not spark and not browser and not long")
	$(call run-tests,$(PARALLEL_SPARK) -m "(spark or browser) and not long")

unit: $(INSTALLED) ## run the tests that need neither Java nor a server, without the slow ones; about a minute
	$(BIN)/pytest $(PARALLEL) -m "$(UNIT) and not slow and not long"

spark: $(INSTALLED) java kafka-jars ## run only the Spark tests
	$(BIN)/pytest $(PARALLEL_SPARK) -m "spark and not long"

long: $(INSTALLED) java minio-binary kafka-jars chromium ## run the long Spark tests; about 20 minutes
	$(BIN)/pytest -m long

fuzz: $(INSTALLED) ## run the property tests with many more examples and fresh seeds
	ELASTIC_TEST_PROFILE=long $(BIN)/pytest $(PARALLEL) -m "$(UNIT)"

simulate: $(INSTALLED) ## simulate 5,000 seeds of a cluster with faults; about half an hour
	$(BIN)/python -m tests.elastic.simulation.campaign --seeds 5000

mutants: $(INSTALLED) ## break the code in hundreds of places and check that the unit tests notice each
	$(BIN)/python -m scripts.mutants

restarts: $(INSTALLED) java ## restart a job under all pairs of changed settings and compare its results; about a minute
	$(BIN)/pytest -m "long or not long" tests/restarts

chaos: $(INSTALLED) java minio-binary ## kill and suspend nodes, drivers, executors and the store, and check all results; an hour
	$(BIN)/python -m tests.chaos.campaign

check: $(INSTALLED) ## lint, check format, types and import layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED) ## format the code and fix lint where possible
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

demo: $(RUNNABLE) java $(if $(filter s3,$(STORE)),minio-binary) ## mine frequent patterns while the job scales 4 -> 6 -> 3 and loses a node; STORE=s3 for MinIO, TEXTS=tweets.csv
	$(BIN)/elastic demo $(if $(STORE),--store $(STORE)) $(if $(TEXTS),--texts $(TEXTS))

tour: $(RUNNABLE) ## plan and schedule a day of scaling with four strategies, with a picture
	$(BIN)/python -m examples.planning_tour

minio: $(INSTALLED) minio-binary ## build MinIO if necessary, and run it on loopback with a temporary folder
	$(BIN)/python -m scripts.s3_server --minio

s3: $(INSTALLED) minio-binary ## run an S3 server for development and print its settings
	$(BIN)/python -m scripts.s3_server

kafka: $(INSTALLED) kafka-jars ## run a Kafka broker on loopback with a temporary folder
	$(BIN)/python -m scripts.kafka_broker

bench-plan: $(INSTALLED) ## measure planning time and how it grows
	$(BIN)/python -m benchmarks.planning

bench-keys: $(INSTALLED) ## measure planning by key at 10^4 to 10^7 keys: time, memory and cost
	$(BIN)/python -m benchmarks.keys

bench-rekeying: $(INSTALLED) java ## measure the effect of moving keys on the batches of a running job
	$(BIN)/python -m benchmarks.rekeying

bench-balancing: $(INSTALLED) ## compare throughput with and without balancing by keys, and follow streams that change; 40 minutes
	$(BIN)/python -m benchmarks.balancing

bench-storage: $(INSTALLED) minio-binary ## measure encoding, transfer and decoding of state
	$(BIN)/python -m benchmarks.storage

bench-runtime: $(INSTALLED) java minio-binary ## measure rows per second and trigger latency beside Spark's own stateful operators
	$(BIN)/python -m benchmarks.runtime

bench-nexmark: $(INSTALLED) java ## compare the queries of Nexmark with Spark's own streaming: rows per second and answers
	$(BIN)/python -m benchmarks.nexmark

bench-migration: $(INSTALLED) java ## measure the effect of a migration on the stream in every mode, beside a restart of Spark
	$(BIN)/python -m benchmarks.migration

bench-failover: $(INSTALLED) java ## measure recoveries after kill -9 at the load of the demo, with standbys, with a spare and with neither
	$(BIN)/python -m benchmarks.failover

bench-pmc: $(INSTALLED) java ## measure the projection of migration costs on Spark
	$(BIN)/python -m benchmarks.projecting

soak: $(INSTALLED) java ## run half an hour of steady load and report the growth of memory, threads, files and objects
	$(BIN)/python -m benchmarks.soak

clean: ## remove everything that make created
	rm -rf $(VENV) build dist benchmarks/results .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
