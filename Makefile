# A front for CMake and the scripts; `make help` lists it.

PREFIX ?= /usr/local
DEVICE ?=
SEED   ?=
EPOCHS ?=
TEST   ?=
BASE   ?= HEAD
STAGES ?=
FUZZ   ?=

.PHONY: all help demo test test-more quick one bench bench-peers bench-gpu fuzz install format symbols clean

all: ## the release build: library, examples, benchmarks, tools
	@scripts/build release

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: ## train a convolutional network on Fashion-MNIST (DEVICE=, SEED=, EPOCHS=)
	@scripts/setup demo
	@DEVICE='$(DEVICE)' SEED='$(SEED)' EPOCHS='$(EPOCHS)' scripts/demo

test: ## the tests (STAGES="format arrows" runs a part; STAGES=device DEVICE=CUDA those tests on that device)
	@scripts/setup test
	@DEVICE='$(DEVICE)' scripts/test $(or $(STAGES),core)

test-more: ## after `make test`: other compilers, processors and devices, sanitizers, fuzzing
	@scripts/setup test
	@scripts/test more

quick: ## what changed since BASE=HEAD, in two minutes: format, arrows, the tests of its rooms and of those above
	@scripts/quick $(BASE)

one: ## one test, in the debug build: TEST=ops/test_softmax
	@scripts/build debug tests-$(subst /,-,$(TEST))
	@build/debug/tests/$(TEST)

bench: ## the benchmarks, as a table and as build/bench.json
	@scripts/bench

bench-peers: ## the benchmarks with the newest torch beside them, in an environment under build/
	@scripts/bench --peers

bench-gpu: ## what a device has to show, proofs and speed, in ten minutes (DEVICE=CUDA)
	@DEVICE='$(DEVICE)' bench/gpu

fuzz: ## every fuzz target for FUZZ=60 seconds
	@scripts/setup test
	@scripts/fuzz $(FUZZ)

install: ## library, headers, their description api.json, CMake package, pkg-config file (PREFIX=/usr/local)
	@scripts/build release all -- -DCMAKE_INSTALL_PREFIX='$(PREFIX)'
	@cmake --install build/release

wheel: ## build a wheel of the Python module in build/dist, by pip
	@python3 -m pip wheel . --no-deps -w build/dist

format: ## let clang-format rewrite the sources
	@scripts/check_format --fix

symbols: ## rewrite docs/symbols.txt after the public functions changed
	@scripts/build release weber
	@scripts/check_symbols --update build/release

clean: ## remove everything that was built
	rm -rf build
