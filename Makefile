# A thin front to CMake. `make` builds, `make demo` shows something, `make check` takes a minute,
# `make test` checks everything.
PREFIX ?= /usr/local
BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
GENERATOR := $(shell command -v ninja >/dev/null 2>&1 && echo Ninja || echo "Unix Makefiles")
CMAKE_FLAGS ?=

configure = cmake -S . -B $(1) -G "$(GENERATOR)" $(2) $(CMAKE_FLAGS) >$(1).log 2>&1 || { cat $(1).log; exit 1; }

.PHONY: all demo check test test-clients bench bench-all asan tsan fuzz install clean digits operators

all:
	@$(call configure,$(BUILD),-DCMAKE_BUILD_TYPE=Release -DSINTER_TESTS=OFF)
	@cmake --build $(BUILD) -j $(JOBS)

demo:
	@tools/install-deps.sh build
	@$(MAKE) --no-print-directory all
	@$(BUILD)/sinter_demo demo/digits.onnx demo/3.png demo/doubtful.png
	@printf '\n  Look inside:  $(BUILD)/sinter inspect demo/digits.onnx\n'
	@printf '  All commands: $(BUILD)/sinter help\n\n'

# Unit, operator and conformance tests: what to run after each change.
check:
	@tools/test.sh check

test:
	@tools/test.sh all

asan tsan:
	@tools/test.sh $@

# Programs in other languages and with ONNX Runtime's interface.
test-clients:
	@tools/test.sh clients

# One minute for each fuzzer; FUZZ_SECONDS=600 for longer.
fuzz:
	@tools/fuzz.sh

# A quick look at a few models beside the real ONNX Runtime, which npm brings; bench-all measures the
# whole table three times with PyTorch as well and writes it to docs/PERFORMANCE.md (an hour).
bench bench-all: all
	@tools/install-deps.sh export
	@tools/install-deps.sh bench
	@bench/versus/versus.py $(if $(filter bench,$@),--quick,--repeat 3 --markdown docs/PERFORMANCE.md) \
	    --build $(BUILD) --json $(BUILD)/versus.json --html $(BUILD)/versus.html
	@printf '\n  Bars: $(BUILD)/versus.html\n\n'

install: all
	cmake --install $(BUILD) --prefix "$(PREFIX)"

# Trains the demonstration's model again (PyTorch and scikit-learn).
digits:
	@tools/install-deps.sh export
	/usr/bin/python3 tools/train_digits.py demo

operators: all
	$(BUILD)/sinter ops --markdown > docs/OPERATORS.md

clean:
	rm -rf build build.log build-test
