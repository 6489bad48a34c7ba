# PlaneZip. `make help` lists the targets; each sets up what it needs in .venv.

.DEFAULT_GOAL := help
VENV := .venv
PY := $(VENV)/bin/python
SIM_SET := $(VENV)/ready-sim
TEST_SET := $(VENV)/ready-test
export PYTHON ?= python3

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(SIM_SET): requirements/sim.txt pyproject.toml .ci/setup
	@.ci/setup sim

$(TEST_SET): requirements/sim.txt requirements/test.txt pyproject.toml .ci/setup
	@.ci/setup test

.PHONY: sim
sim: $(SIM_SET) ## simulate the hardware against the golden codec (SIM=icarus, WAVES=1, COCOTB_RANDOM_SEED=n)
	@$(PY) -m tb.sim

.PHONY: sim-full
sim-full: $(SIM_SET) ## the same with everything there is, without a time limit
	@$(PY) -m tb.sim --full

.PHONY: test
test: $(TEST_SET) ## all tests, with the default set of make sim
	@$(PY) -m pytest -n 2 --dist worksteal tests tb

.PHONY: lint
lint: $(TEST_SET) ## ruff, mypy, and verilator --lint-only -Wall on the exported Verilog
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@.ci/mypy
	@$(PY) -m tb.lint

.PHONY: verilog
verilog: $(SIM_SET) ## write the hardware as Verilog to build/verilog/
	@$(PY) -m planezip.hdl.export

.PHONY: formal
formal: $(TEST_SET) ## prove the hardware's properties; build/formal/report.json
	@$(PY) -m formal

.PHONY: coverage
coverage: $(TEST_SET) ## bins of the format; lines, branches, toggles of the lanes' Verilog; build/coverage/
	@$(PY) -m formal.coverage

.PHONY: mutate
mutate: $(TEST_SET) ## mutants of both lanes against the benches' stimuli; build/mutate/report.json
	@$(PY) -m formal.mutation

.PHONY: soak
soak: $(TEST_SET) ## random runs of the engine, MINUTES=n (SEED=s, ROUND=r); build/soak/
	@$(PY) -m formal.soak $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(if $(ROUND),--round $(ROUND))

.PHONY: bench
bench: $(TEST_SET) ## speed and ratio of the golden codec beside other compressors
	@$(PY) -m tests.bench_codec

.PHONY: mutate-model
mutate-model: $(TEST_SET) ## mutants of the golden model's Python, to build/mutate/model.json
	@$(PY) -m tests.mutate_model

.PHONY: eval
eval: $(TEST_SET) ## the paper's figures 4 to 6 with our traces and ratios, to build/eval/
	@$(PY) -m planezip.sim.eval

.PHONY: synth
synth: $(if $(SWEEP),$(TEST_SET),$(SIM_SET)) ## area, clock and power of the hardware (LIBERTY="files", SWEEP=1)
	@$(PY) -m planezip.synth $(if $(LIBERTY),--liberty "$(LIBERTY)") $(if $(SWEEP),--sweep)

.PHONY: lock
lock: ## pin the versions in requirements/*.txt anew
	@.ci/lock

.PHONY: clean
clean: ## remove build/ (not .venv/)
	rm -rf build
