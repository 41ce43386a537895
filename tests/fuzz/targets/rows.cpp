// The CSV files of a run directory. An input is read as each of them, of a run that has ended and
// of one that was interrupted.
#include "tools/run_directory/rows.h"
#include "net/ledger/ledger_row.h"
#include "tests/fuzz/memory_file.h"
#include "tools/run_directory/row_file.h"

namespace duplex::fuzz {
namespace {

/// A row of "0,0,..." is a struct of some times its text, and what holds it grows by doubling.
constexpr std::size_t each = 100;

/// Rows that were read and are written are read again as the same text.
template <class Row>
void check(const MemoryFile& file, const Bytes& input) {
  static MemoryFile written;
  for (const bool complete : {true, false}) {
    std::vector<Row> rows;
    const bool good =
        reads(input, each, [&] { rows = tools::read_rows<Row>(file.path(), complete); });
    if (!good) continue;
    // Text of a number may have three hundred digits.
    reads(input, 100 * each, [&] {
      const std::string text = tools::text_of(rows);
      written.write(text.data(), text.size());
      require(tools::text_of(tools::read_rows<Row>(written.path(), true)) == text,
              "rows change when they are written and read again");
    });
  }
}

}  // namespace

void rows(const Bytes& input) {
  static MemoryFile file;
  file.write(input);
  check<net::LedgerRow>(file, input);
  check<tools::StepMetrics>(file, input);
  check<tools::AccuracyRow>(file, input);
  check<tools::StalenessRow>(file, input);
}

}  // namespace duplex::fuzz
