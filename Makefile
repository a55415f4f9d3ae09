export UV_CUSTOM_COMPILE_COMMAND := make lock

# The two commands of the README are `make demo` and `make test`; both install what is missing first.

# A name on the PATH may be a shim for a version that is switched off, so each candidate has to run.
USABLE := import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do $$p -c '$(USABLE)' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin

SEEDS ?= 100000
FUZZ_SECONDS ?= 60

.PHONY: demo test unit bench soak fuzz lint install lock clean

demo: install  ## a streaming job that survives kill -9, a ZooKeeper outage and a frozen leader, live on the terminal
	$(BIN)/python -m examples.demo

test: lint  ## everything: gates, unit, contract, protocol, integration and Spark tests
	$(BIN)/python -m pytest

unit: install  ## only what needs no Java
	$(BIN)/python -m pytest -m "not hdfs and not zookeeper and not spark"

bench: install  ## what it costs, beside what people use today: build/benchmarks; make bench BENCH='lookup --quick'
	$(BIN)/python -m benchmarks $(BENCH)

soak: install  ## many simulated runs of whole systems: make soak SEEDS=100000
	$(BIN)/python -m tests.simulation --seeds $(SEEDS)

fuzz: install  ## every decoder under a coverage-guided fuzzer: make fuzz FUZZ_SECONDS=60
	$(BIN)/python -m tests.fuzz all -max_total_time=$(FUZZ_SECONDS)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

install: .venv/installed
	@docker/java

.venv/installed: requirements.lock pyproject.toml
	@echo "Installing packages into .venv (PySpark is large: a minute or two) ..."
	@test -n "$(PYTHON)" && $(PYTHON) -c '$(USABLE)' || { echo "Python 3.11 or newer with its venv module is needed (Debian: apt-get install python3-venv), or run make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

lock:  ## resolve the dependencies anew
	uv pip compile pyproject.toml --extra spark --extra drill --group dev --generate-hashes --universal --python-version 3.11 --output-file requirements.lock

clean:
	rm -rf .venv build .mypy_cache .pytest_cache .ruff_cache

.PHONY: images up down drills

images: install  ## the container images hybrid-ha/*; docker/README.md
	@docker/engine
	@docker/build $(if $(MONITORING),--monitoring)

up: images  ## ZooKeeper, HDFS and two sidecars in containers, until make down; MONITORING=1 adds Prometheus and Grafana
	@docker/up $(if $(MONITORING),--monitoring)

down:  ## remove these containers and their data
	@docker/compose down --volumes --remove-orphans

drills: images  ## every failover drill, also for jobs that others guard: more than an hour; build/drills/report
	$(BIN)/ha drill run --all --against containers --guard hybrid-ha --guard kazoo --guard curator --report build/drills/report
