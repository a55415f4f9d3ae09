export UV_CUSTOM_COMPILE_COMMAND := make lock

# The two commands of the README are `make demo` and `make test`; both install what is missing first.

# A name on the PATH may be a shim for a version that is switched off, so each candidate has to run.
USABLE := import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do $$p -c '$(USABLE)' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin

WITHOUT := not hdfs and not zookeeper and not spark and not containers and not programs and not slow

# Tests start hundreds of processes: none of them may compile the product anew.
export PYTHONDONTWRITEBYTECODE :=

SEEDS ?= 100000
FUZZ_SECONDS ?= 60

.PHONY: demo test unit qualify bench soak fuzz reproduce lint docs install lock clean

demo: install  ## streaming jobs that survive kill -9, a ZooKeeper outage and a frozen leader, live on the terminal
	$(BIN)/python -m examples.demo

test: install  ## the gate, which says whether a change may land: lint, and the tests of tests/stages.py that are in no stage
	$(BIN)/python -m tests.gate $(GATE)

unit: install  ## what needs no servers and starts no programs, in four minutes
	$(BIN)/python -m pytest -n 2 --dist load --max-worker-restart=0 --hypothesis-profile=unit --stage gate -m "$(WITHOUT)" tests/unit tests/system/spark

qualify: install  ## what is no gate, stage by stage, alone on the machine: make qualify STAGES='faults page'; docs/evidence
	$(BIN)/python -m tests.gate.qualify $(STAGES)

bench: install  ## what it costs, beside what people use today: build/benchmarks; make bench BENCH='lookup --quick'
	$(BIN)/python -m benchmarks $(BENCH)

soak: install  ## many simulated runs of whole systems: make soak SEEDS=100000
	$(BIN)/python -m tests.system.simulation --seeds $(SEEDS)
	$(BIN)/python -m tests.system.checkpoints --lives 10000 --holes 1000 --kills 1000

fuzz: install  ## every decoder under a coverage-guided fuzzer: make fuzz FUZZ_SECONDS=60
	$(BIN)/python -m tests.system.fuzz all -max_total_time=$(FUZZ_SECONDS)

reproduce: install  ## a bug of docs/reliability.md, without its mend and with it: make reproduce BUG=7; without BUG the list
	@$(BIN)/python -m tests.system.track_record $(BUG)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: install  ## the reference from the code, and the site from docs/ into build/site; a broken link is an error
	$(BIN)/python -m docs.reference.generate
	$(BIN)/python -m tests.system.zoo.page
	$(BIN)/python -m tests.system.checkpoints.damage_page
	@rm -rf build/site
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --fresh-env -b html docs build/site
	@echo "open build/site/index.html"

# Kerberos's packages have no wheels for Linux. Without its headers the tests of secured stores are skipped.
KERBEROS := $(shell command -v krb5-config)

install: .venv/installed $(if $(KERBEROS),.venv/kerberos)
	@docker/java

.venv/installed: requirements.lock pyproject.toml
	@echo "Installing packages into .venv (PySpark is large: a minute or two) ..."
	@test -n "$(PYTHON)" && $(PYTHON) -c '$(USABLE)' || { echo "Python 3.11 or newer with its venv module is needed (Debian: apt-get install python3-venv), or run make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.venv/kerberos: runtime.lock .venv/installed
	@echo "Building Kerberos's packages into .venv (less than a minute) ..."
	@if CFLAGS="-O0 -g0" $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r runtime.lock; then touch $@; \
	else echo "KERBEROS'S PACKAGES COULD NOT BE BUILT (gcc and Python's headers are needed): tests of secured stores will be skipped." >&2; fi

LOCK := uv pip compile --generate-hashes --universal --python-version 3.11
EXTRAS := --extra spark --extra drill --extra kafka

lock:  ## resolve the dependencies anew: what we develop with, what a user installs with all extras, and build/tools
	$(LOCK) pyproject.toml $(EXTRAS) --group dev --output-file requirements.lock
	$(LOCK) pyproject.toml $(EXTRAS) --extra kerberos --constraints requirements.lock --output-file runtime.lock
	$(LOCK) --group tools --output-file tools.lock

clean:
	rm -rf .venv build .mypy_cache .pytest_cache .ruff_cache

.PHONY: dist sbom audit

dist: install sbom  ## wheel, source archive and bill of materials, into build/dist; the same bytes from the same commit
	SOURCE_DATE_EPOCH=$(shell git log -1 --format=%ct) $(BIN)/python -m hatchling build -d build/dist

sbom: build/tools/installed  ## what a user installs with all extras, with hashes, in CycloneDX: build/dist/hybrid-ha.cdx.json
	@mkdir -p build/dist
	build/tools/bin/python -W ignore -m cyclonedx_py requirements --pyproject pyproject.toml --output-reproducible -o build/dist/hybrid-ha.cdx.json runtime.lock

audit: build/tools/installed  ## known vulnerabilities of the locked packages: make audit AUDIT='--ignore-vuln ID'
	build/tools/bin/python -m tests.audit $(AUDIT)

build/tools/installed: tools.lock
	@$(PYTHON) -m venv --clear build/tools
	@build/tools/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r tools.lock
	@touch $@

.PHONY: images up down drills

images: install  ## the container images hybrid-ha/*; docker/README.md
	@docker/engine
	@docker/build $(if $(MONITORING),--monitoring)

up: images  ## ZooKeeper, HDFS and two sidecars in containers, until make down; MONITORING=1 adds Prometheus and Grafana
	@docker/up $(if $(MONITORING),--monitoring)

down:  ## remove these containers and their data
	@docker/compose down --volumes --remove-orphans

drills: images  ## every failover drill, some of them also with baselines: more than an hour; build/drills/report
	$(BIN)/python -m benchmarks.drills --all --against containers --provider hybrid-ha --provider kazoo --provider curator --report build/drills/report

.PHONY: matrix oldest

matrix: install  ## what holds on each version of Spark and Python, two to five minutes each: make matrix MATRIX='--spark 3.5.9'
	$(BIN)/python -m tests.matrix $(MATRIX)

oldest: install  ## a few tests with the oldest Spark, the oldest Python and the oldest packages of all ranges
	$(BIN)/python -m tests.matrix --quick --spark 3.5.9 --python 3.11

.PHONY: places zoo

places: install  ## jobs on a real YARN whose drivers are killed, in client and cluster mode: some minutes
	$(BIN)/python -m pytest tests/system/places/on_yarn.py

zoo: install  ## 72 programs as people write them, killed at drawn points: an hour or two; make zoo ZOO='--kills 2 nameless'
	$(BIN)/python -m tests.system.zoo $(ZOO)
