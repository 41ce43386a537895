// The flags of dist (Appendix C.3), and what they mean for the exchange.
#pragma once
#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "net/exchange/exchange.h"
#include "tools/flags/parallel_flags.h"
#include "tools/flags/training_flags.h"
#include "tools/flags/wire_flags.h"

namespace duplex::tools {

struct DistFlags {
  TrainingFlags training;
  WireFlags wire;
  ParallelFlags parallel;
  std::string nodefile, job = "duplex";
  int index = -1;
  std::vector<net::Address> addresses;  ///< By rank, of the nodefile or of what started this one.
  std::uint64_t trace_steps = 10;
  bool trace = false;

  void add_to(CLI::App& app);
  /// After parsing: checks what CLI11 cannot, and finds rank and addresses. Throws
  /// Error(Exit::usage). Returns a line for the user on where they come from.
  std::string resolve();
  net::ExchangeSpec exchange() const;
  /// What all ranks must agree on beside model and data.
  std::string settings() const;
};

}  // namespace duplex::tools
