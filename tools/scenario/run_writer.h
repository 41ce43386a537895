// Writes the run directory of a simulated run.
#pragma once
#include <string>
#include <vector>

#include "tools/run_directory/run_config.h"
#include "tools/run_directory/run_directory.h"
#include "tools/run_directory/run_summary.h"
#include "tools/scenario/scenario.h"
#include "tools/simulation/recorder.h"
#include "tools/simulation/spec.h"

namespace duplex::tools {

class RunWriter {
 public:
  /// Claims the directory; an empty `logdir` means one that names itself. `config` becomes
  /// config.json. The first `records` ranks have ledgers and summaries. The other arguments must
  /// outlive the writer. Throws Error as RunDirectory does.
  RunWriter(const std::string& logdir, RunConfig config, const Scenario& scenario,
            const ParallelSpec& parallel, const simulation::Spec& spec, int records);

  /// Paths for the recorder to write ledgers to, by rank.
  const std::vector<net::LedgerPaths>& ledgers() const { return ledgers_; }
  const RunDirectory& directory() const { return directory_; }

  /// Writes all files but the trace.
  void write(const simulation::Outcome& outcome, const simulation::Recorder& recorder) const;

 private:
  void write_metrics(const std::vector<simulation::StepTimes>& steps) const;
  RunSummary summary_of(int rank, const simulation::Outcome& outcome,
                        const simulation::Recorder& recorder) const;

  const RunConfig config_;
  const Scenario& scenario_;
  const ParallelSpec& parallel_;
  const simulation::Spec& spec_;
  RunDirectory directory_;
  std::vector<net::LedgerPaths> ledgers_;
};

}  // namespace duplex::tools
