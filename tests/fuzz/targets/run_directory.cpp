// Run directories, as report and compare read them: a recorded one of a distributed run, in which
// the input replaces a file.
#include "tests/fuzz/memory_file.h"
#include "tools/report/run_data.h"
#include "tools/run_directory/run_files.h"

namespace duplex::fuzz {

void run_directory(const Bytes& input) {
  static RecordedFolder folder("tests/tools/recorded_run/dist");
  if (!folder.take(input)) return;
  const std::string& changed = folder.changed();
  if (changed == tools::trace_file) {
    reads(input, 400,
          [&] { tools::reports::read_trace(folder.path() + "/" + changed).last(3).layers(0, 1); });
  } else if (changed.rfind("ledger-", 0) == 0) {
    reads(input, 400, [] { tools::reports::read_ledgers(folder.path(), 2); });
  } else {
    reads(input, 400, [] { tools::measured_costs(folder.path()); });
    reads(input, 400, [] {
      const tools::reports::RunData run = tools::reports::read_run_data(folder.path());
      require(run.workers >= 1 && run.ranks >= run.workers, "a run has no workers");
      run.throughput();
      run.link_comm();
    });
  }
  folder.restore();
}

}  // namespace duplex::fuzz
