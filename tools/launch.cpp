// duplex launch starts every rank of a nodefile, here or by ssh, and ends them together.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "net/topology/keepers.h"
#include "net/wire/frame.h"
#include "tools/auto_plan.h"
#include "tools/commands.h"
#include "tools/deploy/deployment.h"
#include "tools/display/display.h"
#include "tools/flags/command_line.h"
#include "tools/flags/dist_flags.h"
#include "tools/flags/launch_flags.h"
#include "tools/flags/model_flags.h"
#include "tools/launch/children.h"
#include "tools/launch/hosts.h"
#include "tools/launch/local_nodes.h"
#include "tools/launch/lost_machines.h"
#include "tools/launch/nodefile.h"
#include "tools/launch/probing.h"
#include "tools/launch/rank_record.h"
#include "tools/launch/run_key.h"
#include "tools/launch/stop.h"
#include "tools/launch/words.h"
#include "tools/plan/plan_file.h"
#include "tools/run_directory/run_directory.h"
#include "tools/text/say.h"

namespace duplex::tools {
namespace {

/// The longest pause before ranks start again, in seconds: a machine may be starting, too.
constexpr double longest_pause = 60.0;

struct Flags : LaunchFlags {
  std::optional<Deployment> deployment;  ///< With --deploy.

  Place place() const { return deployment ? deployment->place() : same_place(); }
  /// Returns how the ranks of the nodefile are ended.
  StopSpec stop() const {
    return {nodefile, deployment ? deployment->there("--nodefile") : nodefile, ssh, place(), print};
  }
};

/// The command of one rank.
std::vector<std::string> command_of(const Flags& flags, const net::Address& node,
                                    std::size_t rank) {
  std::vector<std::string> dist{"dist"};
  dist.insert(dist.end(), flags.dist.begin(), flags.dist.end());
  dist.insert(dist.end(), {"--nodefile", flags.nodefile, "--index", std::to_string(rank)});
  if (!flags.without.empty()) dist.insert(dist.end(), {"--without", listed(flags.without)});
  if (!flags.print) dist.insert(dist.end(), {"--launch-display", Display::here().word()});
  if (flags.deployment && !is_here(node.host))
    dist = flags.deployment->words_there(std::move(dist));
  return command_on(node.host, flags.ssh, std::move(dist), flags.place());
}

/// The flags of dist among the words of a command line; none: dist says what is wrong with them.
std::optional<DistFlags> flags_of(const std::vector<std::string>& words) {
  DistFlags dist;
  CommandLine app;
  dist.add_to(app);
  if (!app.fits(words)) return std::nullopt;
  return dist;
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

bool any_elsewhere(const std::vector<net::Address>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const net::Address& node) { return !is_here(node.host); });
}

/// Gives all ranks what the network's file has now: other machines need not have it, and ranks that
/// start again train the same. A plan has it, too.
void carry_network(std::vector<std::string>& words, const DistFlags& dist,
                   const std::vector<net::Address>& nodes) {
  ModelSpec model = dist.training.spec.model;
  if (dist.training.spec.resume) model.take_resumed(dist.training.spec.logdir);
  const std::vector<std::string> words_of_file = carried(model);
  if (model.file() && words_of_file.empty() && any_elsewhere(nodes))
    std::fprintf(stderr,
                 "launch: %s is too long to be handed to the ranks: every machine needs it there\n",
                 model.net.c_str());
  words.insert(words.end(), words_of_file.begin(), words_of_file.end());
}

/// Gives dist the plan, and what launch itself has to know of it.
void follow_plan(std::vector<std::string>& dist, const std::string& path) {
  if (!value_of(dist, "--plan").empty())
    throw Error("launch: give --plan to launch itself, before --", Exit::usage);
  for (const auto& [flag, value] : read_plan(path).flags())
    if (value_of(dist, flag).empty()) dist.insert(dist.end(), {flag, value});
  dist.insert(dist.end(), {"--plan", record_name(path)});
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
  if (dist->parallel.cuts())
    return "no rank keeps a copy of another's part where the network is cut";
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
  flags.without.erase(std::unique(flags.without.begin(), flags.without.end()), flags.without.end());
  const std::size_t left = nodes.size() - numbers.size();
  return line + ": the run goes on with the " + std::to_string(left) +
         (left == 1 ? " rank that is" : " ranks that are") + " left (--without " +
         listed(flags.without) + ")";
}

/// Runs all ranks, again and again if the user wants that. Returns the last exit code. Adds to
/// `lost` the hosts that the run has gone on without.
int start(Flags flags, const std::vector<net::Address>& all, std::vector<std::string>& lost) {
  std::vector<net::Address> nodes = without(all, flags.without, "nodefile " + flags.nodefile);
  LostMachines machines(is_here);
  const bool async = value_of(flags.dist, "--sync") == "none";
  const bool central = value_of(flags.dist, "--server") == "central";
  // A central server of an asynchronous run goes on without a worker that is lost, and takes it
  // back.
  TogetherRules rules;
  rules.needed = [&](std::size_t rank) { return !async || !central || rank == 0; };
  rules.quiet = flags.quiet;
  const bool elsewhere = any_elsewhere(nodes);
  std::optional<RunKey> key;
  if (!elsewhere && value_of(flags.dist, "--key").empty()) {
    key.emplace();
    flags.dist.insert(flags.dist.end(), {"--key", key->path()});
  }
  double pause = 0.0;
  std::uint64_t restart = 1;
  rules.again = [&](std::size_t rank) -> std::optional<std::vector<std::string>> {
    if (restart > flags.restarts) return std::nullopt;
    say("launch: starts rank " + std::to_string(rank) + " again (" + std::to_string(restart) +
        " of " + std::to_string(flags.restarts) + ")");
    ++restart;
    return command_of(flags, nodes[rank], rank);
  };
  for (;; ++restart) {
    const std::int64_t begin = clock_ns();
    const TogetherResult result = run_together(commands_of(flags, nodes), rules);
    if (!result.lost || restart > flags.restarts) {
      const std::string advice =
          flags.local > 0 ? "" : check_advice(result, flags.nodefile, flags.ssh, flags.place());
      if (!advice.empty()) std::fprintf(stderr, "launch: %s\n", advice.c_str());
      return result.code;
    }
    // A failure soon after the start may have a cause that lasts, such as a machine that is off.
    pause = seconds(clock_ns() - begin) > longest_pause ? 0.0 : pause;
    const std::vector<std::string> gone = machines.note(nodes, result.ends);
    const std::string line = leave_out(flags, all, nodes, gone);
    if (!line.empty()) std::fprintf(stderr, "%s\n", line.c_str());
    const std::size_t had = nodes.size();
    nodes = without(all, flags.without, "nodefile " + flags.nodefile);
    if (nodes.size() < had) lost.insert(lost.end(), gone.begin(), gone.end());
    std::fprintf(
        stderr, "launch: starts all ranks again from the newest checkpoint (%llu of %llu)\n",
        static_cast<unsigned long long>(restart), static_cast<unsigned long long>(flags.restarts));
    if (const int code = pause_together(pause)) return code;
    pause = std::min(longest_pause, std::max(1.0, 2.0 * pause));
    // A rank whose link to this machine is broken may still run.
    if (elsewhere) stop_everywhere(flags.stop(), nodes);
    if (const int code = pause_together(0.0)) return code;  // A signal that came meanwhile.
    if (std::find(flags.dist.begin(), flags.dist.end(), "--resume") == flags.dist.end())
      flags.dist.emplace_back("--resume");
  }
}

/// The hosts of a nodefile's ranks, each once, without those that are left out.
std::vector<std::string> hosts_of(const Flags& flags, const std::vector<net::Address>& nodes) {
  std::vector<std::string> hosts;
  for (const net::Address& node : without(nodes, flags.without, "nodefile " + flags.nodefile))
    if (std::find(hosts.begin(), hosts.end(), node.host) == hosts.end()) hosts.push_back(node.host);
  return hosts;
}

/// The ranks of the nodefile.
std::vector<net::Address> ranks_in(const Flags& flags, const std::optional<DistFlags>& dist) {
  return addresses_of(ranks_of(read_nodes(flags.nodefile), dist && dist->takes_slots(),
                               dist && dist->parallel.central()));
}

/// Puts the program, and what the ranks will need, onto the machines.
void deploy_first(Flags& flags, std::optional<RunKey>& key) {
  const std::optional<DistFlags> dist = flags_of(flags.dist);
  const std::vector<std::string> hosts = hosts_of(flags, ranks_in(flags, dist));
  Deployment& deployment =
      flags.deployment.emplace(deployed_in("--deploy", flags.deploy), Machines{flags.ssh, hosts});
  deployment.take_text("--nodefile", flags.nodefile);
  if (flags.action == "stop") return;
  if (!flags.only_deploys() && value_of(flags.dist, "--key").empty() && !flags.print) {
    key.emplace();
    flags.dist.insert(flags.dist.end(), {"--key", key->path()});
  }
  deployment.take(flags.dist, flags.deploy_data(), key.has_value());
  if (flags.print) return;
  const Bundle bundle = Bundle::open(flags.bundle);
  deployment.send(&bundle, value_of(flags.dist, "--logdir"));
}

/// Sends the plan, and the nodefile that it may have made.
void deploy_plan(Flags& flags) {
  flags.deployment->take_text("--nodefile", flags.nodefile);
  const std::string given = value_of(flags.dist, "--launch-nodefile");
  if (!given.empty()) flags.deployment->take_text("--launch-nodefile", given);
  if (!flags.plan.empty()) flags.deployment->take_text("--plan", flags.plan);
  if (!flags.print) flags.deployment->send(nullptr, "");
}

/// Brings the results home; those of `lost` hosts only if that is possible. Returns the command's
/// exit code, where the run has ended with `code`.
int come_home(const Flags& flags, int code, const std::vector<std::string>& lost) {
  try {
    flags.deployment->end(flags.dist, code == 0, lost);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", net::printable(error.what()).c_str());
    return code == 0 ? static_cast<int>(Exit::failed) : code;
  }
  if (code == 0 && !flags.quiet) {
    const std::string path = value_of(flags.dist, "--logdir");
    std::fprintf(stderr, "launch: the results are in %s; duplex report %s makes a page of them\n",
                 path.c_str(), path.c_str());
  }
  return code;
}

/// Does what is asked with the machines of the nodefile; `key` is the run's own, where it gets one.
/// Returns the exit code.
int go(Flags& flags, std::optional<RunKey>& key) {
  if (!flags.deploy.empty()) {
    flags.nodefile = record_name(flags.nodefile);
    deploy_first(flags, key);
    if (flags.only_deploys()) return 0;
  }
  const std::string given = flags.nodefile;
  const bool plans = flags.plan == "auto" || flags.plan == "new";
  if (plans && flags.action == "start")
    make_plan(flags, flags.deployment ? &*flags.deployment : nullptr);
  // `launch stop` is given the user's nodefile, and not the one that the plan may have made of it.
  if (flags.nodefile != given)
    flags.dist.insert(flags.dist.end(), {"--launch-nodefile", record_name(given)});
  if (!flags.plan.empty()) follow_plan(flags.dist, flags.plan);
  if (flags.restarts > 0 && value_of(flags.dist, "--checkpoint-every").empty())
    throw Error("launch: --restarts goes on from checkpoints: give dist --checkpoint-every",
                Exit::usage);
  const std::optional<DistFlags> dist = flags_of(flags.dist);
  const std::vector<net::Address> nodes = ranks_in(flags, dist);
  flags.nodefile = record_name(flags.nodefile);
  if (flags.action == "stop") return stop_everywhere(flags.stop(), nodes);
  if (flags.deployment && !flags.plan.empty()) deploy_plan(flags);
  if (dist && flags.plan.empty()) carry_network(flags.dist, *dist, nodes);
  const std::string directory = name_run(flags.dist, !flags.print);
  if (flags.print) {
    for (const auto& command :
         commands_of(flags, without(nodes, flags.without, "nodefile " + flags.nodefile)))
      std::printf("%s\n", joined(command).c_str());
    return 0;
  }
  // Other machines save the weights in the run's folder, which has to be there before they start.
  if (flags.deployment && !value_of(flags.dist, "--save").empty())
    flags.deployment->send(nullptr, value_of(flags.dist, "--logdir"));
  std::vector<std::string> lost;
  int code = start(flags, nodes, lost);
  if (flags.deployment) code = come_home(flags, code, lost);
  // An empty directory is of ranks that never began; any other stays.
  std::error_code ignored;
  if (!directory.empty()) std::filesystem::remove(directory, ignored);
  return code;
}

}  // namespace

int launch(int argc, const char* const* argv) {
  Flags flags;
  if (const auto done = flags.parse(argc, argv)) return *done;
  // Folders with a key, a nodefile or an unpacked bundle go away again when this is interrupted.
  if (flags.action == "start" && flags.undeploy.empty()) note_interrupts();
  if (flags.quiet && !flags.print) silence_standard_output();
  std::optional<LocalNodes> local;
  if (flags.local > 0 && flags.action != "stop") flags.nodefile = local.emplace(flags.local).path();
  if (!flags.link_rate.empty())
    flags.dist.insert(flags.dist.end(), {"--link-rate", flags.link_rate});
  if (!flags.here.empty()) return stop_here(record_name(flags.nodefile), flags.here);
  if (!flags.undeploy.empty()) {
    undeploy(deployed_in("--undeploy", flags.undeploy),
             {flags.ssh, hosts_of(flags, ranks_in(flags, flags_of(flags.dist)))});
    return 0;
  }
  // Here it is refused once, and not by every rank.
  if (const auto dist = flags_of(flags.dist)) dist->wire.rate();
  std::optional<RunKey> key;
  try {
    return go(flags, key);
  } catch (...) {
    if (flags.deployment) flags.deployment->give_up();
    throw;
  }
}

}  // namespace duplex::tools
