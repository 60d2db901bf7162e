# Needs make and Python >= 3.11, < 3.14; everything else is installed into .venv and .nightmill.
# PYTHON=/path/to/python3 chooses the interpreter, NIGHTMILL_HOME=/some/dir another state directory.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

UV_VERSION := 0.13.9
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.nightmill-ready
LOCK := "$(BIN)/uv" pip compile --quiet --universal --generate-hashes --python-version 3.11 --all-extras
PYTHON ?=

export GX_ANALYTICS_ENABLED := false
export DO_NOT_TRACK := 1
export SCARF_ANALYTICS := false
export UV_NO_PROGRESS := 1
# Airflow starts three times faster from bytecode files.
unexport PYTHONDONTWRITEBYTECODE
unexport PYTHONHOME
unexport VIRTUAL_ENV
# Tests call make themselves: what this call was given is not meant for theirs.
ALONE := env -u ARGS -u JOB -u MAKEFLAGS -u MFLAGS -u MAKEOVERRIDES -u MAKELEVEL

define FIND_PYTHON
suitable='import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))'; \
version='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))'; \
found=; partial=; \
for candidate in $${PYTHON:-python3 python3.13 python3.12 python3.11}; do \
  "$$candidate" -c "$$version" >/dev/null 2>&1 || continue; \
  partial=$$candidate; \
  if "$$candidate" -c "$$suitable" >/dev/null 2>&1; then found=$$candidate; break; fi; \
done; \
if [ -z "$$found" ] && [ -n "$$partial" ]; then \
  echo "error: $$partial cannot make virtual environments (the modules venv and ensurepip are missing)." >&2; \
  echo "remedy: install them (Debian, Ubuntu: apt-get install python3-venv) or set PYTHON=... to another one." >&2; \
  exit 1; \
elif [ -z "$$found" ]; then \
  echo "error: no Python >= 3.11, < 3.14 found (tried: $${PYTHON:-python3 python3.13 python3.12 python3.11})." >&2; \
  echo "remedy: install one, or name it: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; \
  exit 1; \
fi
endef

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

.PHONY: setup
setup: $(READY) ## Install everything into .venv (a few minutes the first time)

$(READY): requirements-dev.txt Makefile
	@$(if $(PYTHON),PYTHON='$(PYTHON)';) \
	if ! "$(BIN)/python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null; then \
	  $(FIND_PYTHON); \
	  echo "creating $(VENV) with $$("$$found" --version)"; \
	  "$$found" -m venv --clear "$(VENV)"; \
	fi
	@"$(BIN)/python" -m pip --version >/dev/null 2>&1 || "$(BIN)/python" -m ensurepip --upgrade >/dev/null
	@"$(BIN)/python" -m pip install --quiet --disable-pip-version-check "uv==$(UV_VERSION)"
	@echo "installing the locked requirements"
	@"$(BIN)/uv" pip sync --quiet --python "$(BIN)/python" --require-hashes requirements-dev.txt
	@"$(BIN)/python" -c 'import pathlib, sysconfig; \
	  paths = "".join(f"{pathlib.Path(each).resolve()}\n" for each in ("include", ".")); \
	  pathlib.Path(sysconfig.get_path("purelib"), "nightmill.pth").write_text(paths)'
	@touch "$(READY)"

.PHONY: demo
demo: $(READY) ## Run the demo job on a real local Airflow and show its result
	@"$(BIN)/python" -m dev.stack demo

.PHONY: run
run: $(READY) ## Run one job on the local stack and show its result (JOB=license_audit ARGS="--limit 10")
	@"$(BIN)/python" -m dev.stack run $(JOB) $(ARGS)

.PHONY: up
up: $(READY) ## Start Postgres, the local provider and Airflow, or repair what is not running
	@"$(BIN)/python" -m dev.stack up

.PHONY: down
down: ## Stop everything that up or demo started
	@if [ -x "$(BIN)/python" ]; then "$(BIN)/python" -m dev.stack down; fi

.PHONY: status
status: $(READY) ## Show what runs where
	@"$(BIN)/python" -m dev.stack status

.PHONY: psql
psql: $(READY) ## Open psql on the local stack's database
	@"$(BIN)/python" -m dev.stack psql

.PHONY: cli
cli: $(READY) ## Run a nightmill command on the local stack (ARGS="status", "doctor", "apply", ...)
	@"$(BIN)/python" -m dev.stack cli $(ARGS)

.PHONY: test
test: $(READY) ## Run the tests in two processes (ARGS="tests/stack -k ports" runs some)
	@$(ALONE) "$(BIN)/python" -m pytest -m "not slow" -n 2 --no-loadscope-reorder $(ARGS)

.PHONY: sweep
sweep: $(READY) ## Run the tests that need minutes: the full form of what `make test` does small
	@$(ALONE) "$(BIN)/python" -m pytest -m slow $(ARGS)

.PHONY: chaos
chaos: $(READY) ## Run a job under all faults at once while its workers are killed (CHAOS_ITEMS=5000, CHAOS_SEED=1)
	@PYTHONPATH=tests "$(BIN)/python" -m chaos

.PHONY: bench
bench: $(READY) ## Measure what each stage costs per item beside its floor (SIZES=10000,100000; default up to 1M)
	@"$(BIN)/python" -m dev.bench

.PHONY: bench-airflow
bench-airflow: $(READY) ## Measure a run's wall against its number of shards, and Airflow's share (SHARDS=4,16; BATCH_SECONDS=2)
	@"$(BIN)/python" -m dev.bench.airflow

.PHONY: lint
lint: $(READY) ## Check style, types, import directions and declared dependencies
	"$(BIN)/ruff" check .
	"$(BIN)/ruff" format --check .
	"$(BIN)/mypy"
	"$(BIN)/lint-imports"
	"$(BIN)/deptry" include/nightmill
	"$(BIN)/python" -m dev.lint.shared_namespaces

.PHONY: docs
docs: $(READY) ## Write the reference of job.yaml and its JSON schema from the models
	@"$(BIN)/python" -m dev.write.job_reference

.PHONY: lock
lock: $(READY) ## Resolve pyproject.toml and requirements*.in into the hashed requirements*.txt (ARGS=--upgrade: newest)
	$(LOCK) $(ARGS) pyproject.toml requirements.in -o requirements.txt
	$(LOCK) -c requirements.txt $(ARGS) pyproject.toml requirements-dev.in -o requirements-dev.txt

.PHONY: clean
clean: down ## Stop everything and delete .venv, .nightmill and caches
	rm -rf "$(VENV)" .nightmill .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find include dev tests dags plugins -name __pycache__ -type d -prune -exec rm -rf {} +
