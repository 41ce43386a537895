// Sequence diagrams of one iteration (thesis, figures 4.1 to 4.6), drawn from the ledgers of a run.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace duplex::tools::reports {

/// A row of ledger-RANK.csv, of weights and gradients.
struct LedgerFrame {
  int peer = 0;
  bool sent = false, weights = false;
  std::uint64_t step = 0;
  std::uint32_t parameter = 0;
  std::uint64_t bytes = 0;
  double first = 0.0, last = 0.0;  ///< Seconds of the coordinator's time.
};

/// Reads every ledger in the directory: rank by rank, in the order of the files. A last
/// line that a rank was ended in, before it wrote its summary, is left out. Throws Error where a
/// file is none of a ledger.
std::vector<std::vector<LedgerFrame>> read_ledgers(const std::string& directory);

/// The first step from `wanted` on, or else the last one before it, of which every ledger with
/// frames has weights and gradients: they need not have all steps. `wanted` where there is none.
std::uint64_t step_in_all(const std::vector<std::vector<LedgerFrame>>& ledgers,
                          std::uint64_t wanted);

struct Iteration {
  std::string svg;
  double seconds = 0.0;  ///< From the first weights that leave to the last gradient that is there.
};
/// The iteration `step` of a run with overlap off. `server`: rank of a dedicated server, or -1.
Iteration sequence_diagram(const std::vector<std::vector<LedgerFrame>>& ledgers, int server,
                           std::uint64_t step, const std::string& title);

}  // namespace duplex::tools::reports
