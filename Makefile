# `make run` and `make test` are all that a fresh clone needs; each sets up .venv first.

.DEFAULT_GOAL := help
.PHONY: run paper hayakawa suite resume test coverage lint docs setup lock clean help

CONFIG ?= config/config.yaml
PROFILE ?= profiles/local

# Nothing may be imported that requirements.lock does not name.
unexport PYTHONPATH PYTHONHOME
# Else each of the many processes of a run, or of the tests, compiles the package again.
unexport PYTHONDONTWRITEBYTECODE

IN_VENV := . .venv/bin/activate &&
SNAKEMAKE = $(IN_VENV) exec python -m snakemake --profile "$(PROFILE)" --configfile "$(CONFIG)"

run: setup ## run the sweep in CONFIG on the machines in PROFILE
	@$(IN_VENV) exec bqlib run "$(CONFIG)" --profile "$(PROFILE)" $(ARGS)

paper: CONFIG = config/paper.yaml
paper: run ## run the whole paper, with 20 seeds, and judge its claims
	@$(IN_VENV) exec python -m bqlib claims results/paper

hayakawa: CONFIG = config/hayakawa.yaml
hayakawa: run ## run the experiments of Hayakawa, Oberhauser and Lyons (2022), and judge them
	@$(IN_VENV) exec python -m bqlib claims results/hayakawa

suite: CONFIG = config/suite.yaml
suite: run ## run the rules of bqlib on the problems of the benchmark suite

resume: setup ## continue a run that was killed
	@$(IN_VENV) exec bqlib resume "$(CONFIG)" --profile "$(PROFILE)" $(ARGS)

test: setup ## run the tests
	@$(IN_VENV) exec python -m pytest $(ARGS)

coverage: setup ## run the tests, and show which branches of the numerics they miss
	@$(IN_VENV) exec python -m pytest $(ARGS) --cov

lint: setup ## check style, types and the workflow, change nothing
	@$(IN_VENV) ruff format --check .
	@$(IN_VENV) ruff check .
	@$(IN_VENV) mypy
	@$(IN_VENV) python -m snakefmt --check Snakefile workflow
	@$(SNAKEMAKE) --lint

docs: setup ## build the documentation; ARGS="-b linkcheck" tries links to elsewhere
	@rm -rf docs/_api
	@echo "Building the documentation, which takes a minute or two."
	@$(IN_VENV) exec python -m sphinx -W --keep-going -n -q -j auto docs docs/_build $(ARGS)
	@echo "The documentation is in docs/_build/index.html"

setup: ## only set up .venv from requirements.lock
	@sh tools/setup.sh

lock: ## write requirements.lock from pyproject.toml; ARGS=--upgrade takes newer releases
	@sh tools/lock.sh $(ARGS)

clean: ## remove .venv and caches; results stay
	[ -L .venv ] || rm -f .venv/ready # of a link only the link goes
	rm -rf .venv docs/_api docs/_build docs/jupyter_execute .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find bqlib tests tools workflow benchmarks docs -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

help: ## list these commands
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1@\2/p' Makefile | awk -F@ '{ printf "%-16s%s\n", $$1, $$2 }'
	@echo
	@echo '  CONFIG=$(CONFIG)  PROFILE=$(PROFILE)  ARGS="..." is passed on to snakemake, pytest or sphinx'
	@echo '  PYTHON=python3.12 sets up .venv with that Python; without it, with python3'
