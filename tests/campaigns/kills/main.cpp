// The campaign of kills (tests/campaigns/kills.sh).
//
// Usage: kills run FOLDER LIBRARY RUNS SEED PART PARTS [ONLY]
//          makes the runs PART, PART + PARTS, ... below RUNS that FOLDER/PART.csv does not have
//          yet; ONLY: a text that the names of mode, role, phase, start and signal must contain
//        kills table CSV...
//          prints their tables
//        kills data FOLDER TRAIN TEST
//          writes so many images, as IDX files
// $DUPLEX names the program. Exit code: 0 if every promise was kept, 1 if not, 2 usage.
#include <sys/prctl.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>

#include "tests/campaigns/kills/judge.h"
#include "tests/campaigns/kills/plan.h"
#include "tests/campaigns/kills/record.h"
#include "tests/tools/program.h"

namespace duplex::campaigns {
namespace {

/// A run whose place was never reached, or that was disturbed otherwise, is made so often.
constexpr std::uint64_t most_tries = 8;

std::string text_of(const Cell& cell) {
  return cell.mode->name + "; " + cell.role + "; " + cell.phase + "; " + name_of(cell.start) +
         "; " + signal_name(cell.signal);
}

class Campaign {
 public:
  Campaign(const std::string& folder, const std::string& library, std::uint64_t seed, Ports ports)
      : folder_(folder), judge_(folder, library, ports), seed_(seed) {}

  void prepare(const std::string& only) {
    for (const Mode& mode : modes()) {
      Undisturbed run = judge_.undisturbed(mode);
      for (const Cell& cell : cells_of(mode, run.calls))
        if (text_of(cell).find(only) != std::string::npos) cells_.push_back(cell);
      expected_.emplace(&mode, std::move(run));
    }
    // All cells come once before one comes twice, in an order that the seed gives.
    Dice dice(seed_, ~0U);
    for (std::size_t i = cells_.size(); i > 1; --i) std::swap(cells_[i - 1], cells_[dice.below(i)]);
    std::printf("kills: %zu cells\n", cells_.size());
  }

  /// Makes a run, and notes it in the file. Returns whether every promise was kept.
  bool run(std::uint64_t number, const std::string& csv) {
    const Cell& cell = cells_[number % cells_.size()];
    const Undisturbed& expected = expected_.at(cell.mode);
    for (std::uint64_t attempt = 0; attempt < most_tries; ++attempt) {
      Dice dice(seed_ + attempt * 1000003, number);
      const auto place =
          place_of(cell.phase, expected.calls[static_cast<std::size_t>(cell.rank)], dice);
      if (!place) break;
      const Outcome outcome = judge_.run(cell, *place, expected);
      if (!outcome.counts) continue;
      append_row(csv, number, cell, *place, outcome);
      tell(number, cell, *place, outcome);
      return outcome.good();
    }
    std::printf("%llu: %s: the place was never reached\n", static_cast<unsigned long long>(number),
                text_of(cell).c_str());
    return true;
  }

  bool any() const { return !cells_.empty(); }

 private:
  void tell(std::uint64_t number, const Cell& cell, const Place& place, const Outcome& outcome) {
    std::printf("%llu: %s: %s %llu %s: %s\n", static_cast<unsigned long long>(number),
                text_of(cell).c_str(), place.event.c_str(),
                static_cast<unsigned long long>(place.number), place.after ? "after" : "before",
                outcome.good() ? "good" : "BROKEN");
    for (const std::string* broken :
         {&outcome.hung, &outcome.wrong, &outcome.late, &outcome.not_loaded, &outcome.other_bits})
      if (!broken->empty()) std::printf("  %s\n", broken->c_str());
    std::fflush(stdout);
    if (outcome.good()) return;
    const std::string kept = folder_ + "/broken-" + std::to_string(number);
    std::filesystem::remove_all(kept);
    std::filesystem::rename(judge_.run_folder(), kept);
  }

  std::string folder_;
  Judge judge_;
  std::uint64_t seed_;
  std::vector<Cell> cells_;
  std::map<const Mode*, Undisturbed> expected_;
};

int run(const Words& words) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::string folder = words[1] + "/" + words[5];
  const std::uint64_t runs = std::stoull(words[3]), part = std::stoull(words[5]),
                      parts = std::stoull(words[6]);
  std::filesystem::create_directories(folder);
  Campaign campaign(std::filesystem::absolute(folder).string(), words[2], std::stoull(words[4]),
                    Ports(static_cast<int>(part), static_cast<int>(parts)));
  campaign.prepare(words.size() > 7 ? words[7] : "");
  const std::string csv = words[1] + "/" + words[5] + ".csv";
  const std::vector<std::uint64_t> there = runs_in(csv);
  bool good = true;
  for (std::uint64_t number = part; campaign.any() && number < runs; number += parts)
    if (std::find(there.begin(), there.end(), number) == there.end())
      good = campaign.run(number, csv) && good;
  return good && campaign.any() ? 0 : 1;
}

int main_of(const Words& words) {
  if (words.size() > 1 && words[0] == "table")
    return print_tables({words.begin() + 1, words.end()}) ? 0 : 1;
  if (words.size() == 4 && words[0] == "data") {
    std::filesystem::create_directories(words[1]);
    tools::testing::write_squares(words[1], std::stoi(words[2]), std::stoi(words[3]));
    return 0;
  }
  if ((words.size() == 7 || words.size() == 8) && words[0] == "run") return run(words);
  std::fputs(
      "usage: kills run FOLDER LIBRARY RUNS SEED PART PARTS [ONLY] | kills table CSV... | "
      "kills data FOLDER TRAIN TEST\n",
      stderr);
  return 2;
}

}  // namespace
}  // namespace duplex::campaigns

int main(int argc, char** argv) {
  try {
    return duplex::campaigns::main_of({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kills: %s\n", error.what());
    return 1;
  }
}
