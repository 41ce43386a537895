// Flags of the memory that a training is to take.
#pragma once
#include <string>

#include "tools/flags/command_line.h"
#include "tools/memory/memory_forecast.h"

namespace duplex::tools {

/// Adds --optimizer and --momentum, which need the option `with`, unless that is null.
void add_optimiser_flags(CommandLine& app, std::string& kind, OptimiserSpec& spec,
                         const Flag* with);
/// Returns the optimiser that they name. Throws Error(Exit::usage), beginning with `command`, where
/// they do not go together.
OptimiserSpec checked_optimiser(const std::string& command, const std::string& kind,
                                OptimiserSpec spec);

struct MemoryFlags {
  bool wanted = false;
  ForecastSpec spec;

  /// Adds --memory, and flags that need it.
  void add_to(CommandLine& app);
  /// Fills in the rest of `spec`. Throws Error(Exit::usage) for flags that do not go together.
  void resolve(const CommandLine& app);
  /// Returns what was asked about, beside network and batch: "adam, 2 workers, sync join".
  std::string text() const;

 private:
  std::string optimiser_ = "sgd", fits_;
  int slots_ = 1;
};

}  // namespace duplex::tools
