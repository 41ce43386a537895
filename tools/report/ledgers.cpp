#include "tools/report/ledgers.h"

#include <algorithm>
#include <filesystem>

#include "net/ledger/ledger_row.h"
#include "net/wire/frame.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools::reports {
namespace {

constexpr std::size_t ranks_at_most = 16;

std::vector<LedgerFrame> read_ledger(const std::string& path, bool complete) {
  const std::string weights = net::name_of(net::FrameKind::weights),
                    gradient = net::name_of(net::FrameKind::gradient),
                    factors = net::name_of(net::FrameKind::factors),
                    map = net::name_of(net::FrameKind::map),
                    map_gradient = net::name_of(net::FrameKind::map_gradient);
  std::vector<LedgerFrame> frames;
  for (const net::LedgerRow& row : read_rows<net::LedgerRow>(path, complete)) {
    const bool of_map = row.kind == map || row.kind == map_gradient;
    if (!of_map && row.kind != weights && row.kind != gradient && row.kind != factors) continue;
    frames.push_back({row.peer, row.sent, row.kind == weights || row.kind == map, row.step,
                      row.parameter, row.bytes, row.bytes_saved,
                      static_cast<double>(row.first_ns) * 1e-9,
                      static_cast<double>(row.last_ns) * 1e-9, of_map});
  }
  return frames;
}

}  // namespace

Ledgers read_ledgers(const std::string& directory, int ranks) {
  Ledgers ledgers;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string path = directory + "/" + ledger_file(rank);
    if (std::filesystem::exists(path))
      ledgers[rank] = read_ledger(path, std::filesystem::exists(directory + "/" + rank_file(rank)));
  }
  return ledgers;
}

std::string missing_ledgers(const Ledgers& ledgers, int ranks) {
  std::vector<int> missing;
  for (int rank = 0; rank < ranks; ++rank)
    if (ledgers.count(rank) == 0) missing.push_back(rank);
  if (missing.empty()) return "";
  return "The run directory has no ledger of " + ranks_text(missing) +
         ": what is said of tensors and maps is by the others.";
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks_at_most, ranks.size()); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  if (ranks.size() > ranks_at_most)
    text += " and " + std::to_string(ranks.size() - ranks_at_most) + " more";
  return text;
}

}  // namespace duplex::tools::reports
