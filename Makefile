# make run: install, then the main job.  make test: install, then every check and test.
# Empty: the best that is installed, see scripts/ensure-python.
PYTHON ?=
VENV   := .venv
BIN    := $(VENV)/bin
# Tests start thousands of Python processes; without bytecode each compiles its modules anew.
unexport PYTHONDONTWRITEBYTECODE
# What constraints.txt pins and development installs.
EXTRAS := cli cluster console database dev oauth registry retry sdk spark
PYTEST := $(BIN)/python -m pytest
ALONE  := not soak and not peer
# Tests that replace functions, which compiled callers would not notice, run with the sources.
PURE   := PENSTOCK_PURE=1 $(PYTEST)

.PHONY: help setup run test quick soak coverage faults check format bench lock codegen docs rows paths dist site

help:  ## Show the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(VENV)/installed: pyproject.toml constraints.txt
	scripts/ensure-python "$(PYTHON)" $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r constraints.txt
	@touch $@

# Modules that mypyc compiles, and extensions in C: built if there is a C compiler, see setup.py.
BUILT := $(shell sed -n '/^compiled = \[/,/^\]/s|^  "\(.*\)",|src/penstock/\1|p' pyproject.toml) \
  $(wildcard src/penstock/*/_*.c src/penstock/*/*/_*.[ch])

$(VENV)/built: $(VENV)/installed setup.py $(BUILT)
	@touch $@.begun
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@$(BIN)/python -c 'from penstock.compiled import is_compiled as c; c() or print("make: Penstock is not compiled", \
	  "(no C compiler, no headers of Python, or PENSTOCK_PURE=1): the sources run, slower")'
	@mv $@.begun $@

setup: $(VENV)/built  ## Create .venv with everything that development needs

run: setup  ## A broker, access logs and their analytics on Spark; ends by Ctrl-C, or by itself (RUN_SECONDS)
	scripts/ensure-java
	$(BIN)/python examples/demo.py

test: setup peers check  ## Install what the tests need and run every check and test
	scripts/run-tests $(PYTEST) -m "$(ALONE)" $(ARGS)
	PENSTOCK_PURE=1 scripts/run-tests $(PYTEST) -m "$(ALONE) and pure"
	scripts/run-tests $(PYTEST) -m "not soak and peer" --dist loadfile $(ARGS)

quick: setup  ## The inner loop, under three minutes: checks, and tests without other programs
	@$(MAKE) --no-print-directory check
	$(PYTEST) -m "$(ALONE) and not slow" -n 2 $(ARGS)
	$(PURE) -m "$(ALONE) and not slow and pure" -n 2

soak: setup peers  ## The long forms of fault, seed and fuzz runs
	PENSTOCK_SOAK=1 PENSTOCK_PURE=1 $(PYTEST) --timeout 3600 $(ARGS)

coverage: setup  ## Branches that tests without other programs take, of the packages that hold the rules
	@mkdir -p build/coverage && rm -f build/coverage/data*
	PENSTOCK_PURE=1 $(BIN)/python -m coverage run -m pytest -m "$(ALONE)" -n 2 -q $(ARGS)
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage report --skip-covered --sort=cover

faults: setup peers  ## Faults of a cluster under load, in any order (ARGS: --minutes N --seed S --only KIND; --sum)
	PYTHONPATH=tests $(BIN)/python -m faults.soak $(ARGS)

check: $(VENV)/installed  ## Lint, format, types, import contracts, known vulnerabilities
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports
	$(BIN)/python scripts/audit.py

format: setup  ## Format, and mend what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: peers
peers: setup  ## Install the servers and tools that tests run against (skips what is there)
	scripts/install-peers
	PYTHONPATH=tests $(BIN)/python -m peers.spark_archive

bench: setup peers  ## Measure, and write docs/benchmarks.md; with ARGS, such as broker: only print figures and ratios
	$(BIN)/python -m bench $(or $(ARGS),page)

dist: setup  ## Build a release into dist/, twice, and try each artefact in empty environments (ARGS: Pythons)
	$(BIN)/python -m scripts.dist $(ARGS)

codegen: setup peers  ## Rewrite wire/messages from the schemas inside the official client jars, and wire/hot.py
	PENSTOCK_PURE=1 $(BIN)/python -m codegen
	PENSTOCK_PURE=1 $(BIN)/python -m codegen.hot

docs: setup  ## Rewrite the generated pages under docs/ and dashboards under deploy/
	$(BIN)/python scripts/docs.py
	$(BIN)/python scripts/dashboards.py

site: setup  ## Build the documentation as a site, build/site/index.html
	$(BIN)/python -m scripts.site

rows: setup  ## Print the rows of docs/rows.md that no test shows (ARGS=--tests: every row with its tests)
	@$(BIN)/python scripts/rows.py $(ARGS)

paths: setup  ## Count the files that a request passes through (ARGS=--files: list them)
	@PENSTOCK_PURE=1 $(BIN)/python scripts/paths.py $(ARGS)

lock: setup  ## Resolve constraints.txt anew
	$(BIN)/uv pip compile --quiet --python-version 3.11 --universal $(EXTRAS:%=--extra %) --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate --upgrade pyproject.toml -o constraints.txt
	$(BIN)/python -m scripts.pins
