# Every target sets up what it needs. PYTHON chooses the interpreter (3.11 or newer).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# torch goes first, pinned: a bare `torch` of another package would pull the newest one, with gigabytes of CUDA.
# Where the package index has CUDA builds only, name a CPU build here: make test TORCH=…
TORCH ?= torch==2.13.0

# The browser of the explorer's tests: Debian's, unless there is one; without it, they are skipped.
CHROMIUM := command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium; } >/dev/null 2>&1 || \
	echo "Chromium is not installed: the browser tests are skipped"

# Benchmarks of a machine without a GPU: not those that need one (CONTRIBUTING.md) or downloaded data (real_data.py), nor
# the modules that others import. tables.py, which reads all results, runs last.
BENCHMARKS := $(filter-out $(patsubst %,benchmarks/%.py,eigen_gpu models pair_head real_data real_models real_training recurrence \
	relations sorting_encoded tables timing training),$(wildcard benchmarks/*.py))

.PHONY: test lint demo explore docs screenshots bench slow fuzz clean

test: lint
	@$(CHROMIUM)
	$(BIN)/python -m pytest

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

demo: $(VENV)/train
	$(BIN)/python -m paper figure-examples --out demo
	OMP_WAIT_POLICY=passive $(BIN)/python -m paper figure-quick --out demo --runs demo/runs --device cpu

# Opens a page in the browser; FILE is a graph or Python source to show.
explore: $(VENV)/web
	$(BIN)/magnetite explore $(FILE)

# The pictures of the explorer in the documentation.
screenshots: $(VENV)/dev
	@$(CHROMIUM)
	MAGNETITE_SCREENSHOTS=docs/images $(BIN)/python -m pytest -n 0 -m browser tests/explorer

docs: $(VENV)/docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build

bench: $(VENV)/dev
	for script in $(BENCHMARKS) benchmarks/tables.py; do $(BIN)/python $$script || exit 1; done

slow: $(VENV)/dev
	$(BIN)/python -m pytest -m slow -n 0

# Random cases with a new seed, until Ctrl-C.
fuzz: $(VENV)/dev
	$(BIN)/python -m tests.fuzz

clean:
	rm -rf $(VENV) demo docs/_build docs/.jupyter_cache docs/jupyter_execute .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/torch:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check $(TORCH)
	touch $@

# An editable install with the extras named by the target: base, train, web, dev or docs.
$(VENV)/base: $(VENV)/torch pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/%: $(VENV)/torch pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[$*]'
	touch $@
