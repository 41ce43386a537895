// The flags that say how workers train together (Appendix C.3); the same for dist and simulate.
#pragma once
#include <CLI/CLI.hpp>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "datasets/loader.h"
#include "net/topology.h"

namespace duplex::tools {

struct ParallelFlags {
  std::string sync = "join", server = "distributed", shards = "even", overlap = "on",
              semaphore = "off";
  std::uint64_t average = 0;  ///< Batches; 0: gradients are sent.

  void add_to(CLI::App& app);
  /// After parsing: checks what CLI11 cannot. Throws Error(Exit::usage).
  void settle(const std::string& command) const;

  bool central() const { return server == "central"; }
  bool splits() const { return sync == "split"; }
  /// What a worker trains on of each step's samples.
  datasets::Share share(std::int64_t batch, int worker, int workers) const;
  /// The central server is rank 0.
  net::Topology topology(int ranks) const;

  /// As one line of text.
  std::string settings() const;
  /// Their part of config.json.
  void describe(nlohmann::ordered_json& config, const net::Topology& topology) const;
};

}  // namespace duplex::tools
