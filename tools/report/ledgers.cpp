#include "tools/report/ledgers.h"

#include <filesystem>

#include "net/ledger/ledger_row.h"
#include "net/wire/frame.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools::reports {
namespace {

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

std::vector<std::vector<LedgerFrame>> read_ledgers(const std::string& directory) {
  std::vector<std::vector<LedgerFrame>> ledgers;
  for (int rank = 0;; ++rank) {
    const std::string path = directory + "/" + ledger_file(rank);
    if (!std::filesystem::exists(path)) return ledgers;
    ledgers.push_back(
        read_ledger(path, std::filesystem::exists(directory + "/" + rank_file(rank))));
  }
}

}  // namespace duplex::tools::reports
