// The results of runs: a CSV file that a campaign appends to, so that it may be interrupted and go
// on, and the table that is made of it.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/campaigns/kills/plan.h"

namespace duplex::campaigns {

/// The outcome of one run. A broken promise is a text that says what was seen; empty: it was kept.
struct Outcome {
  bool counts = false;            ///< The signal was raised, and nothing else disturbed the run.
  std::string hung;               ///< Somebody had to be killed.
  std::string wrong;              ///< Somebody ended otherwise than promised, or named no culprit.
  std::string late;               ///< It took longer than the deadline and 5 s.
  std::string not_loaded;         ///< No checkpoint was loaded, or not the newest.
  std::string other_bits;         ///< The final weights are not those of an undisturbed run.
  std::optional<double> ended_s;  ///< From the signal to the last survivor's end.
  std::optional<double> again_s;  ///< From the signal until all ranks trained again.
  std::string ends;               ///< Every exit code.

  bool good() const {
    return hung.empty() && wrong.empty() && late.empty() && not_loaded.empty() &&
           other_bits.empty();
  }
};

/// Appends a row.
void append_row(const std::string& path, std::uint64_t run, const Cell& cell, const Place& place,
                const Outcome& outcome);

/// The runs that the file has already.
std::vector<std::uint64_t> runs_in(const std::string& path);

/// The rows of all these files as tables of Markdown, with the counts of all above them. Returns
/// whether every promise was kept.
bool print_tables(const std::vector<std::string>& paths);

}  // namespace duplex::campaigns
