# The front door. Each target installs what it needs (tools/setup), so that a fresh clone needs git and make only.
#
#   make demo     two processes exchange datagrams through managed address handles, on the software RNIC
#   make test     build, then every test of the release tree
#   make help     the rest

PRESET ?= release
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_RUNS ?= 200000
SOAK_SECONDS ?= 600
SOAK_SENDS ?= 10000000
SOAK_PEERS ?= 10000
SOAK_PACKETS ?= 10000000
CTEST_ARGS ?=

BUILD := build/$(PRESET)
TOOL := $(BUILD)/bin/verbena

# The compiler cache needs a home that can be written to; a system user has none.
ifeq ($(CCACHE_DIR)$(shell test -w "$$HOME" && echo home),)
export CCACHE_DIR := $(CURDIR)/build/.ccache
endif

# A step of the front door waits for the one before it; ninja and ctest are parallel within.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: demo test test-quick vm-test vm-bench build all-targets bench lint format fuzz soak install package docs clean help
.PHONY: setup-%

demo: setup-demo products
	$(TOOL) demo

build: setup-build products

test: setup-test all-targets
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) $(CTEST_ARGS)

# The inner loop: what neither builds a network nor takes long.
test-quick: setup-build all-targets
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) -LE 'e2e|slow|bench' $(CTEST_ARGS)

# Beside a kernel's RoCE device, in a virtual machine.
vm-test: setup-vm vm-programs
	VERBENA_VM_TESTS=all ctest --test-dir $(BUILD) -C vm -L '^vm$$' --no-tests=error --output-on-failure $(CTEST_ARGS)

vm-bench: setup-vm vm-programs
	VERBENA_VM_ROUNDS=7 tests/vm/run $(BUILD) --out build/vm/bench test_speed.py bench_connected.py -s

bench: setup-bench all-targets
	tools/bench $(BUILD)

lint: setup-lint
	tools/lint

format: setup-lint
	git ls-files '*.h' '*.cc' '*.c' | xargs clang-format -i

fuzz: setup-fuzz
	tools/fuzz $(FUZZ_RUNS)

soak: setup-test all-targets
	VERBENA_SOAK_SECONDS=$(SOAK_SECONDS) VERBENA_SOAK_SENDS=$(SOAK_SENDS) VERBENA_SOAK_PEERS=$(SOAK_PEERS) VERBENA_SOAK_PACKETS=$(SOAK_PACKETS) ctest --test-dir $(BUILD) -V -L soak

install: setup-build products
	DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)

package: setup-package products
	cd $(BUILD) && cpack -G DEB
	@ls -l $(BUILD)/packages/*.deb

# Writes docs/settings.md and docs/drops.md again from the tables in the source.
docs: setup-build $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS) --target generate-docs
	tools/generate-docs $(BUILD)

clean:
	rm -rf build

help:
	@echo 'make demo        two processes exchange datagrams on the software RNIC; prints latency, rate, directory'
	@echo 'make test        every test of the release tree        CTEST_ARGS="-R ah/" for some, PRESET=asan-ubsan, tsan'
	@echo 'make test-quick  the tests of the inner loop'
	@echo 'make vm-test     beside the kernel RoCE device rxe, in a virtual machine (fetches qemu and a kernel)'
	@echo 'make vm-bench    what an address costs on rxe, and RC beside rxe, in the virtual machine: ratios'
	@echo 'make build       build/release/bin/verbena and the libraries'
	@echo 'make bench       the benchmarks, ratios side by side'
	@echo 'make lint        format, layers, headers, names in documents, clang-tidy on what changed'
	@echo 'make format      clang-format on the tree'
	@echo 'make fuzz        each fuzz target for FUZZ_RUNS executions ($(FUZZ_RUNS))'
	@echo 'make soak        long runs under traffic, faults and restarts for SOAK_SECONDS ($(SOAK_SECONDS)), and SOAK_SENDS ($(SOAK_SENDS))'
	@echo '                 datagrams to SOAK_PEERS ($(SOAK_PEERS)) peers through the directory, and SOAK_PACKETS ($(SOAK_PACKETS))'
	@echo '                 packets of connections over the simulated network'
	@echo 'make install     to PREFIX ($(PREFIX)), under DESTDIR'
	@echo 'make package     Debian packages in build/release/packages'
	@echo 'make docs        docs/settings.md and docs/drops.md from the tables'
	@echo 'make clean       removes build/'

setup-%:
	@tools/setup $*

# A configuration that failed half-way leaves no build.ninja, and is made again.
$(BUILD)/build.ninja:
	cmake --preset $(PRESET)

.PHONY: products
products: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS) --target products

.PHONY: vm-programs
vm-programs: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS) --target vm-programs

all-targets: $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS)
