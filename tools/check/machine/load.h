// Measures how busy a machine is with the work of others.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "tools/check/machine/facts.h"

namespace duplex::tools {

/// Counts of /proc so far, in clock ticks.
class LoadCount {
 public:
  /// Reads /proc below `root`.
  explicit LoadCount(const std::string& root = "");

  /// Fills in what was busy from then on until `now`, without the process `own`, `seconds` later.
  void add_facts(MachineFacts& facts, const LoadCount& now, double seconds, int own) const;

 private:
  struct Program {
    std::string name;
    std::int64_t ticks = 0;
  };
  std::int64_t busy_ = 0, stolen_ = 0;
  std::map<int, Program> programs_;  ///< By process.
};

}  // namespace duplex::tools
