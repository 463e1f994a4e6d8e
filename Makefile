# The front door. `make help` lists what there is.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done
SITE := .site/.setup-done
FLAGS ?=
SEEDS ?= 1000
FROM ?= 0
# Tests run in this many processes, each with a broker of its own: twice as many as cores, because many wait
# for services.
JOBS ?= 4
# The longer suites keep their cores busier.
test-more test-long: JOBS = 3
# The share of a law's examples that `make test` and `make test-more` draw. `make test-long` draws ten times
# all of them.
EXAMPLES ?= 0.1
# The share of the cases of each family (tests/families.py) that `make test` and `make test-more` run, and
# which part.
FAMILIES ?= 0.25
PART ?= 0
SHARES = EVENFLOW_EXAMPLES=$(EXAMPLES) EVENFLOW_FAMILIES=$(FAMILIES) EVENFLOW_PART=$(PART)
# Otherwise each process of the tests would compile the tests and the product again: a third of the CPU time
# until they are collected.
unexport PYTHONDONTWRITEBYTECODE
# `make fuzz`: how long for each target.
SECONDS ?= 10
PYTEST = $(BIN)/python -m pytest -n $(JOBS)
# What fails beside other tests runs once more, alone.
TWICE = $(BIN)/python -m tests.second_run -n $(JOBS)
# The tests of a file stay in one process, to share what they start; long files come first.
BY_FILE = --dist loadfile --no-loadscope-reorder
# `make test-more`: any test in any process, but for those of a group (`xdist_group`), which share a long
# preparation.
BY_GROUP = --dist loadgroup --no-loadscope-reorder

# Of benchmarks that share their code, one, and none that a test runs: a smoke run of all takes a quarter of
# an hour.
SMOKE = topics-roundtrip service-end-to-end-fused service-costly-live service-soak growth reduce-prompt scale

.DEFAULT_GOAL := help
.PHONY: help setup demo monitoring test test-more test-long test-browser test-containers test-k8s test-rl
.PHONY: test-chaos test-recovery test-brokers test-consume simulate-faults simulate-on fuzz lint lock sbom
.PHONY: audit kernels format bench reproduce docs site queries clean broker doctor

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 17

setup: $(STAMP) ## make .venv with the locked packages, fetch the jars, archive classes (once; then offline)
	@$(BIN)/python -m spark_consumers.jars.fetch
	@$(BIN)/python -m workbench.local.broker_jars
	@$(BIN)/python -m workbench.local.archive

$(STAMP): requirements.lock requirements.hashed.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@# Two packages come as sources alone. What builds them and evenflow comes first, by its hash: into an
	@# environment of its own, which is pip's default for a build, pip would fetch it without one.
	$(BIN)/python docker/hashed.py --only setuptools requirements.hashed.lock > $(VENV)/build.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
		--no-deps -r $(VENV)/build.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-build-isolation \
		-r requirements.hashed.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: setup ## the whole pipeline on this machine, compared with a direct aggregation (FLAGS=...)
	$(BIN)/evenflow demo $(FLAGS)

monitoring: setup ## the demo under load, with Prometheus (installed as root) and the live page (FLAGS=...)
	$(BIN)/python -m tests.ground.debian prometheus
	$(BIN)/evenflow demo --watch --prometheus $(FLAGS)

test: setup ## lint, types, layers, and the tests, in four processes on two cores (JOBS=...)
	@$(MAKE) --no-print-directory -j 2 lint kernels
	$(SHARES) $(TWICE) $(BY_FILE) tests/pipeline tests/chaos tests/faults tests/unit \
		-m "not more and not long" --durations=40 $(FLAGS)

test-consume: setup ## the tests of the partitioner with partitioner.reading = "consume"
	$(SHARES) EVENFLOW_PARTITIONER__READING=consume $(TWICE) $(BY_FILE) \
		tests/unit/partitioner_service tests/pipeline/partitioner -m "not more and not long" $(FLAGS)

test-browser: setup ## the live page in Debian's Chromium, which is installed (as root)
	$(BIN)/python -m tests.ground.debian chromium
	$(BIN)/python -m pytest tests/browser $(FLAGS)

test-containers: setup ## the suites in Docker containers; installs the engine, makes the images (as root)
	$(BIN)/python -m tests.ground prepare containers
	$(BIN)/python -m pytest tests/containers $(FLAGS)

test-k8s: setup ## the suites on Kubernetes with real pods; builds it once (as root), or see CONTRIBUTING.md
ifdef EVENFLOW_TEST_KUBECONFIG
	@# A cluster that is there takes the manifests. The other suites load images into a node, or take nodes away.
	$(BIN)/python -m pytest tests/k8s/test_manifests.py tests/k8s/test_production.py $(FLAGS)
else
	$(BIN)/python -m tests.ground prepare k8s
	$(BIN)/python -m pytest tests/k8s $(FLAGS)
endif

test-rl: setup ## the training of policies (tests/rl); installs the extra `rl` into a venv of its own, .rl
	@test -x .rl/bin/python || $(PYTHON) -m venv .rl
	.rl/bin/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e ".[rl]" \
		-r requirements.lock
	PYTHONPATH=$(CURDIR) .rl/bin/python -m pytest tests/rl $(FLAGS)

test-more: setup ## the longer suites, some in containers (CONTAINERS=no: none), and smoke runs of benchmarks
	$(BIN)/python -m tests.ground.debian chromium prometheus
	$(SHARES) $(TWICE) $(BY_GROUP) tests/unit tests/pipeline tests/chaos tests/faults tests/browser \
		-m "more and not long and not containers and not k8s" --durations=40 $(FLAGS)
ifneq ($(CONTAINERS),no)
	$(BIN)/python -m tests.ground prepare containers
	$(BIN)/python -m pytest tests/containers -m more $(FLAGS)
endif
	$(BIN)/python -m benchmarks --smoke $(SMOKE)

test-long: setup ## more kinds of tests: every partitioner, more kills; a smoke run of every benchmark
	$(BIN)/python -m tests.ground.debian prometheus
	$(PYTEST) tests -m "long or family" $(FLAGS)
	EVENFLOW_EXAMPLES=10 $(PYTEST) tests/unit -m hypothesis --timeout 3000 $(FLAGS)
	$(BIN)/python -m benchmarks --smoke

fuzz: setup ## coverage-guided fuzzing of decoders and parsers (SECONDS=10 for each target); saves what raised
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --target .fuzz/site \
		-r tests/fuzz/requirements.txt
	PYTHONPATH=$(CURDIR):.fuzz/site $(BIN)/python -m tests.fuzz --seconds $(SECONDS) $(FLAGS)

simulate-faults: setup ## the simulator of faults over any seeds (SEEDS=1000 FROM=0; FLAGS="--show SEED")
	$(BIN)/python -m tests.faults --seeds $(SEEDS) --from $(FROM) $(FLAGS)

simulate-on: setup ## the next SEEDS=1000 seeds that nobody has run, added to runs.csv and docs/correctness.md
	$(BIN)/python -m tests.faults --seeds $(SEEDS) --write $(FLAGS)

test-chaos: setup ## real processes under real faults (FLAGS="--seed N --minutes M"; as root also full disks)
	$(BIN)/python -m tests.chaos $(FLAGS)

test-recovery: setup ## how long until windows come again after each part is lost (FLAGS="--times 3 --write")
	$(BIN)/python -m tests.chaos.recovery $(FLAGS)

test-brokers: setup ## the pipeline on three brokers, of which one or two are lost
	$(BIN)/python -m pytest tests/brokers $(FLAGS)

lint: setup ## ruff, mypy, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

kernels: setup ## compile the kernels, which every process of the tests would else do by itself
	$(BIN)/python -m partitioner_service.precompile

lock: ## the hashes of the packages in requirements.lock, and the lock of the site (uv, in .audit)
	@test -x .audit/bin/python || $(PYTHON) -m venv .audit
	.audit/bin/python -m pip install --quiet --disable-pip-version-check -r docker/audit.txt
	.audit/bin/uv pip compile requirements.lock --quiet --no-deps --generate-hashes --no-header --no-annotate \
		--python-version 3.11 --universal --output-file requirements.hashed.lock
	.audit/bin/uv pip compile website/requirements.txt --quiet --generate-hashes --no-header --no-annotate \
		--python-version 3.11 --universal --output-file website/requirements.hashed.lock

sbom: setup ## a bill of materials (CycloneDX) of the packages and jars, in build/sbom.json
	@test -x .audit/bin/python || $(PYTHON) -m venv .audit
	.audit/bin/python -m pip install --quiet --disable-pip-version-check -r docker/audit.txt
	@mkdir -p build
	.audit/bin/cyclonedx-py requirements requirements.hashed.lock --pyproject pyproject.toml \
		--output-reproducible --output-file build/packages.json
	$(BIN)/python -m workbench.supply.materials build/packages.json > build/sbom.json

audit: setup ## what is known against the locked packages and the jars (needs the network); hashes of the jars
	@test -x .audit/bin/python || $(PYTHON) -m venv .audit
	.audit/bin/python -m pip install --quiet --disable-pip-version-check -r docker/audit.txt
	@# All of them, whatever one finds. One lock after the other, as both name some packages. --strict: a package
	@# without an answer is a failure.
	@failed=0; \
	$(BIN)/python -m spark_consumers.jars.hashes || failed=1; \
	for lock in requirements.hashed.lock website/requirements.hashed.lock; do \
		.audit/bin/pip-audit --requirement $$lock --require-hashes --disable-pip --strict \
			--progress-spinner off $(FLAGS) || failed=1; \
	done; \
	$(BIN)/python -m workbench.supply.jar_audit || failed=1; \
	exit $$failed

format: setup ## put code and pages into the one format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python -m tests.page_width --write

bench: setup ## the benchmarks (FLAGS="ID ..." for some)
	$(BIN)/python -m benchmarks $(FLAGS)

reproduce: setup ## the papers' figures again: docs/reproducing.md (FLAGS="--section NAME", --text-only, ...)
	$(BIN)/python -m papers $(FLAGS)

docs: setup ## regenerate the generated pages, and the pictures of kept rows
	$(BIN)/evenflow settings --markdown > docs/settings.md
	$(BIN)/evenflow partitioners --markdown > docs/algorithms.md
	$(BIN)/evenflow policies --markdown > docs/policies.md
	$(BIN)/evenflow aggregates --markdown > docs/aggregates.md
	$(BIN)/python -m benchmarks.pictures
	$(BIN)/python -m benchmarks.fleet
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.readme
	$(BIN)/python -m benchmarks.measurements_page
	$(BIN)/python -m benchmarks.pipeline.profile_page
	$(BIN)/python -m benchmarks.cores.forwarding_page
	$(BIN)/python -m monitoring.instruments > docs/metrics.md
	$(BIN)/python -m monitoring.grafana

site: $(SITE) ## all pages as a site with search, in build/site (mkdocs, in .site); opens without a server
	NO_MKDOCS_2_WARNING=1 .site/bin/mkdocs build --strict --quiet --config-file website/mkdocs.yml
	@echo build/site/index.html

# tests/browser builds the site and reads it.
test-browser test-more: $(SITE)

$(SITE): website/requirements.hashed.lock
	@test -x .site/bin/python || $(PYTHON) -m venv .site
	.site/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
		-r website/requirements.hashed.lock
	@touch $@

queries: setup ## every built-in query through the whole pipeline: docs/queries.md (FLAGS=...)
	$(BIN)/python -m benchmarks.queries_page $(FLAGS)

broker: setup ## an embedded broker on 127.0.0.1:9092 until Ctrl-C (FLAGS="--port 0")
	$(BIN)/evenflow broker $(FLAGS)

doctor: setup ## what is wrong on this machine, and what to do
	$(BIN)/evenflow doctor $(FLAGS)

clean: ## remove what tools and runs leave behind (not .venv, not the jars)
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .numba_cache .evenflow
	rm -rf build dist .rl .audit .site
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
