// The flags of launch.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/flags/command_line.h"

namespace duplex::tools {

struct LaunchFlags {
  std::string action = "start", nodefile, ssh = "ssh", here, plan;
  std::string seconds;  ///< Those of --plan auto, as given.
  bool print = false, quiet = false;
  int local = 0;          ///< Ranks on this machine, without a nodefile of the user's.
  std::string link_rate;  ///< It is as given; empty: no limit.
  std::uint64_t restarts = 0;
  std::vector<int> without;  ///< Ranks of the nodefile that are left out.
  std::string deploy, undeploy, bundle;
  std::vector<std::string> dist;  ///< The arguments behind "--".

  /// Parses the arguments. Returns an exit code if the command is done already (--help). Throws
  /// Error(Exit::usage) for flags that do not go together.
  std::optional<int> parse(int argc, const char* const* argv);
  /// Says whether the data set has to be sent to machines, or must not be; none: it is where it is
  /// a file.
  std::optional<bool> deploy_data() const;
  /// Returns whether machines get the program and nothing is started.
  bool only_deploys() const {
    return !deploy.empty() && action == "start" && dist.empty() && plan.empty();
  }

 private:
  void add_to(CommandLine& app);
  void add_deploy_to(CommandLine& app);
  void check() const;

  bool data_ = true, data_given_ = false;  ///< --deploy-data.
};

}  // namespace duplex::tools
