#include "tools/auto_plan.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "tools/commands.h"
#include "tools/launch/words.h"
#include "tools/plan/plan_file.h"
#include "tools/planning/known_plan.h"
#include "tools/run_directory/run_directory.h"

namespace duplex::tools {

void make_plan(LaunchFlags& flags, const Deployment* deployment) {
  if (!flags.without.empty() || flags.print)
    throw Error("launch: --plan auto goes without --without and --print-commands", Exit::usage);
  std::vector<std::string> words{"plan", "--nodefile", flags.nodefile, "--ssh", flags.ssh};
  for (const char* flag :
       {"--net", "--classes", "--input", "--batch", "--device", "--threads", "--precision",
        "--layout", "--optimizer", "--momentum", "--key", "--secure", "--checksum", "--congestion",
        "--link-rate", "--timeout", "--slots", "--datadir"}) {
    const std::string value = value_of(flags.dist, flag);
    if (!value.empty()) words.insert(words.end(), {flag, value});
  }
  for (const char* flag : {"--auxiliary", "--pad-shortcuts"})
    if (std::find(flags.dist.begin(), flags.dist.end(), flag) != flags.dist.end())
      words.emplace_back(flag);
  if (!flags.seconds.empty()) words.insert(words.end(), {"--seconds", flags.seconds});
  if (deployment) words.insert(words.end(), {"--deployed", deployment->target().folder});
  if (deployment && !value_of(flags.dist, "--datadir").empty())
    words.insert(words.end(), {"--deployed-data", deployment->there("--datadir")});
  const std::string question = plan_question(words, flags.nodefile);
  const std::string known = flags.plan == "new" ? "" : find_plan("runs", question);
  if (!known.empty()) {
    std::fprintf(stderr,
                 "launch: follows %s, which was made for the same flags and machines; --plan new "
                 "measures them again\n",
                 known.c_str());
    flags.plan = known;
  } else {
    const std::string directory = unused_run_path("plan", value_of(flags.dist, "--net"), false);
    flags.plan = directory + "/plan.json";
    words.insert(words.end(), {"--logdir", directory, "--file", flags.plan});
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    if (const int code = plan(static_cast<int>(argv.size()), argv.data()))
      throw Error("launch: there is no plan", static_cast<Exit>(code));
    std::fflush(stdout);
    keep_question(flags.plan, question);
  }
  remove_flag(flags.dist, "--slots");  // The plan's nodefile has them.
  remove_flag(flags.dist, "--input");  // The plan itself has these.
  for (const char* flag : {"--auxiliary", "--pad-shortcuts"})
    flags.dist.erase(std::remove(flags.dist.begin(), flags.dist.end(), flag), flags.dist.end());
  if (std::filesystem::exists(flags.plan + ".nodes")) flags.nodefile = flags.plan + ".nodes";
  if (read_plan(flags.plan).predicted.speedup <= 1.0)
    throw Error(
        "launch: --plan auto: it does not pay to train on several of these machines; train "
        "on one with duplex local, or follow " +
        flags.plan + " all the same");
}

}  // namespace duplex::tools
