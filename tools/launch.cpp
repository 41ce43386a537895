// duplex launch starts every rank of a nodefile, here or by ssh, and ends them together.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "net/topology/keepers.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/flags/dist_flags.h"
#include "tools/flags/model_flags.h"
#include "tools/launch/children.h"
#include "tools/launch/hosts.h"
#include "tools/launch/local_nodes.h"
#include "tools/launch/lost_machines.h"
#include "tools/launch/nodefile.h"
#include "tools/launch/rank_record.h"
#include "tools/launch/run_key.h"
#include "tools/launch/stop.h"
#include "tools/plan/plan_file.h"
#include "tools/run_directory/run_directory.h"

namespace duplex::tools {
namespace {

/// The longest pause before ranks start again, in seconds: a machine may be starting, too.
constexpr double longest_pause = 60.0;

struct Flags {
  std::string action = "start", nodefile, ssh = "ssh", here, plan;
  std::string seconds;  ///< Of --plan auto, as given.
  bool print = false;
  int local = 0;          ///< Ranks on this machine, without a nodefile of the user's.
  std::string link_rate;  ///< As given; empty: no limit.
  std::uint64_t restarts = 0;
  std::vector<int> without;  ///< Ranks of the nodefile that are left out.
  std::vector<std::string> dist;
};

/// The command of one rank.
std::vector<std::string> command_of(const Flags& flags, const net::Address& node,
                                    std::size_t rank) {
  std::vector<std::string> dist{"dist"};
  dist.insert(dist.end(), flags.dist.begin(), flags.dist.end());
  dist.insert(dist.end(), {"--nodefile", flags.nodefile, "--index", std::to_string(rank)});
  if (!flags.without.empty()) dist.insert(dist.end(), {"--without", listed(flags.without)});
  return command_on(node.host, flags.ssh, std::move(dist));
}

/// The flags of dist among the words of a command line; none: dist says what is wrong with them.
std::optional<DistFlags> flags_of(const std::vector<std::string>& words) {
  DistFlags dist;
  CLI::App app;
  dist.add_to(app);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::Error&) {
    return std::nullopt;
  }
  return dist;
}

/// The value of a flag among the words of a command line; "" if it is not there.
std::string value_of(const std::vector<std::string>& words, const std::string& flag) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == flag && i + 1 < words.size()) return words[i + 1];
    if (words[i].rfind(flag + "=", 0) == 0) return words[i].substr(flag.size() + 1);
  }
  return "";
}

/// Removes a flag with its value from the words of a command line.
void remove_flag(std::vector<std::string>& words, const std::string& flag) {
  for (auto word = words.begin(); word != words.end();)
    if (*word == flag && word + 1 != words.end())
      word = words.erase(word, word + 2);
    else if (word->rfind(flag + "=", 0) == 0)
      word = words.erase(word);
    else
      ++word;
}

/// Gives all ranks one run directory where the user has not named it: each would take the time of
/// its own start for a name. Returns its path, or "" where the user has named one.
std::string name_run(std::vector<std::string>& dist, bool create) {
  for (const std::string& word : dist)
    if (word.rfind("--logdir", 0) == 0) return "";
  std::string path = unused_run_path("dist", value_of(dist, "--net"), create);
  dist.insert(dist.end(), {"--logdir", path});
  return path;
}

/// Gives all ranks what the network's file has now: other machines need not have it, and ranks that
/// start again train the same. A plan has it, too.
void carry_network(std::vector<std::string>& words, const DistFlags& dist) {
  ModelSpec model = dist.training.spec.model;
  if (dist.training.spec.resume) model.take_resumed(dist.training.spec.logdir);
  for (const std::string& word : carried(model)) words.push_back(word);
}

/// Throws if a flag that launch does not know, and which so is dist's, comes without "--" before
/// it.
void require_separator(int argc, const char* const* argv) {
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    const std::string word = argv[i], name = word.substr(0, word.find('='));
    if (word.rfind("--", 0) != 0 || name == "--nodefile" || name == "--ssh" || name == "--here" ||
        name == "--print-commands" || name == "--restarts" || name == "--without" ||
        name == "--plan" || name == "--seconds" || name == "--local" || name == "--link-rate" ||
        name == "--help")
      continue;
    throw Error("launch: " + name + " is for dist: put -- before the flags of dist, as in " +
                    "`duplex launch --nodefile FILE -- --net lenet ...`",
                Exit::usage);
  }
}

/// Gives dist the plan, and what launch itself has to know of it.
void follow_plan(std::vector<std::string>& dist, const std::string& path) {
  if (!value_of(dist, "--plan").empty())
    throw Error("launch: give --plan to launch itself, before --", Exit::usage);
  for (const auto& [flag, value] : read_plan(path).flags())
    if (value_of(dist, flag).empty()) dist.insert(dist.end(), {flag, value});
  dist.insert(dist.end(), {"--plan", record_name(path)});
}

/// Has `plan` measure the machines and write the best way, and takes that and its nodefile. Throws
/// Error where it does not pay.
void make_plan(Flags& flags) {
  if (!flags.without.empty() || flags.print)
    throw Error("launch: --plan auto goes without --without and --print-commands", Exit::usage);
  const std::string directory = unused_run_path("plan", value_of(flags.dist, "--net"), false);
  std::vector<std::string> words{"plan",    "--nodefile", flags.nodefile,
                                 "--ssh",   flags.ssh,    "--logdir",
                                 directory, "--file",     directory + "/plan.json"};
  for (const char* flag :
       {"--net", "--classes", "--input", "--batch", "--device", "--threads", "--precision",
        "--layout", "--optimizer", "--momentum", "--key", "--secure", "--checksum", "--congestion",
        "--link-rate", "--timeout", "--slots"}) {
    const std::string value = value_of(flags.dist, flag);
    if (!value.empty()) words.insert(words.end(), {flag, value});
  }
  for (const char* flag : {"--auxiliary", "--pad-shortcuts"})
    if (std::find(flags.dist.begin(), flags.dist.end(), flag) != flags.dist.end())
      words.emplace_back(flag);
  if (!flags.seconds.empty()) words.insert(words.end(), {"--seconds", flags.seconds});
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  if (const int code = plan(static_cast<int>(argv.size()), argv.data()))
    throw Error("launch: there is no plan", static_cast<Exit>(code));
  std::fflush(stdout);
  flags.plan = directory + "/plan.json";
  remove_flag(flags.dist, "--slots");  // The plan's nodefile has them.
  if (std::filesystem::exists(flags.plan + ".nodes")) flags.nodefile = flags.plan + ".nodes";
  if (read_plan(flags.plan).predicted.speedup <= 1.0)
    throw Error(
        "launch: --plan auto: it does not pay to train on several of these machines; train "
        "on one with duplex local, or follow " +
        flags.plan + " all the same");
}

std::vector<std::vector<std::string>> commands_of(const Flags& flags,
                                                  const std::vector<net::Address>& nodes) {
  std::vector<std::vector<std::string>> commands;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank)
    commands.push_back(command_of(flags, nodes[rank], rank));
  return commands;
}

/// Says why the ranks of `nodes` cannot go on without some of them, by number; "" if they can.
std::string needs_all(const Flags& flags, const std::vector<net::Address>& nodes,
                      const std::vector<int>& lost) {
  const std::optional<DistFlags> dist = flags_of(flags.dist);
  if (!dist) return "";
  if (dist->parallel.sync == net::Sync::none)
    return "in an asynchronous run the number of ranks must stay";
  if (dist->parallel.average > 0 && dist->training.spec.optimiser.states() > 0)
    return "with --average every worker's optimiser has a state of its own";
  if (nodes.size() - lost.size() < (dist->parallel.central() ? 2U : 1U))
    return "too few ranks are left";
  std::vector<std::string> hosts;
  for (const net::Address& node : nodes) hosts.push_back(node.host);
  const net::Keepers keepers(dist->parallel.topology(static_cast<int>(nodes.size())), hosts);
  for (const int rank : lost)
    if (std::find(lost.begin(), lost.end(), keepers.of(rank)) != lost.end())
      return "rank " + std::to_string(rank) + "'s part of checkpoints and its copy at rank " +
             std::to_string(keepers.of(rank)) + " are both lost";
  return "";
}

/// Leaves machines out that do not come back: `nodes` are those of `all` that have run. Returns a
/// line for the user, or "" if there is nothing to say.
std::string leave_out(Flags& flags, const std::vector<net::Address>& all,
                      const std::vector<net::Address>& nodes,
                      const std::vector<std::string>& lost) {
  if (lost.empty()) return "";
  std::string line;
  for (const std::string& host : lost) line += (line.empty() ? "launch: " : ", ") + host;
  line +=
      " could not be reached " + std::to_string(LostMachines::failed_starts) + " times in a row";
  const std::vector<int> numbers = numbers_of(nodes, lost);
  const std::string why = needs_all(flags, nodes, numbers);
  if (!why.empty()) return line + ", and the run needs all: " + why;
  for (const int number : numbers_of(all, lost)) flags.without.push_back(number);
  std::sort(flags.without.begin(), flags.without.end());
  const std::size_t left = nodes.size() - numbers.size();
  return line + ": the run goes on with the " + std::to_string(left) +
         (left == 1 ? " rank that is" : " ranks that are") + " left (--without " +
         listed(flags.without) + ")";
}

/// Runs all ranks, again and again if the user wants that. Returns the last exit code.
int start(Flags flags, const std::vector<net::Address>& all) {
  std::vector<net::Address> nodes = without(all, flags.without, "nodefile " + flags.nodefile);
  LostMachines machines(is_here);
  const bool async = value_of(flags.dist, "--sync") == "none";
  const bool central = value_of(flags.dist, "--server") == "central";
  // A central server of an asynchronous run goes on without a worker that is lost, and takes it
  // back.
  TogetherRules rules;
  rules.needed = [&](std::size_t rank) { return !async || !central || rank == 0; };
  const bool elsewhere = std::any_of(nodes.begin(), nodes.end(),
                                     [](const net::Address& node) { return !is_here(node.host); });
  std::optional<RunKey> key;
  if (!elsewhere && value_of(flags.dist, "--key").empty()) {
    key.emplace();
    flags.dist.insert(flags.dist.end(), {"--key", key->path()});
  }
  double pause = 0.0;
  std::uint64_t restart = 1;
  rules.again = [&](std::size_t rank) -> std::optional<std::vector<std::string>> {
    if (restart > flags.restarts) return std::nullopt;
    std::fprintf(stderr, "launch: starts rank %zu again (%llu of %llu)\n", rank,
                 static_cast<unsigned long long>(restart),
                 static_cast<unsigned long long>(flags.restarts));
    ++restart;
    return command_of(flags, nodes[rank], rank);
  };
  for (;; ++restart) {
    const std::int64_t begin = clock_ns();
    const TogetherResult result = run_together(commands_of(flags, nodes), rules);
    if (!result.lost || restart > flags.restarts) return result.code;
    // A failure soon after the start may have a cause that lasts, such as a machine that is off.
    pause = seconds(clock_ns() - begin) > longest_pause ? 0.0 : pause;
    const std::string line = leave_out(flags, all, nodes, machines.note(nodes, result.ends));
    if (!line.empty()) std::fprintf(stderr, "%s\n", line.c_str());
    nodes = without(all, flags.without, "nodefile " + flags.nodefile);
    std::fprintf(
        stderr, "launch: starts all ranks again from the newest checkpoint (%llu of %llu)\n",
        static_cast<unsigned long long>(restart), static_cast<unsigned long long>(flags.restarts));
    if (const int code = pause_together(pause)) return code;
    pause = std::min(longest_pause, std::max(1.0, 2.0 * pause));
    // A rank whose link to this machine is broken may still run.
    if (elsewhere) stop_everywhere(flags.nodefile, nodes, flags.ssh, false);
    if (std::find(flags.dist.begin(), flags.dist.end(), "--resume") == flags.dist.end())
      flags.dist.emplace_back("--resume");
  }
}

}  // namespace

int launch(int argc, const char* const* argv) {
  CLI::App app{
      "Starts every rank of a nodefile: here where a line names this machine, else by ssh, in the "
      "same folder and from the same path. What follows -- goes to dist. Ctrl-C ends all; the "
      "first rank that fails ends the others, and with --restarts all start again. With --sync "
      "none "
      "and a central server the others go on, and the worker alone starts again.",
      "duplex launch"};
  Flags flags;
  app.add_option(
         "ACTION", flags.action,
         "start (default), or stop: ends all ranks of yours that run with the nodefile, however "
         "they were started, and waits for their end")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text == "start" || text == "stop"
                       ? std::string()
                       : "'" + text +
                             "' is neither start nor stop; what is for dist comes behind --, as in "
                             "`duplex launch --nodefile FILE -- --net lenet ...`";
          },
          "start or stop"));
  CLI::Option* nodefile = app.add_option(
      "--nodefile", flags.nodefile, "the machines: host or host:port a line, slots=N behind it");
  app.add_option("--local", flags.local, "instead of a nodefile: so many ranks on this machine")
      ->check(between(1, 1024))
      ->excludes(nodefile);
  app.add_option("--link-rate", flags.link_rate,
                 "every rank sends and takes at most so much, such as 100Mbit/s: a slow network on "
                 "a fast one");
  app.add_option(
      "--plan", flags.plan,
      "plan.json of duplex plan, which every rank follows; the nodefile has its machines in its "
      "order. auto: measure the machines, plan, and train on the best of them, if that "
      "pays");
  app.add_option("--seconds", flags.seconds,
                 "with --plan auto: seconds of computing that are measured on every machine "
                 "(default 10)");
  app.add_option("--ssh", flags.ssh, "the program that reaches other machines (default ssh)");
  CLI::Option* print =
      app.add_flag("--print-commands", flags.print, "only say what would be started");
  app.add_option("--here", flags.here,
                 "with stop: end this machine's ranks alone, and call it so in messages; what stop "
                 "runs on the other machines")
      ->excludes(print);
  app.add_option(
         "--restarts", flags.restarts,
         "when a rank is killed, lost or hangs, start all again, so many times at most: they "
         "go on from the newest checkpoint (goes with dist's --checkpoint-every); without a "
         "machine that cannot be reached twice in a row. Where the others can go on without it, "
         "only "
         "it starts again")
      ->check(between(1, 1 << 30));
  app.add_option("--without", flags.without,
                 "ranks of the nodefile that are left out, as in 2 or 2,3: machines that are lost; "
                 "--restarts finds them by itself")
      ->delimiter(',')
      ->check(at_least(0));
  // The arguments behind "--" are dist's.
  int own = 1;
  while (own < argc && std::strcmp(argv[own], "--") != 0) ++own;
  for (int i = own + 1; i < argc; ++i) flags.dist.emplace_back(argv[i]);
  require_separator(argc, argv);
  if (const auto done = parse(app, own, argv)) return *done;
  for (const std::string& word : flags.dist) {
    if (word.rfind("--nodefile", 0) == 0 || word.rfind("--index", 0) == 0) {
      throw Error("launch: " + word + " is given to every rank by launch itself", Exit::usage);
    }
    if (word.rfind("--without", 0) == 0)
      throw Error("launch: give " + word + " to launch itself, before --", Exit::usage);
  }

  std::optional<LocalNodes> local;
  if (flags.local > 0 && flags.action != "stop") flags.nodefile = local.emplace(flags.local).path();
  if (flags.nodefile.empty())
    throw Error(flags.action == "stop"
                    ? "launch: stop needs --nodefile, the one that the ranks were started with"
                    : "launch: --nodefile is required, or --local with a number of ranks",
                Exit::usage);
  if (!flags.link_rate.empty()) {
    if (!value_of(flags.dist, "--link-rate").empty())
      throw Error("launch: --link-rate is given to launch and to dist: leave one out", Exit::usage);
    flags.dist.insert(flags.dist.end(), {"--link-rate", flags.link_rate});
  }
  if (!flags.seconds.empty() && flags.plan != "auto")
    throw Error("launch: --seconds goes with --plan auto", Exit::usage);
  if (flags.plan == "auto" && flags.action == "start") make_plan(flags);
  if (!flags.plan.empty()) follow_plan(flags.dist, flags.plan);
  if (flags.restarts > 0 && value_of(flags.dist, "--checkpoint-every").empty())
    throw Error("launch: --restarts goes on from checkpoints: give dist --checkpoint-every",
                Exit::usage);
  if (!flags.here.empty()) {
    if (flags.action == "stop") return stop_here(record_name(flags.nodefile), flags.here);
    throw Error("launch: --here goes with stop", Exit::usage);
  }
  const std::optional<DistFlags> dist = flags_of(flags.dist);
  const std::vector<net::Address> nodes = addresses_of(ranks_of(
      read_nodes(flags.nodefile), dist && dist->takes_slots(), dist && dist->parallel.central()));
  flags.nodefile = record_name(flags.nodefile);
  if (flags.action == "stop") {
    return stop_everywhere(flags.nodefile, nodes, flags.ssh, flags.print);
  }
  if (dist && flags.plan.empty()) carry_network(flags.dist, *dist);
  const std::string directory = name_run(flags.dist, !flags.print);
  if (flags.print) {
    for (const auto& command :
         commands_of(flags, without(nodes, flags.without, "nodefile " + flags.nodefile)))
      std::printf("%s\n", joined(command).c_str());
    return 0;
  }
  const int code = start(flags, nodes);
  // An empty directory is of ranks that never began; any other stays.
  std::error_code ignored;
  if (!directory.empty()) std::filesystem::remove(directory, ignored);
  return code;
}

}  // namespace duplex::tools
