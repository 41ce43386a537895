# Duplex. `make help' lists the targets and settings.
SHELL := /bin/bash
MAKEFLAGS += --no-builtin-rules
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)  # An explicit -j takes precedence.
endif
.SUFFIXES:
.DELETE_ON_ERROR:

comma := ,
SANITIZE ?=
WERROR ?=
NATIVE ?=
ONEDNN ?= auto
CUDA ?= auto
CUDA_ARCH ?=
GPU ?=
ONLY ?=
ifeq ($(SANITIZE),1)
BUILD ?= build-sanitize
else ifeq ($(SANITIZE),thread)
BUILD ?= build-thread
# These tests have threads of ours; the others would take hours for nothing.
ONLY := $(or $(ONLY),net tools)
else ifeq ($(SANITIZE),fuzz)
BUILD ?= build-fuzz
else ifeq ($(SANITIZE),)
BUILD ?= build
else
$(error SANITIZE=$(SANITIZE): there are 1 (AddressSanitizer, LeakSanitizer and UBSan) and thread)
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
BIN := $(if $(filter build,$(BUILD)),bin,$(BUILD)/bin)/duplex

# These targets build in a make of their own, or not at all.
outside := help deps carry test fuzz demo exercise exercises bundle bench accuracy thesis clean

# ---- Where one of several goals is among these, or changes what the others read, they are made one after the other, as
# they are given: `make clean all'.
ifneq ($(and $(word 2,$(MAKECMDGOALS)),$(filter $(outside) probe format,$(MAKECMDGOALS))),)
goes_on := $(findstring k,$(firstword -$(MAKEFLAGS)))  # -k
.PHONY: one-by-one $(MAKECMDGOALS)
$(sort $(MAKECMDGOALS)): one-by-one ; @:
one-by-one:
	+@code=0; for goal in $(MAKECMDGOALS); do \
	  $(MAKE) --no-print-directory "$$goal" || { code=$$?; $(if $(goes_on),,break;) }; done; exit $$code
else

.PHONY: all
all: $(BIN)

# ---- The targets outside come before the probing.
.PHONY: help
help:
	@echo 'make            builds $(BIN); says what it found on this machine and what it goes without'
	@echo 'make deps       installs what is missing (without root: unpacks it into .deps/)'
	@echo 'make carry      gets the headers that an older distribution does not have, into .deps/, to be copied there'
	@echo '                (LIBRARIES=1: OpenSSL, zlib and GoogleTest too, for a machine like this one without a network)'
	@echo 'make test       sets up, builds, runs every test; ONLY="core net" runs those folders alone'
	@echo '                (FULL=1: with trainings of ten steps where others do with fewer)'
	@echo 'make exercise   checks an exercise of the course (docs/course): N=3; make exercises lists them all (FORMAT=csv)'
	@echo 'make fuzz       gives every reader bytes that nobody wrote for it, for MINUTES=20 together or RUNS= executions each,'
	@echo '                with clang and libFuzzer in build-fuzz/; ONLY="json gzip" takes those targets of tests/fuzz/ alone'
	@echo 'make bundle     packs the program with all its libraries into one archive, which runs on any x86-64 Linux'
	@echo '                (docs/bundle.md; GPU=0 leaves the device of GPUs out)'
	@echo 'make demo       sets up, builds, trains LeNet on Fashion-MNIST alone and on two workers, compares'
	@echo 'make bench      times every network, beside its ceiling and PyTorch (ONLY=cpu), and the wire, beside iperf3'
	@echo '                and Gloo (ONLY=wire; 10 minutes; its hosts need root; writes docs/results/wire.md);'
	@echo '                ONLY=plan: whether plan names the best way (CASES=12, SEED=, OUT=; root; docs/results/plan.md);'
	@echo '                ONLY=prediction: how far the simulation is from trainings on the lab (root;'
	@echo '                docs/results/prediction.md);'
	@echo '                ONLY=rounding: what 16 bits on the wire do to trainings (docs/results/rounding.md);'
	@echo '                ONLY=memory: what trainings take, beside what nets --memory says (docs/results/memory.md);'
	@echo '                ONLY=partition: what networks cut over machines send, beside Mt-KaHyPar where PYTHON= has it'
	@echo '                (docs/results/partition.md);'
	@echo '                ONLY=cut: networks that are cut over the lab, beside their simulation (root; docs/results/cut.md)'
	@echo 'make accuracy   trains every way on this machine, and says what each takes to an accuracy (docs/results/accuracy.md); goes'
	@echo '                on where it stopped (hours; OUT=folder, default runs/accuracy; NETWORKS= WAYS= SEEDS= for less)'
	@echo 'make thesis     measures, simulates and replays the tables and figures of the thesis, and makes a page of them; goes on'
	@echo '                where it stopped (its hosts need root; FULL=1: every point on them, hours; OUT=folder, default runs/thesis)'
	@echo 'make campaigns  builds what tests/campaigns/*.sh need, which take hours'
	@echo 'make lint       clang-format and clang-tidy; make format applies the former'
	@echo 'make probe      looks at the machine again'
	@echo 'make clean      removes what was built'
	@echo
	@echo 'Settings: BUILD=folder CXX=clang++ WERROR=1 NATIVE=1 (-march=native) ONEDNN=0|1 CUDA=0|1 CXXFLAGS= LDFLAGS='
	@echo '          CUDA_ARCH="80 90" (kernels for GPUs of these compute capabilities; default: for those that are here, else for all)'
	@echo '          SANITIZE=1 (AddressSanitizer, LeakSanitizer and UBSan, in build-sanitize/)'
	@echo '          SANITIZE=thread (ThreadSanitizer, in build-thread/; tests of net and tools unless ONLY= names others)'

.PHONY: deps
deps:
	@bash make/deps.sh build test

.PHONY: carry
carry:
	@LIBRARIES='$(LIBRARIES)' bash make/carry.sh

# make/deps.sh installs what is missing before the machine is probed, so the rest is a make of its own.
.PHONY: test
test: deps
	@$(MAKE) --no-print-directory run-tests

.PHONY: fuzz
fuzz:
	+@MINUTES='$(MINUTES)' RUNS='$(RUNS)' ONLY='$(ONLY)' bash make/fuzz.sh

.PHONY: demo
demo:
	@bash make/deps.sh build demo
	@$(MAKE) --no-print-directory $(BIN)
	@DUPLEX=$(BIN) bash tools/demo.sh

.PHONY: exercise exercises
exercise exercises:
	@bash make/deps.sh build
	+@MAKE='$(MAKE)' BUILD=$(BUILD) FORMAT='$(FORMAT)' bash make/exercise.sh $(if $(filter exercises,$@),--all,'$(N)')

.PHONY: bundle
bundle:
	$(if $(SANITIZE)$(filter 1,$(NATIVE)),$(error make bundle: SANITIZE= and NATIVE=1 are not for other machines; leave them out))
	@bash make/deps.sh build
	@$(MAKE) --no-print-directory bundle-archive

.PHONY: bench
bench_parts = $(or $(ONLY),cpu wire)
bench:
	$(if $(filter-out cpu wire plan prediction rounding memory partition cut,$(bench_parts)),$(error ONLY=$(ONLY): make bench has cpu, wire, plan, prediction, rounding, memory, partition and cut))
	@bash make/deps.sh build $(if $(filter prediction rounding,$(bench_parts)),demo) $(if $(filter cpu,$(bench_parts)),torch) $(if $(filter wire,$(bench_parts)),bench)
	@$(MAKE) --no-print-directory ONLY= $(BIN)
	@$(if $(filter cpu,$(bench_parts)),DUPLEX=$(BIN) python3 tools/benchmarks/cpu)
	@$(if $(filter wire,$(bench_parts)),DUPLEX=$(BIN) python3 tools/benchmarks/wire)
	@$(if $(filter plan,$(bench_parts)),DUPLEX=$(BIN) python3 tools/benchmarks/plan)
	@$(if $(filter prediction,$(bench_parts)),DUPLEX=$(BIN) python3 tools/benchmarks/prediction)
	@$(if $(filter rounding,$(bench_parts)),DUPLEX=$(BIN) python3 tools/benchmarks/rounding)
	@$(if $(filter memory,$(bench_parts)),DUPLEX=$(BIN) python3 tools/benchmarks/memory)
	@$(if $(filter partition,$(bench_parts)),DUPLEX=$(BIN) $(or $(PYTHON),python3) tools/benchmarks/partition)
	@$(if $(filter cut,$(bench_parts)),DUPLEX=$(BIN) python3 tools/benchmarks/cut)

.PHONY: accuracy
accuracy:
	@bash make/deps.sh build demo
	@$(MAKE) --no-print-directory $(BIN)
	@DUPLEX=$(BIN) OUT='$(OUT)' NETWORKS='$(NETWORKS)' WAYS='$(WAYS)' SEEDS='$(SEEDS)' python3 tools/benchmarks/accuracy

.PHONY: thesis
thesis:
	@bash make/deps.sh build bench
	@$(MAKE) --no-print-directory $(BIN)
	@DUPLEX=$(BIN) OUT='$(OUT)' FULL='$(FULL)' python3 tools/thesis

.PHONY: clean
clean:
	rm -rf build build-sanitize build-thread build-fuzz bin

ifneq ($(filter-out $(outside),$(or $(MAKECMDGOALS),all)),)

# ---- make/probe.sh finds out what the machine has: once, and again when packages or settings change (make/settings.sh).
-include $(BUILD)/config.mk

$(shell bash make/settings.sh $(BUILD) '$(CXX)' '$(ONEDNN)' '$(CUDA)' '$(CUDA_HOME)' '$(CUDA_ARCH)' '$(PYTHON)')
$(BUILD)/config.mk: make/probe.sh make/distribution.sh make/onednn_probe.cpp core/onednn/compat.h tools/flags/command_line.cpp $(BUILD)/settings
	@CXX='$(CXX)' ONEDNN='$(ONEDNN)' CUDA='$(CUDA)' CUDA_ARCH='$(CUDA_ARCH)' PYTHON='$(PYTHON)' bash make/probe.sh $(BUILD)

.PHONY: probe
probe:
	@CXX='$(CXX)' ONEDNN='$(ONEDNN)' CUDA='$(CUDA)' CUDA_ARCH='$(CUDA_ARCH)' PYTHON='$(PYTHON)' bash make/probe.sh $(BUILD)
	@cat $(BUILD)/config.txt

# This says what was found before anything is compiled, and fails if something needed is missing.
.PHONY: report
report: $(BUILD)/config.mk
	@cat $(BUILD)/config.txt; [ '$(CONFIG_MISSING)' = 0 ]

# ---- Sources.
in_room = $(sort $(shell find $1 -name '*.cpp' -o -name '*.cu'))
core_sources := $(filter-out core/onednn/% core/cudnn/%,$(call in_room,core)) core/cudnn/layout.cpp \
  $(if $(CONFIG_ONEDNN),$(call in_room,core/onednn))
# These sources make a library beside the program (core/gpu/cuda.h).
cudnn_sources := $(if $(CONFIG_CUDA),$(call in_room,core/cudnn))
layers_sources := $(call in_room,layers)
models_sources := $(call in_room,models)
datasets_sources := $(call in_room,datasets)
net_sources := $(call in_room,net)
tools_sources := $(call in_room,tools)
# Every file that lies directly in models/ but the registry is a network, named like the file.
networks := $(sort $(filter-out registry,$(basename $(notdir $(wildcard models/*.cpp)))))

object = $(patsubst %.cu,$(BUILD)/obj/%.o,$(patsubst %.cpp,$(BUILD)/obj/%.o,$1))
core := $(call object,$(core_sources))
cudnn := $(call object,$(cudnn_sources))
layers := $(call object,$(layers_sources))
models := $(call object,$(models_sources)) $(if $(networks),$(BUILD)/obj/gen/registry.o)
datasets := $(call object,$(datasets_sources))
net := $(call object,$(net_sources))
tools := $(filter-out %/tools/main.o,$(call object,$(tools_sources))) $(BUILD)/obj/gen/version.o
# Every file of tests/fuzz/targets is a fuzz target, named like the file.
fuzz_targets := $(sort $(basename $(notdir $(wildcard tests/fuzz/targets/*.cpp))))
everything := $(core) $(layers) $(models) $(datasets) $(net) $(tools)

# ---- Flags.
CXXFLAGS ?=
LDFLAGS ?=
# -g1 is what a backtrace needs; with -g, g++ takes 1.3 to 1.5 times as long, and g++ 9 crashes over vector variables in
# clones (max_pool.cpp).
ifeq ($(SANITIZE),1)
optimise := -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
else ifeq ($(SANITIZE),thread)
optimise := -O1 -g1 -fno-omit-frame-pointer -fsanitize=thread
else ifeq ($(SANITIZE),fuzz)
# libFuzzer looks for inputs that reach new branches, so it has to see all of them.
optimise := -O1 -gline-tables-only -fno-omit-frame-pointer -fno-sanitize-recover=all \
  -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow
else
optimise := -O3 -g1
# Code that only reads flags, prints tables or checks results is compiled with these: a faster compiler saves more time
# there than faster code. The stand-in and the fuzz targets compute, other tests let the program do it.
light := -O1
lightest := -O0
hot_tools := tools/training/% tools/simulation/%
endif
cxxflags = -std=c++17 $(optimise) -Wall -Wextra -ffp-contract=off -fno-math-errno \
  -fno-trapping-math $(CONFIG_OPENMP) $(if $(filter 1,$(WERROR)),-Werror) \
  $(if $(filter 1,$(NATIVE)),-march=native) -pthread -I. $(CONFIG_CPPFLAGS) \
  $(if $(CONFIG_ONEDNN),-DDUPLEX_ONEDNN) \
  $(if $(filter core/cudnn/% tests/stand_in/% tests/cudnn/%,$<),-fPIC $(CONFIG_CUDA_CPPFLAGS)) \
  $(if $(filter tests/campaigns/preload/%,$<),-fPIC) \
  $(if $(filter-out $(hot_tools),$(filter models/% tools/% tests/% make/gtest.h,$<)),$(light)) \
  $(if $(filter-out tests/fuzz/% tests/stand_in/% tests/campaigns/%,$(filter tests/% make/gtest.h,$<)),$(lightest)) \
  $(CXXFLAGS)
# -rdynamic exports the program's symbols, which the library beside it needs.
ldflags = $(optimise) -rdynamic $(CONFIG_OPENMP) -pthread $(CONFIG_LDFLAGS) $(LDFLAGS)
libraries = $(if $(CONFIG_ONEDNN),-ldnnl) -lz -ldl
# nvcc, the compiler of kernels, gets these flags; those of -Xcompiler are for its host compiler.
nvccflags = -O3 -lineinfo --expt-relaxed-constexpr --fmad=false -I. $(CONFIG_CUDA_CPPFLAGS) \
  $(if $(filter 1,$(WERROR)),-Werror all-warnings) \
  -Xcompiler -Wall,-Wextra,-ffp-contract=off,-fno-math-errno,-pthread,-fPIC

# `remember FILE,WORDS' writes a file only when its content changes, so that a change of flags, or of the list of files,
# rebuilds. (GNU make 4.3 may leave the newline at the end of what $(file) reads; $(strip) takes it away.)
same = $(and $(findstring |$1|,|$2|),$(findstring |$2|,|$1|))
remember = $(if $(call same,$(strip $(file <$1)),$(or $(strip $2),none)),,$(shell mkdir -p $(dir $1))$(file >$1,$(or $(strip $2),none)))
# `parts NAME,OBJECTS' is the objects of a program, and a file that changes with the list of them: what is made of a source
# that was removed is linked anew.
parts = $(if $(CONFIG_CXX),$(call remember,$(BUILD)/parts/$1,$2))$2 $(BUILD)/parts/$1
ifneq ($(CONFIG_CXX),)
$(call remember,$(BUILD)/compile-flags,$(CONFIG_CXX) $(CONFIG_HEADERS) $(cxxflags) $(light) $(lightest) $(CONFIG_NVCC) $(nvccflags))
$(call remember,$(BUILD)/link-flags,$(CONFIG_CXX) $(ldflags) $(libraries) $(everything) $(CONFIG_CUDA_LDFLAGS) $(cudnn))
$(call remember,$(BUILD)/networks,$(networks))
$(call remember,$(BUILD)/fuzz-targets,$(fuzz_targets))
$(call remember,$(BUILD)/commit,$(shell bash make/commit.sh))
endif

# ---- The program.
$(BUILD)/obj/%.o: %.cpp $(BUILD)/compile-flags | report
	@mkdir -p $(dir $@)
	@echo '  compile  $<'
	@$(CONFIG_CXX) $(precompiled) $(cxxflags) -MMD -MP -c $< -o $@

$(BUILD)/obj/%.o: %.cu $(BUILD)/compile-flags | report
	@mkdir -p $(dir $@)
	@echo '  compile  $<'
	@$(CONFIG_NVCC) $(nvccflags) -MMD -MP -c $< -o $@

$(BUILD)/gen/registry.cpp: make/registry.sh $(BUILD)/networks
	@mkdir -p $(dir $@)
	@bash make/registry.sh $(networks) > $@

$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.cpp $(BUILD)/compile-flags | report
	@mkdir -p $(dir $@)
	@$(CONFIG_CXX) $(cxxflags) -MMD -MP -c $< -o $@

$(BUILD)/gen/version.cpp: $(BUILD)/commit
	@mkdir -p $(dir $@)
	@{ echo '// Written by the Makefile.'; echo '#include "tools/text/version.h"'; echo; \
	  echo "const char* const duplex::tools::built_commit = \"$$(cat $<)\";"; } > $@

cudnn_library := $(if $(cudnn),$(BUILD)/duplex-cudnn.so)
$(BUILD)/duplex-cudnn.so: $(cudnn) $(BUILD)/link-flags
	@echo '  link     $@'
	@$(CONFIG_CXX) -shared $(filter %.o,$^) $(optimise) $(CONFIG_LDFLAGS) $(CONFIG_CUDA_LDFLAGS) $(LDFLAGS) -o $@

$(BIN): $(everything) $(BUILD)/obj/tools/main.o $(BUILD)/link-flags $(cudnn_library)
	@mkdir -p $(dir $@)
	@echo '  link     $@'
	@$(CONFIG_CXX) $(filter %.o,$^) $(ldflags) $(libraries) -lcrypto -o $@
	@$(if $(cudnn_library),cp $(cudnn_library) $(dir $@))

# The parts of a bundle (make/bundle/bundle.sh) are linked again from the same objects: without debugging information, and
# without paths of this machine, so that they are the same wherever they are built.
bundle_flags = $(subst -Wl$(comma)-rpath$(comma),-Wl$(comma)-rpath-link$(comma),$1) -s -Wl,--build-id=none
bundle_parts := $(BUILD)/bundle/duplex $(BUILD)/bundle/starter \
  $(if $(cudnn),$(if $(filter 0,$(GPU)),,$(BUILD)/bundle/duplex-cudnn.so))
$(BUILD)/bundle/duplex: $(everything) $(BUILD)/obj/tools/main.o $(BUILD)/link-flags
	@mkdir -p $(dir $@)
	@echo '  link     $@'
	@$(CONFIG_CXX) $(filter %.o,$^) $(call bundle_flags,$(ldflags) $(libraries)) -lcrypto -o $@

$(BUILD)/bundle/duplex-cudnn.so: $(cudnn) $(BUILD)/link-flags
	@mkdir -p $(dir $@)
	@echo '  link     $@'
	@$(CONFIG_CXX) -shared $(filter %.o,$^) $(optimise) \
	  $(call bundle_flags,$(CONFIG_LDFLAGS) $(CONFIG_CUDA_LDFLAGS) $(LDFLAGS)) -o $@

$(BUILD)/bundle/starter: make/bundle/starter.cpp $(BUILD)/compile-flags | report
	@mkdir -p $(dir $@)
	@echo '  link     $@'
	@$(CONFIG_CXX) -std=c++17 -O1 -Wall -Wextra $(if $(filter 1,$(WERROR)),-Werror) -ffreestanding -fno-builtin -fno-exceptions \
	  -fno-rtti -fno-stack-protector -fno-asynchronous-unwind-tables -fcf-protection=none -fno-pie -static -nostdlib -s \
	  -Wl,--build-id=none $< -o $@

.PHONY: bundle-archive
bundle-archive: $(BIN) $(bundle_parts)
	@$(if $(filter %.so,$(bundle_parts)),,rm -f $(BUILD)/bundle/duplex-cudnn.so)
	@archive=$$(COMMIT=$$(cat $(BUILD)/commit) bash make/bundle/bundle.sh $(BUILD)/bundle $(BIN) $(patsubst %/,%,$(dir $(BIN)))) && \
	  echo "$$archive: $$(($$(stat -c %s "$$archive") / 1000000)) MB"

# The stand-in library replaces it in tests without a GPU: the C++ compiler compiles all of core/cudnn, and a
# stand-in for NVIDIA's libraries (tests/stand_in). AddressSanitizer does not know the threads of its kernels as
# threads, so builds with sanitizers do not have it.
stand_in := $(BUILD)/stand-in/duplex-cudnn.so
stand_in_objects := $(patsubst %,$(BUILD)/stand-in/%.o,$(cudnn_sources) $(wildcard tests/stand_in/*.cpp))
stand_in_library := $(if $(CONFIG_CUDA),$(if $(filter 1 thread,$(SANITIZE)),,$(stand_in)))
$(BUILD)/stand-in/%.o: % $(BUILD)/compile-flags | report
	@mkdir -p $(dir $@)
	@echo '  compile  $< for the stand-in'
	@$(CONFIG_CXX) -Itests/stand_in $(cxxflags) $(light) -x c++ -MMD -MP -c $< -o $@

$(stand_in): $(call parts,stand-in,$(stand_in_objects)) $(BUILD)/link-flags
	@echo '  link     $@'
	@$(CONFIG_CXX) -shared $(filter %.o,$^) -pthread $(CONFIG_LDFLAGS) $(LDFLAGS) -o $@

# ---- Tests. Each folder makes one program, linked with what that folder may use and nothing else.
test_folders := $(sort $(patsubst tests/%/,%,$(dir $(wildcard tests/*/*_test.cpp))))
uses_core := $(core)
uses_datasets := $(core) $(datasets)
uses_net := $(core) $(net)
# The files that students write are in the course's tests as the repository has them.
uses_course := $(core) $(net) $(call object,tools/prediction/equations.cpp tools/deploy/call.cpp tools/launch/private_folder.cpp) \
  $(call object,$(filter-out %/main.cpp %/student_store.cpp,$(call in_room,course)))
uses_layers := $(core) $(layers)
uses_models := $(core) $(layers) $(models)
# The choices of engines need no CUDA, and are tested without it, too.
uses_cudnn := $(uses_models) $(or $(cudnn),$(call object,core/cudnn/cache.cpp core/cudnn/engines/choices.cpp))
crypto_core := no
crypto_datasets := no
crypto_layers := no
crypto_models := no
crypto_cudnn := no
links_cudnn := $(CONFIG_CUDA_LDFLAGS)
# The kernels' tests see operations as those of core do.
shares_cudnn := $(call object,$(filter-out %_test.cpp,$(wildcard tests/core/operations/*.cpp)))

not_in_cudnn := $(if $(CONFIG_CUDA),,tests/cudnn/engines_test.cpp)
not_in_course := tests/course/right_server.cpp

define test_program
tests_$1 := $(call object,$(filter-out $(not_in_$1),$(call in_room,tests/$1))) $(shares_$1)
$(BUILD)/tests/$1: $$(call parts,tests/$1,$$(tests_$1) $(or $(uses_$1),$(everything))) $(BUILD)/link-flags $(cudnn_library) | have-gtest
	@mkdir -p $$(dir $$@)
	@echo '  link     $$@'
	@$$(CONFIG_CXX) $$(filter %.o,$$^) $$(ldflags) -lgtest_main -lgtest $$(libraries) $(links_$1) \
	  $(if $(crypto_$1),,-lcrypto) -o $$@
endef
$(foreach folder,$(test_folders),$(eval $(call test_program,$(folder))))

# Standard headers and GoogleTest's take g++ as long as what most sources have below them, so these begin with them precompiled.
# They include them all the same (tests/include_rules.sh), and compile without: clang gives them no other. What is compiled with
# other flags goes without, and so do sources for some processors alone.
precompiled :=
precompile := $(if $(findstring clang,$(CONFIG_CXX)),,yes)
gtest_header := $(BUILD)/precompiled/gtest.h
standard_header := $(BUILD)/precompiled/standard.h
light_header := $(BUILD)/precompiled/light/standard.h
with_gtest := $(if $(precompile),$(call object,$(filter-out tests/cudnn/%,$(filter %_test.cpp,$(call in_room,tests)))))
with_light := $(if $(precompile),$(call object,$(filter-out $(hot_tools),$(models_sources) $(tools_sources))))
with_standard := $(if $(precompile),$(filter-out $(with_light),$(call object,$(filter-out core/factors/tile_% core/cudnn/%,\
  $(core_sources) $(layers_sources) $(models_sources) $(datasets_sources) $(net_sources) $(tools_sources)))))
$(with_gtest): $(gtest_header).gch
$(with_gtest): private precompiled := -Winvalid-pch -include $(gtest_header)
$(with_light): $(light_header).gch
$(with_light): private precompiled := -Winvalid-pch -include $(light_header)
$(with_standard): $(standard_header).gch
$(with_standard): private precompiled := -Winvalid-pch -include $(standard_header)
$(gtest_header).gch: make/gtest.h $(BUILD)/compile-flags | report have-gtest
$(standard_header).gch $(light_header).gch: make/standard.h $(BUILD)/compile-flags | report
$(light_header).gch: private optimise += $(light)
$(BUILD)/precompiled/%.gch:
	@mkdir -p $(dir $@)
	@echo '  compile  $<'
	@cp $< $(basename $@)
	@$(CONFIG_CXX) $(cxxflags) -x c++-header $< -o $@
# ccache takes precompiled headers where it need not look for dates in them.
export CCACHE_SLOPPINESS ?= pch_defines,time_macros

# The fuzz targets without a fuzzer: they read their corpus (tests/fuzz/replay.cpp). `make fuzz' links one target with
# libFuzzer, and with those parts of an archive of all readers that it calls.
fuzz_parts := $(call object,$(filter-out tests/fuzz/entry.cpp tests/fuzz/replay.cpp,$(wildcard tests/fuzz/*.cpp)))
fuzz_readers := $(core) $(layers) $(models) $(datasets) $(net) \
  $(call object,$(call in_room,$(addprefix tools/,check checkpoint dist display drawing launch plan prediction report run_directory text)))
$(BUILD)/tests/fuzz: $(call parts,tests/fuzz,$(fuzz_targets:%=$(BUILD)/obj/tests/fuzz/targets/%.o) \
    $(BUILD)/obj/tests/fuzz/replay.o $(fuzz_parts) $(BUILD)/obj/gen/fuzz_targets.o $(everything)) $(BUILD)/link-flags
	@mkdir -p $(dir $@)
	@echo '  link     $@'
	@$(CONFIG_CXX) $(filter %.o,$^) $(ldflags) $(libraries) -lcrypto -o $@

$(BUILD)/gen/fuzz_targets.cpp: make/fuzz_targets.sh $(BUILD)/fuzz-targets
	@mkdir -p $(dir $@)
	@bash make/fuzz_targets.sh $(fuzz_targets) > $@

$(BUILD)/gen/fuzz-%.cpp: make/fuzz_targets.sh
	@mkdir -p $(dir $@)
	@bash make/fuzz_targets.sh $* > $@

$(BUILD)/fuzz/readers.a: $(call parts,fuzz/readers,$(fuzz_readers)) $(BUILD)/link-flags
	@mkdir -p $(dir $@)
	@rm -f $@ && ar qcsT $@ $(filter %.o,$^)

$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/targets/%.o $(BUILD)/obj/gen/fuzz-%.o $(BUILD)/obj/tests/fuzz/entry.o \
    $(call parts,fuzz/parts,$(fuzz_parts)) $(BUILD)/fuzz/readers.a
	@echo '  link     $@'
	@$(CONFIG_CXX) -fsanitize=fuzzer $(filter %.o %.a,$^) $(ldflags) $(libraries) -lcrypto -o $@

.PHONY: fuzz-programs
fuzz-programs: $(fuzz_targets:%=$(BUILD)/fuzz/%)
# Make keeps objects that it made on the way to a program. (.SECONDARY would do so, too, but then an object of a new source
# that is older than the program is not made at all.)
.PRECIOUS: $(BUILD)/obj/%.o $(BUILD)/gen/fuzz-%.cpp

.PHONY: have-gtest
have-gtest:
	@[ '$(CONFIG_GTEST)' ] || { echo 'The tests need GoogleTest: make deps installs it.' >&2; exit 1; }

# ---- The course: a program for each exercise, of the student's file, its check, and what all of them share.
course_names := $(sort $(notdir $(wildcard course/[0-9]*)))
course_shared := $(call object,$(wildcard course/harness/*.cpp))
course_measuring := course/measuring/program.cpp tools/deploy/call.cpp
course_01_convolution := core/operations.cpp core/random.cpp core/shape.cpp core/reference/conv.cpp
course_02_pooling := core/operations.cpp core/random.cpp core/shape.cpp core/reference/pool.cpp
course_03_gradient_check := core/random.cpp
course_04_optimisers := core/random.cpp core/optimiser.cpp
course_05_transfer := core/random.cpp tools/launch/private_folder.cpp $(course_measuring)
course_06_central_server := core/random.cpp tools/launch/private_folder.cpp course/measuring/training_data.cpp $(course_measuring)
course_07_shares := core/random.cpp net/topology/shard_map.cpp $(course_measuring)
course_08_schedules := core/random.cpp tools/prediction/equations.cpp $(wildcard net/coding/*.cpp core/processor/*.cpp) \
  core/files/crc32c.cpp $(course_measuring)
course_09_fewer_bytes := core/random.cpp course/09_fewer_bytes/training.cpp
course_10_pull_the_plug := $(course_06_central_server)
course_11_schedule := core/random.cpp course/11_schedule/central_step.cpp
# The student's file is named like its folder. Compilers may leave out loops that never end, which a check could not report.
course_student = $(shell echo '$1' | cut -d_ -f2-)
course_loops = $(shell $(CONFIG_CXX) -fno-finite-loops -fsyntax-only -x c++ /dev/null 2>/dev/null && echo -fno-finite-loops)
define exercise_program
course_parts_$1 := $(course_shared) $(call object,course/$1/check.cpp course/$1/main.cpp $(course_$1))
course_student_$1 := $(call object,course/$1/$(call course_student,$1).cpp)
$$(course_student_$1): private optimise += $$(course_loops)
$(BUILD)/course/$1: $$(call parts,course/$1,$$(course_student_$1) $$(course_parts_$1)) $(BUILD)/link-flags
	@mkdir -p $$(dir $$@)
	@$$(CONFIG_CXX) $$(sort $$(filter %.o,$$^)) $$(optimise) -pthread $$(CONFIG_OPENMP) $$(LDFLAGS) -o $$@

.PHONY: $(BUILD)/course/$1.parts
$(BUILD)/course/$1.parts: $$(course_parts_$1)
endef
$(foreach name,$(course_names),$(eval $(call exercise_program,$(name))))

# Exercise 6 runs the whole program with the student's server in the place of its own (make/exercise.sh), and its tests with
# a right one.
course_with_store := $(filter-out %/net/store/make_store.o,$(everything)) $(BUILD)/obj/tools/main.o \
  $(call object,course/06_central_server/student_store.cpp $(addprefix course/harness/,report.cpp child.cpp guarded.cpp))
$(BUILD)/course/06_central_server.duplex: $(course_student_06_central_server)
$(BUILD)/tests/course.duplex: $(BUILD)/obj/tests/course/right_server.o
$(BUILD)/course/06_central_server.duplex $(BUILD)/tests/course.duplex: $(course_with_store) $(BUILD)/link-flags
	@mkdir -p $(dir $@)
	@$(CONFIG_CXX) $(filter %.o,$^) $(ldflags) $(libraries) -lcrypto -o $@
$(BUILD)/tests/course: | $(BUILD)/tests/course.duplex

# ---- Campaigns (tests/campaigns/*.sh), which take hours and are no part of `make test'. The library is for LD_PRELOAD:
# it stands before the C library's functions, and needs nothing of ours but headers.
campaign_kills := $(call object,$(wildcard tests/campaigns/kills/*.cpp) tests/tools/program.cpp)
$(BUILD)/campaigns/kills: $(call parts,campaigns/kills,$(campaign_kills) $(core)) $(BUILD)/link-flags
	@mkdir -p $(dir $@)
	@echo '  link     $@'
	@$(CONFIG_CXX) $(filter %.o,$^) $(ldflags) $(libraries) -o $@

# These are a file each, and need nothing of ours.
campaign_parts := load/strangers network/slow network/wire
define campaign_part
$(BUILD)/campaigns/$(notdir $1): $(call object,tests/campaigns/$1.cpp) $(BUILD)/link-flags
	@mkdir -p $$(dir $$@)
	@echo '  link     $$@'
	@$$(CONFIG_CXX) $$(filter %.o,$$^) $$(ldflags) -o $$@
endef
$(foreach part,$(campaign_parts),$(eval $(call campaign_part,$(part))))

$(BUILD)/campaigns/at_call.so: $(call parts,campaigns/at_call,$(call object,$(wildcard tests/campaigns/preload/*.cpp))) \
    $(BUILD)/link-flags
	@mkdir -p $(dir $@)
	@echo '  link     $@'
	@$(CONFIG_CXX) -shared $(filter %.o,$^) -pthread $(CONFIG_LDFLAGS) $(LDFLAGS) -ldl -o $@

.PHONY: campaigns
campaigns: $(BIN) $(BUILD)/campaigns/at_call.so $(addprefix $(BUILD)/campaigns/,kills $(notdir $(campaign_parts)))

.PHONY: objects test-programs run-tests
objects: $(everything) $(cudnn)
test-programs: $(test_folders:%=$(BUILD)/tests/%) $(BUILD)/tests/fuzz

# make/test.sh says what runs first, and what in parts.
all_tests := $(test_folders) fuzz
tests := $(if $(ONLY),$(filter $(ONLY),$(all_tests)),$(all_tests))
unknown := $(filter-out $(all_tests),$(ONLY))
$(if $(unknown),$(error ONLY=$(unknown): there are no such tests; there are: $(all_tests)))
bundle_tested := $(if $(SANITIZE),,$(filter-out %.so,$(bundle_parts)))
run-tests: $(tests:%=$(BUILD)/tests/%) $(if $(wildcard tools/main.cpp),$(BIN)) $(if $(ONLY),,$(stand_in_library) $(bundle_tested))
	@SANITIZE='$(SANITIZE)' FULL='$(FULL)' DUPLEX=$(CURDIR)/$(BIN) STAND_IN=$(if $(stand_in_library),$(CURDIR)/$(stand_in_library)) \
	  BUNDLE=$(if $(bundle_tested),$(CURDIR)/$(BUILD)/bundle) bash make/test.sh $(tests:%=$(BUILD)/tests/%) \
	  $(if $(ONLY),,$(filter-out tests/platforms.sh,$(wildcard tests/*.sh tests/benchmarks/*.sh tests/course/*.sh tests/lab/*.sh)))

# ---- Style. clang-tidy is slow, so it looks at a file that passed again only when the file, a header
# that it includes, the checks or the flags change.
source_folders := core layers models datasets net tools course tests
sources := $(shell find $(source_folders) -name '*.cpp' 2>/dev/null)
kernels := $(shell find $(source_folders) -name '*.cu' 2>/dev/null)
headers := $(shell find $(source_folders) -name '*.h' 2>/dev/null)
tidied := $(patsubst %.cpp,$(BUILD)/tidy/%.ok,$(filter-out $(if $(CONFIG_ONEDNN),,core/onednn/%) \
  $(if $(CONFIG_CUDA),,core/cudnn/% tests/stand_in/% tests/cudnn/%),$(sources)))

# A clang without its own omp.h takes that of the compiler.
tidy_omp = $(if $(CONFIG_CXX),-idirafter $(shell $(CONFIG_CXX) -print-file-name=include))

.PHONY: lint lint-format format
lint: lint-format $(tidied)
	@echo 'lint: $(words $(sources)) sources and $(words $(headers)) headers are clean'

lint-format:
	@for tool in clang-format clang-tidy; do command -v $$tool >/dev/null || \
	  { echo "make lint needs $$tool, from the package of that name (clang-tools-extra on Fedora)." >&2; exit 1; }; done
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
endif
