// plan.json: a way to train a network on given machines, as `duplex plan` has chosen it, with what
// it is predicted to come to. dist --plan and launch --plan follow it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/plan/parallel.h"
#include "tools/run_directory/run_config.h"

namespace duplex::tools {

struct PlanFile {
  std::string program;         ///< Version of the program that made it.
  std::string network, title;  ///< "resnet34", "Resnet34".
  std::string input;           ///< "1x3x224x224": of one sample.
  std::int64_t classes = 0, parameters = 0;
  bool auxiliary = false, pad_shortcuts = false;
  std::optional<std::string> network_file;  ///< Its text, where `network` is the path of a file.
  std::int64_t batch = 0;
  ParallelConfig parallel;
  std::vector<int> machines;                          ///< By rank, as they were numbered.
  std::optional<std::vector<std::string>> addresses;  ///< By rank, where machines were named.
  std::optional<std::string> link_rate;               ///< As --link-rate gave it; none: no limit.
  /// The values of the flags of these names that it is planned for; none: dist's own.
  std::optional<std::string> device, precision, layout;
  std::optional<int> threads;
  PlanConfig predicted;

  /// The way to train that it has.
  ParallelSpec parallel_spec() const;
  /// The flags of dist that say the same: "--net", "resnet34", "--sync", "join" and so on.
  std::vector<std::pair<std::string, std::string>> flags() const;
};

std::string text_of(PlanFile plan);
/// Throws Error, naming file and key, where it cannot be read, is damaged, or is of another
/// version.
PlanFile read_plan(const std::string& path);

/// Throws Error(Exit::usage), beginning with `command`, where the plan is not for so many ranks, or
/// for machines with other addresses; it names both.
void check_machines(const PlanFile& plan, const std::string& path,
                    const std::vector<std::string>& addresses, const std::string& command);

}  // namespace duplex::tools
