// The files of `make thesis`, as report reads them: the recorded ones, of which the input replaces
// one.
#include "tests/fuzz/memory_file.h"
#include "tools/report/thesis/thesis_data.h"

namespace duplex::fuzz {

void thesis(const Bytes& input) {
  static RecordedFolder folder("tests/fuzz/recorded_thesis");
  if (!folder.take(input)) return;
  reads(input, 400, [] { tools::reports::read_thesis(folder.path()); });
  folder.restore();
}

}  // namespace duplex::fuzz
