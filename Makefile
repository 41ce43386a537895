# Duplex. `make help' lists the targets.
SHELL := /bin/bash
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:

SANITIZE ?=
WERROR ?=
NATIVE ?=
ONEDNN ?= auto
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

# ---- What the machine has: probed once, and again when packages or settings change.
goals := $(or $(MAKECMDGOALS),all)
ifneq ($(filter-out clean help,$(goals)),)
-include $(BUILD)/config.mk
endif

$(shell mkdir -p $(BUILD); settings='$(CXX) $(ONEDNN)'; \
  [ "$$(cat $(BUILD)/settings 2>/dev/null)" = "$$settings" ] || echo "$$settings" > $(BUILD)/settings)
$(BUILD)/config.mk: make/probe.sh $(BUILD)/settings \
    $(wildcard .deps/stamp /var/lib/dpkg/status /var/lib/rpm/rpmdb.sqlite /var/lib/rpm/Packages)
	@CXX='$(CXX)' ONEDNN='$(ONEDNN)' bash make/probe.sh $(BUILD)

.PHONY: report
report: $(BUILD)/config.mk
	@cat $(BUILD)/config.txt; [ '$(CONFIG_MISSING)' = 0 ]

# ---- Sources.
core_sources := $(wildcard core/*.cpp core/reference/*.cpp) \
  $(if $(CONFIG_ONEDNN),$(wildcard core/onednn/*.cpp))
layers_sources := $(wildcard layers/*.cpp)
models_sources := $(wildcard models/*.cpp)
datasets_sources := $(wildcard datasets/*.cpp)
net_sources := $(wildcard net/*.cpp)
tools_sources := $(wildcard tools/*.cpp)
networks := $(filter-out registry,$(sort $(basename $(notdir $(models_sources)))))

object = $(patsubst %.cpp,$(BUILD)/obj/%.o,$1)
core := $(call object,$(core_sources))
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
optimise := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
else
optimise := -O3
endif
cxxflags = -std=c++17 $(optimise) -g -Wall -Wextra -ffp-contract=off -fno-math-errno \
  -fno-trapping-math $(CONFIG_OPENMP) $(if $(filter 1,$(WERROR)),-Werror) \
  $(if $(filter 1,$(NATIVE)),-march=native) -pthread -I. $(CONFIG_CPPFLAGS) \
  $(if $(CONFIG_ONEDNN),-DDUPLEX_ONEDNN) $(CXXFLAGS)
ldflags = $(optimise) $(CONFIG_OPENMP) -pthread $(CONFIG_LDFLAGS) $(LDFLAGS)
onednn_library = $(if $(CONFIG_ONEDNN),-ldnnl)

# A file that changes only when its content does, so that a change of flags rebuilds.
remember = $(shell mkdir -p $(dir $1); printf '%s\n' '$2' | cmp -s - $1 || printf '%s\n' '$2' > $1)
ifneq ($(CONFIG_CXX),)
$(call remember,$(BUILD)/compile-flags,$(CONFIG_CXX) $(cxxflags))
$(call remember,$(BUILD)/link-flags,$(CONFIG_CXX) $(ldflags) $(onednn_library))
$(call remember,$(BUILD)/networks,$(networks))
endif

# ---- The program.
$(BUILD)/obj/%.o: %.cpp $(BUILD)/compile-flags | report
	@mkdir -p $(dir $@)
	@echo '  compile  $<'
	@$(CONFIG_CXX) $(cxxflags) -MMD -MP -c $< -o $@

$(BUILD)/gen/registry.cpp: make/registry.sh $(BUILD)/networks
	@mkdir -p $(dir $@)
	@bash make/registry.sh $(networks) > $@

$(BUILD)/obj/gen/registry.o: $(BUILD)/gen/registry.cpp $(BUILD)/compile-flags | report
	@mkdir -p $(dir $@)
	@$(CONFIG_CXX) $(cxxflags) -MMD -MP -c $< -o $@

$(BIN): $(everything) $(BUILD)/obj/tools/main.o $(BUILD)/link-flags
	@mkdir -p $(dir $@)
	@echo '  link     $@'
	@$(CONFIG_CXX) $(filter %.o,$^) $(ldflags) $(onednn_library) -lcrypto -o $@

# ---- Tests: one program a folder, linked with what that folder may use and nothing else.
test_folders := $(sort $(patsubst tests/%/,%,$(dir $(wildcard tests/*/*_test.cpp))))
uses_core := $(core)
uses_datasets := $(core) $(datasets)
uses_net := $(core) $(net)
uses_layers := $(core) $(layers)
uses_models := $(core) $(layers) $(models)
crypto_core := no
crypto_datasets := no
crypto_layers := no
crypto_models := no

define test_program
tests_$1 := $(call object,$(wildcard tests/$1/*.cpp))
$(BUILD)/tests/$1: $$(tests_$1) $(or $(uses_$1),$(everything)) $(BUILD)/link-flags
	@mkdir -p $$(dir $$@)
	@echo '  link     $$@'
	@$$(CONFIG_CXX) $$(filter %.o,$$^) $$(ldflags) -lgtest_main -lgtest $$(onednn_library) \
	  $(if $(crypto_$1),,-lcrypto) -o $$@
endef
$(foreach folder,$(test_folders),$(eval $(call test_program,$(folder))))
.SECONDARY:

.PHONY: test-programs
test-programs: $(test_folders:%=$(BUILD)/tests/%)

.PHONY: clean
clean:
	rm -rf build build-sanitize bin

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
