#include "tools/flags/launch_flags.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "tools/flags/command_line.h"
#include "tools/launch/words.h"

namespace duplex::tools {
namespace {

/// Throws if a flag that launch does not know, and which so is dist's, comes without "--" before
/// it.
void require_separator(const CommandLine& app, int argc, const char* const* argv) {
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    const std::string word = argv[i], name = word.substr(0, word.find('='));
    if (word.rfind("--", 0) != 0 || app.knows(name)) continue;
    throw Error("launch: " + name + " is for dist: put -- before the flags of dist, as in " +
                    "`duplex launch --nodefile FILE -- --net lenet ...`",
                Exit::usage);
  }
}

}  // namespace

void LaunchFlags::add_to(CommandLine& app) {
  app.add_option(
         "ACTION", action,
         "start (default), or stop: ends all ranks of yours that run with the nodefile, however "
         "they were started, and waits for their end")
      .check(Rule(
          [](const std::string& text) {
            return text == "start" || text == "stop"
                       ? std::string()
                       : "'" + text +
                             "' is neither start nor stop; what is for dist comes behind --, as in "
                             "`duplex launch --nodefile FILE -- --net lenet ...`";
          },
          "start or stop"));
  const Flag nodes = app.add_option("--nodefile", nodefile,
                                    "the machines: host or host:port a line, slots=N behind it");
  app.add_option("--local", local, "instead of a nodefile: so many ranks on this machine")
      .check(between(1, 1024))
      .excludes(nodes);
  app.add_option("--link-rate", link_rate,
                 "every rank sends and takes at most so much, such as 100Mbit/s: a slow network on "
                 "a fast one");
  app.add_option(
      "--plan", plan,
      "plan.json of duplex plan, which every rank follows; the nodefile has its machines in its "
      "order. auto: measure the machines, plan, and train on the best of them, if that "
      "pays; a plan that was made so less than 12 hours ago, for the same flags and "
      "machines, is followed again. new: the same, but measure in any case");
  app.add_option("--seconds", seconds,
                 "with --plan auto or new: seconds of computing that are measured on every machine "
                 "(default 10)");
  app.add_option("--ssh", ssh, "the program that reaches other machines (default ssh)");
  const Flag only_print = app.add_flag("--print-commands", print, "only say what would be started");
  app.add_option("--here", here,
                 "with stop: end this machine's ranks alone, and call it so in messages; what stop "
                 "runs on the other machines")
      .excludes(only_print);
  app.add_option(
         "--restarts", restarts,
         "when a rank is killed, lost or hangs, start all again, so many times at most: they "
         "go on from the newest checkpoint (goes with dist's --checkpoint-every); without a "
         "machine that cannot be reached twice in a row. Where the others can go on without it, "
         "only "
         "it starts again")
      .check(between(1, 1 << 30));
  app.add_option("--without", without,
                 "ranks of the nodefile that are left out, as in 2 or 2,3: machines that are lost; "
                 "--restarts finds them by itself")
      .delimiter(',')
      .check(at_least(0));
  app.add_flag("--quiet", quiet, "the ranks say nothing but what is wrong, and so does launch");
  add_deploy_to(app);
}

void LaunchFlags::add_deploy_to(CommandLine& app) {
  const Flag folder = app.add_option(
      "--deploy", deploy,
      "first put this program, the key and the data set into this folder of every machine, by ssh; "
      "only what differs is sent. Without flags of dist it starts nothing. Ranks run what is "
      "there, and their results are brought home");
  app.add_option("--bundle", bundle,
                 "with --deploy: the bundle to put there, an archive that `make bundle` makes, or "
                 "its unpacked folder (default: that which this program runs from, or the "
                 "archive beside it)")
      .needs(folder);
  app.add_flag("--deploy-data,!--no-deploy-data", data_,
               "with --deploy: send the file of --datadir, which is done by default where it is "
               "a file; or do not, since every machine has it at the same path")
      .needs(folder);
  app.add_option("--undeploy", undeploy,
                 "remove what --deploy has put into this folder of every machine, and start "
                 "nothing; results that are not at home stay")
      .excludes(folder);
}

std::optional<int> LaunchFlags::parse(int argc, const char* const* argv) {
  CommandLine app{
      "Starts every rank of a nodefile: here where a line names this machine, else by ssh, in the "
      "same folder and from the same path, or from where --deploy has put the program. What "
      "follows -- goes to dist. Ctrl-C ends all; the "
      "first rank that fails ends the others, and with --restarts all start again. With --sync "
      "none "
      "and a central server the others go on, and the worker alone starts again.",
      "duplex launch"};
  add_to(app);
  // The arguments behind "--" are dist's.
  int own = 1;
  while (own < argc && std::strcmp(argv[own], "--") != 0) ++own;
  for (int i = own + 1; i < argc; ++i) dist.emplace_back(argv[i]);
  require_separator(app, argc, argv);
  if (const auto done = tools::parse(app, own, argv)) return done;
  const bool ranks_are = std::find(dist.begin(), dist.end(), "--quiet") != dist.end();
  if (quiet && !ranks_are && !dist.empty()) dist.emplace_back("--quiet");
  quiet = quiet || ranks_are;
  data_given_ = app.count("--deploy-data") > 0;
  for (const std::string flag : {"--deploy", "--undeploy"})
    if (app.count(flag) > 0 && (flag == "--deploy" ? deploy : undeploy).empty())
      throw Error("launch: " + flag + " needs a folder, such as /tmp/duplex", Exit::usage);
  check();
  return std::nullopt;
}

std::optional<bool> LaunchFlags::deploy_data() const {
  return data_given_ ? std::optional<bool>(data_) : std::nullopt;
}

void LaunchFlags::check() const {
  const auto refuse = [](const std::string& why) { throw Error("launch: " + why, Exit::usage); };
  for (const std::string& word : dist) {
    if (word.rfind("--nodefile", 0) == 0 || word.rfind("--index", 0) == 0)
      refuse(word + " is given to every rank by launch itself");
    if (word.rfind("--without", 0) == 0) refuse("give " + word + " to launch itself, before --");
    for (const char* own : {"--deploy", "--undeploy", "--bundle"})
      if (word == own || word.rfind(std::string(own) + "=", 0) == 0)
        refuse("give " + std::string(own) + " to launch itself, before --");
  }
  if (nodefile.empty() && (local == 0 || action == "stop"))
    refuse(action == "stop" ? "stop needs --nodefile, the one that the ranks were started with"
                            : "--nodefile is required, or --local with a number of ranks");
  if (!link_rate.empty() && !value_of(dist, "--link-rate").empty())
    refuse("--link-rate is given to launch and to dist: leave one out");
  if (!link_rate.empty() && (only_deploys() || !undeploy.empty()))
    refuse("--link-rate is for ranks, and none is started here: leave it out");
  if (!seconds.empty() && plan != "auto" && plan != "new")
    refuse("--seconds goes with --plan auto or new");
  if (!here.empty() && action != "stop") refuse("--here goes with stop");
  if (local > 0 && !(deploy + undeploy).empty())
    refuse("--deploy and --undeploy are for the machines of a nodefile, and --local has none");
  if (!undeploy.empty() && (action == "stop" || !dist.empty() || !plan.empty() || print))
    refuse("--undeploy goes with --nodefile, --without and --ssh alone");
}

}  // namespace duplex::tools
