# Duplex. `make help' lists the targets and settings.
SHELL := /bin/bash
MAKEFLAGS += --no-builtin-rules
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)  # An explicit -j goes before it.
endif
.SUFFIXES:
.DELETE_ON_ERROR:

SANITIZE ?=
WERROR ?=
NATIVE ?=
ONEDNN ?= auto
CUDA ?= auto
ONLY ?=
ifneq ($(filter 1,$(SANITIZE)),)
BUILD ?= build-sanitize
else
BUILD ?= build
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
BIN := $(if $(filter build,$(BUILD)),bin,$(BUILD)/bin)/duplex

.PHONY: all
all: $(BIN)

# ---- Targets that build nothing themselves: they come before the probing.
.PHONY: help
help:
	@echo 'make            builds $(BIN); says what it found on this machine and goes without'
	@echo 'make deps       installs what is missing (without root: unpacks it into .deps/)'
	@echo 'make carry      gets the headers that an older distribution does not have, into .deps/, to be copied there'
	@echo '                (LIBRARIES=1: OpenSSL and GoogleTest too, for a machine like this one without a network)'
	@echo 'make test       sets up, builds, runs every test; ONLY="core net" runs those folders alone'
	@echo 'make demo       sets up, builds, trains LeNet on Fashion-MNIST alone and on two workers, compares'
	@echo 'make bench      times every network, beside its ceiling and PyTorch (ONLY=cpu), and the wire, beside iperf3'
	@echo '                and Gloo (ONLY=wire; 10 minutes; its hosts need root; writes docs/results/wire.md)'
	@echo 'make thesis     measures, simulates and replays the tables and figures of the thesis, and makes a page of them; goes on'
	@echo '                where it stopped (its hosts need root; FULL=1: every point on them, hours; OUT=folder, default runs/thesis)'
	@echo 'make lint       clang-format and clang-tidy; make format applies the former'
	@echo 'make probe      looks at the machine again'
	@echo 'make clean      removes what was built'
	@echo
	@echo 'Settings: BUILD=folder CXX=clang++ WERROR=1 NATIVE=1 (-march=native) ONEDNN=0|1 CUDA=0|1 CXXFLAGS= LDFLAGS='
	@echo '          SANITIZE=1 (AddressSanitizer and UBSan, in build-sanitize/)'

.PHONY: deps
deps:
	@bash make/deps.sh build test

.PHONY: carry
carry:
	@LIBRARIES='$(LIBRARIES)' bash make/carry.sh

# What is missing is installed before the machine is probed, so the rest is a make of its own.
.PHONY: test
test: deps
	@$(MAKE) --no-print-directory run-tests

.PHONY: demo
demo:
	@bash make/deps.sh build demo
	@$(MAKE) --no-print-directory $(BIN)
	@DUPLEX=$(BIN) bash tools/demo.sh

.PHONY: bench
bench_parts = $(or $(ONLY),cpu wire)
bench:
	$(if $(filter-out cpu wire,$(bench_parts)),$(error ONLY=$(ONLY): make bench has cpu and wire))
	@bash make/deps.sh build $(if $(filter cpu,$(bench_parts)),torch) $(if $(filter wire,$(bench_parts)),bench)
	@$(MAKE) --no-print-directory ONLY= $(BIN)
	@$(if $(filter cpu,$(bench_parts)),DUPLEX=$(BIN) python3 tools/bench_cpu)
	@$(if $(filter wire,$(bench_parts)),DUPLEX=$(BIN) python3 tools/bench_wire)

.PHONY: thesis
thesis:
	@bash make/deps.sh build bench
	@$(MAKE) --no-print-directory $(BIN)
	@DUPLEX=$(BIN) OUT='$(OUT)' FULL='$(FULL)' python3 tools/thesis

.PHONY: clean
clean:
	rm -rf build build-sanitize bin

ifneq ($(filter-out help deps carry test demo bench thesis clean,$(or $(MAKECMDGOALS),all)),)

# ---- What the machine has: probed once, and again when packages or settings change.
-include $(BUILD)/config.mk

$(shell mkdir -p $(BUILD); settings='$(CXX) $(ONEDNN) $(CUDA) $(CUDA_HOME) $(PYTHON)'; \
  [ "$$(cat $(BUILD)/settings 2>/dev/null)" = "$$settings" ] || echo "$$settings" > $(BUILD)/settings)
$(BUILD)/config.mk: make/probe.sh $(BUILD)/settings \
    $(wildcard .deps/stamp /var/lib/dpkg/status /var/lib/rpm/rpmdb.sqlite /var/lib/rpm/Packages)
	@CXX='$(CXX)' ONEDNN='$(ONEDNN)' CUDA='$(CUDA)' PYTHON='$(PYTHON)' bash make/probe.sh $(BUILD)

.PHONY: probe
probe:
	@CXX='$(CXX)' ONEDNN='$(ONEDNN)' CUDA='$(CUDA)' PYTHON='$(PYTHON)' bash make/probe.sh $(BUILD)
	@cat $(BUILD)/config.txt

# What was found is said before anything is compiled, and nothing is where something needed lacks.
.PHONY: report
report: $(BUILD)/config.mk
	@cat $(BUILD)/config.txt; [ '$(CONFIG_MISSING)' = 0 ]

# ---- Sources.
core_sources := $(wildcard core/*.cpp core/reference/*.cpp) \
  $(if $(CONFIG_ONEDNN),$(wildcard core/onednn/*.cpp))
# A library beside the program (core/cuda.h).
cudnn_sources := $(if $(CONFIG_CUDA),$(wildcard core/cudnn/*.cpp core/cudnn/*.cu))
layers_sources := $(wildcard layers/*.cpp)
models_sources := $(wildcard models/*.cpp)
datasets_sources := $(wildcard datasets/*.cpp)
net_sources := $(wildcard net/*.cpp)
tools_sources := $(wildcard tools/*.cpp tools/simulation/*.cpp tools/report/*.cpp)
# Every file of models/ but the registry is a network, called like the file.
networks := $(sort $(filter-out registry,$(basename $(notdir $(models_sources)))))

object = $(patsubst %.cu,$(BUILD)/obj/%.o,$(patsubst %.cpp,$(BUILD)/obj/%.o,$1))
core := $(call object,$(core_sources))
cudnn := $(call object,$(cudnn_sources))
layers := $(call object,$(layers_sources))
models := $(call object,$(models_sources)) $(if $(networks),$(BUILD)/obj/gen/registry.o)
datasets := $(call object,$(datasets_sources))
net := $(call object,$(net_sources))
tools := $(filter-out %/tools/main.o,$(call object,$(tools_sources)))
everything := $(core) $(layers) $(models) $(datasets) $(net) $(tools)

# ---- Flags.
CXXFLAGS ?=
LDFLAGS ?=
ifneq ($(filter 1,$(SANITIZE)),)
optimise := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
else
optimise := -O3 -g
# What only reads flags, prints tables or checks results: the shorter wait is for the compiler.
light := -O1 -g1
endif
# g++ 9 crashes over the variables of vectors in clones (max_pool.cpp), which -g1 leaves out.
cxxflags = -std=c++17 $(optimise) -Wall -Wextra -ffp-contract=off -fno-math-errno \
  -fno-trapping-math $(CONFIG_OPENMP) $(if $(filter 1,$(WERROR)),-Werror) \
  $(if $(filter 1,$(NATIVE)),-march=native) -pthread -I. $(CONFIG_CPPFLAGS) \
  $(if $(CONFIG_ONEDNN),-DDUPLEX_ONEDNN) \
  $(if $(filter core/cudnn/% tests/stand_in/% tests/cudnn/%,$<),-fPIC $(CONFIG_CUDA_CPPFLAGS)) \
  $(if $(filter-out tools/simulation/%,$(filter models/% tools/% tests/%,$<)),$(light)) \
  $(if $(filter core/onednn/max_pool.cpp,$<),-g1) $(CXXFLAGS)
# What a library beside it is to find in the program has to be exported.
ldflags = $(optimise) -rdynamic $(CONFIG_OPENMP) -pthread $(CONFIG_LDFLAGS) $(LDFLAGS)
libraries = $(if $(CONFIG_ONEDNN),-ldnnl) -ldl
# What the compiler of kernels gets; the rest of the flags is for its host compiler.
nvccflags = -O3 -lineinfo --expt-relaxed-constexpr --fmad=false -I. $(CONFIG_CUDA_CPPFLAGS) \
  $(if $(filter 1,$(WERROR)),-Werror all-warnings) \
  -Xcompiler -Wall,-Wextra,-ffp-contract=off,-fno-math-errno,-pthread,-fPIC

# A file that changes only when its content does, so that a change of flags, or of the list of
# files, rebuilds.
remember = $(shell mkdir -p $(dir $1); printf '%s\n' '$2' | cmp -s - $1 || printf '%s\n' '$2' > $1)
ifneq ($(CONFIG_CXX),)
$(call remember,$(BUILD)/compile-flags,$(CONFIG_CXX) $(cxxflags) $(light) $(CONFIG_NVCC) $(nvccflags))
$(call remember,$(BUILD)/link-flags,$(CONFIG_CXX) $(ldflags) $(libraries) $(everything) $(CONFIG_CUDA_LDFLAGS) $(cudnn))
$(call remember,$(BUILD)/networks,$(networks))
endif

# ---- The program.
$(BUILD)/obj/%.o: %.cpp $(BUILD)/compile-flags | report
	@mkdir -p $(dir $@)
	@echo '  compile  $<'
	@$(CONFIG_CXX) $(cxxflags) -MMD -MP -c $< -o $@

$(BUILD)/obj/%.o: %.cu $(BUILD)/compile-flags | report
	@mkdir -p $(dir $@)
	@echo '  compile  $<'
	@$(CONFIG_NVCC) $(nvccflags) -MMD -MP -c $< -o $@

$(BUILD)/gen/registry.cpp: make/registry.sh $(BUILD)/networks
	@mkdir -p $(dir $@)
	@bash make/registry.sh $(networks) > $@

$(BUILD)/obj/gen/registry.o: $(BUILD)/gen/registry.cpp $(BUILD)/compile-flags | report
	@mkdir -p $(dir $@)
	@$(CONFIG_CXX) $(cxxflags) -MMD -MP -c $< -o $@

cudnn_library := $(if $(cudnn),$(BUILD)/duplex-cudnn.so)
$(BUILD)/duplex-cudnn.so: $(cudnn) $(BUILD)/link-flags
	@echo '  link     $@'
	@$(CONFIG_CXX) -shared $(filter %.o,$^) $(optimise) $(CONFIG_LDFLAGS) $(CONFIG_CUDA_LDFLAGS) $(LDFLAGS) -o $@

$(BIN): $(everything) $(BUILD)/obj/tools/main.o $(BUILD)/link-flags $(cudnn_library)
	@mkdir -p $(dir $@)
	@echo '  link     $@'
	@$(CONFIG_CXX) $(filter %.o,$^) $(ldflags) $(libraries) -lcrypto -o $@
	@$(if $(cudnn_library),cp $(cudnn_library) $(dir $@))

# The same without a GPU, for tests: all of core/cudnn by the compiler of the rest, and a stand-in for
# NVIDIA's libraries (tests/stand_in). Its threads of kernels are not what AddressSanitizer takes for threads.
stand_in := $(BUILD)/stand-in/duplex-cudnn.so
stand_in_objects := $(patsubst %,$(BUILD)/stand-in/%.o,$(cudnn_sources) $(wildcard tests/stand_in/*.cpp))
stand_in_library := $(if $(CONFIG_CUDA),$(if $(filter 1,$(SANITIZE)),,$(stand_in)))
$(BUILD)/stand-in/%.o: % $(BUILD)/compile-flags | report
	@mkdir -p $(dir $@)
	@echo '  compile  $< for the stand-in'
	@$(CONFIG_CXX) -Itests/stand_in $(cxxflags) $(light) -x c++ -MMD -MP -c $< -o $@

$(stand_in): $(stand_in_objects) $(BUILD)/link-flags
	@echo '  link     $@'
	@$(CONFIG_CXX) -shared $(filter %.o,$^) -pthread $(CONFIG_LDFLAGS) $(LDFLAGS) -o $@

# ---- Tests: one program a folder, linked with what that folder may use and nothing else.
test_folders := $(filter-out $(if $(CONFIG_CUDA),,cudnn), \
  $(sort $(patsubst tests/%/,%,$(dir $(wildcard tests/*/*_test.cpp)))))
uses_core := $(core)
uses_datasets := $(core) $(datasets)
uses_net := $(core) $(net)
uses_layers := $(core) $(layers)
uses_models := $(core) $(layers) $(models)
uses_cudnn := $(uses_models) $(cudnn)
crypto_core := no
crypto_datasets := no
crypto_layers := no
crypto_models := no
crypto_cudnn := no
links_cudnn := $(CONFIG_CUDA_LDFLAGS)

define test_program
tests_$1 := $(call object,$(wildcard tests/$1/*.cpp))
$(BUILD)/tests/$1: $$(tests_$1) $(or $(uses_$1),$(everything)) $(BUILD)/link-flags $(cudnn_library) | have-gtest
	@mkdir -p $$(dir $$@)
	@echo '  link     $$@'
	@$$(CONFIG_CXX) $$(filter %.o,$$^) $$(ldflags) -lgtest_main -lgtest $$(libraries) $(links_$1) \
	  $(if $(crypto_$1),,-lcrypto) -o $$@
endef
$(foreach folder,$(test_folders),$(eval $(call test_program,$(folder))))
.SECONDARY:

.PHONY: have-gtest
have-gtest:
	@[ '$(CONFIG_GTEST)' ] || { echo 'There are no tests without GoogleTest: make deps.' >&2; exit 1; }

.PHONY: objects test-programs run-tests
objects: $(everything) $(cudnn)
test-programs: $(test_folders:%=$(BUILD)/tests/%)

tests := $(if $(ONLY),$(filter $(ONLY),$(test_folders)),$(test_folders))
unknown := $(filter-out $(test_folders),$(ONLY))
$(if $(unknown),$(error ONLY=$(unknown): there are no such tests; there are: $(test_folders)))
run-tests: $(tests:%=$(BUILD)/tests/%) $(if $(wildcard tools/main.cpp),$(BIN)) $(if $(ONLY),,$(stand_in_library))
	@DUPLEX=$(CURDIR)/$(BIN) STAND_IN=$(if $(stand_in_library),$(CURDIR)/$(stand_in_library)) bash make/test.sh $(tests:%=$(BUILD)/tests/%) \
	  $(if $(ONLY),,$(filter-out tests/platforms.sh,$(wildcard tests/*.sh)))

# ---- Style. clang-tidy is slow: a file that passed is looked at again when it, a header that it
# includes, the checks or the flags change.
source_folders := core layers models datasets net tools tests
sources := $(shell find $(source_folders) -name '*.cpp' 2>/dev/null)
kernels := $(shell find $(source_folders) -name '*.cu' 2>/dev/null)
headers := $(shell find $(source_folders) -name '*.h' 2>/dev/null)
tidied := $(patsubst %.cpp,$(BUILD)/tidy/%.ok,$(filter-out $(if $(CONFIG_ONEDNN),,core/onednn/%) \
  $(if $(CONFIG_CUDA),,core/cudnn/% tests/stand_in/% tests/cudnn/%),$(sources)))

# clang without its own omp.h takes that of the compiler.
tidy_omp = $(if $(CONFIG_CXX),-idirafter $(shell $(CONFIG_CXX) -print-file-name=include))

.PHONY: lint lint-format format
lint: lint-format $(tidied)
	@echo 'lint: $(words $(sources)) sources and $(words $(headers)) headers are clean'

lint-format:
	@for tool in clang-format clang-tidy; do command -v $$tool >/dev/null || \
	  { echo "make lint needs $$tool; its package is called so (clang-tools-extra on Fedora)." >&2; exit 1; }; done
	@clang-format --dry-run -Werror $(sources) $(kernels) $(headers)

format:
	@clang-format -i $(sources) $(kernels) $(headers)

$(BUILD)/tidy/%.ok: %.cpp .clang-tidy tests/.clang-tidy $(BUILD)/compile-flags | report lint-format
	@mkdir -p $(dir $@)
	@echo '  tidy     $<'
	@clang-tidy --quiet $< -- $(filter-out -fopenmp -Werror,$(cxxflags)) $(tidy_omp) 2>$@.log || \
	  { cat $@.log >&2; exit 1; }
	@$(CONFIG_CXX) $(cxxflags) -MM -MP -MT $@ $< -MF $(@:.ok=.d)
	@touch $@

-include $(shell find $(BUILD)/obj $(BUILD)/stand-in $(BUILD)/tidy -name '*.d' 2>/dev/null)
endif
