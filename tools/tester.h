// Tests of a network during its training and after it.
#pragma once
#include <cstdint>
#include <optional>

#include "datasets/dataset.h"
#include "layers/network.h"
#include "tools/evaluation.h"
#include "tools/run_directory.h"

namespace duplex::tools {

/// Each test is a line for the user and a row of accuracy.csv. All that it is given must outlive
/// it.
class Tester {
 public:
  Tester(Network& network, const datasets::Subset& test, const RunDirectory& directory,
         std::uint64_t steps_per_epoch);
  /// Of what so many steps have trained.
  Accuracy test(std::uint64_t steps);

 private:
  Network& network_;
  const datasets::Subset& test_;
  const RunDirectory& directory_;
  std::uint64_t steps_per_epoch_;
  std::optional<RowFile> file_;  ///< From the first test on.
};

}  // namespace duplex::tools
