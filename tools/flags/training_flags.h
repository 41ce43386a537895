// Flags that local and dist share: those of Appendix C.1, and what training needs beyond them.
#pragma once
#include <string>

#include "tools/flags/command_line.h"
#include "tools/setup/training_spec.h"

namespace duplex::tools {

struct TrainingFlags {
  TrainingSpec spec;
  std::string optimiser = "sgd";   ///< resolve() makes `spec` of it.
  std::string schedule = "steps";  ///< Likewise.
  std::string crop;                ///< Likewise.
  std::string checkpoint_every;    ///< Likewise.
  std::string until;               ///< Likewise.

  void add_to(CommandLine& app);
  /// Call it after parsing: checks what CLI11 cannot. Throws Error(Exit::usage).
  void resolve();

 private:
  void resolve_rate();

  const CommandLine* app_ = nullptr;  ///< Set by add_to().
};

}  // namespace duplex::tools
