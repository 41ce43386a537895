// The frames of a run, as report reads them from its ledgers.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace duplex::tools::reports {

/// A row of ledger-RANK.csv: weights, gradients or their factors, maps or the gradients of these.
struct LedgerFrame {
  int peer = 0;
  bool sent = false;
  bool weights = false;  ///< Of a map: its values, and not its gradient.
  std::uint64_t step = 0;
  std::uint32_t parameter = 0;
  std::uint64_t bytes = 0;
  std::int64_t saved = 0;          ///< Bytes that float32 values would have had more.
  double first = 0.0, last = 0.0;  ///< Seconds of the coordinator's time.
  bool map = false;                ///< `parameter` counts routes.
};

/// By rank, in the order of the files; ranks whose file is not there have none.
using Ledgers = std::map<int, std::vector<LedgerFrame>>;

/// Reads the ledgers of a run's `ranks` that are in the directory. A last line that a rank was
/// ended in, before it wrote its summary, is left out. Throws Error where a file is none of a
/// ledger.
Ledgers read_ledgers(const std::string& directory, int ranks);

/// Says which of the run's `ranks` have no ledger there; "" where all have.
std::string missing_ledgers(const Ledgers& ledgers, int ranks);

/// Names some ranks: "ranks 0, 2", and of many the first.
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace duplex::tools::reports
