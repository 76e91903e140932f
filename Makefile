# make demo    the champion plays in the browser, and you can play against it; no training
# make run     train a pupil for 10 minutes, then evaluate it beside its teachers; MINUTES=3 for less
# make test    every test, as CI runs them
# make check   formatting, types and the fast tests, of the page and of Lua too; pre-commit runs it
# make prove   the long proofs: "make prove NAME" for one of them
# make clean   remove what can be made again
#
# Each installs .venv from requirements.lock first, when it is missing or out of date.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/installed
MINUTES ?= 10

# Words after "prove" name a proof, not a target.
ifeq ($(firstword $(MAKECMDGOALS)),prove)
PROOF := $(wordlist 2,99,$(MAKECMDGOALS))
endif

.DEFAULT_GOAL := help
.PHONY: help demo run test check check-page prove clean $(PROOF)

help:
	@sed -n 's/^# \(make [a-z]*  *\)/  \1/p' $(firstword $(MAKEFILE_LIST))

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Protege needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 run" >&2; exit 1; }
	@scripts/system-packages venv
	@echo "Installing into $(VENV): a few minutes, once"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP)
	@echo "The champion plays in the page that opens; under Play you play against it. Ctrl-C ends it."
	$(BIN)/protege watch tempest $(ARGS)

run: $(STAMP)
	$(BIN)/protege train tempest --minutes $(MINUTES) $(ARGS)

test: $(STAMP)
	@scripts/system-packages tests
	$(BIN)/pytest -n 2 $(ARGS)

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 -q -m "not slow and not network and not mame and not browser" $(ARGS)
	$(BIN)/python scripts/check
	@$(MAKE) --no-print-directory check-page

check-page:
	@scripts/check-page

prove: $(STAMP)
	@scripts/system-packages tests
	$(BIN)/pytest -m prove -s -v $(if $(PROOF),-k "$(PROOF)") $(ARGS) || { code=$$?; \
	  [ $$code != 5 ] || { echo "No proof called '$(PROOF)'. The proofs are:" >&2; $(BIN)/pytest -m prove --collect-only -q >&2; }; \
	  exit $$code; }

ifdef PROOF
$(PROOF): prove
	@:
endif

clean:
	rm -rf $(VENV) node_modules build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find protege tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
