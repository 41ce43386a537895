#include "tools/launch/rank_source.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/error.h"
#include "net/rendezvous/host_names.h"
#include "tools/launch/lost_machines.h"
#include "tools/launch/nodefile.h"
#include "tools/launch/slurm_lists.h"

namespace duplex::tools {
namespace {

struct Launcher {
  const char* name;
  const char* rank;  ///< The variables' names.
  const char* size;
  const char* local_size;  ///< Ranks on this machine.
  const char* local_rank;  ///< This one's number among them.
  bool process;            ///< Whether it starts ranks; anybody may set the variables otherwise.
};

/// In an sbatch script SLURM_PROCID and SLURM_NTASKS are set, too; only a step of srun has
/// SLURM_STEP_ID as well.
constexpr const char* slurm_step = "SLURM_STEP_ID";
constexpr Launcher slurm{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr, nullptr, true};
constexpr Launcher others[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", true},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "MPI_LOCALRANKID", true},
    {"the environment", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_RANK", false}};

/// The facts that one source gives about this process; -1: not given.
struct Claim {
  int rank = -1, size = -1, local_size = -1, local_rank = -1;
  std::string rank_said, size_said;    ///< For messages: "RANK=1", "--index 1".
  const Launcher* launcher = nullptr;  ///< Null for the flags.
  bool daemons = false;                ///< A Slurm step of one task a machine.
};

Error refusal(const std::string& text) {
  return Error("dist: " + text, Exit::usage);
}

class LaunchEnvironment {
 public:
  explicit LaunchEnvironment(const Environment& environment) : environment_(environment) {}

  /// A variable that is not set counts as empty.
  std::string text(const char* name) const {
    const char* value = name == nullptr ? nullptr : environment_(name);
    return value == nullptr ? "" : value;
  }
  std::string said(const char* name) const { return std::string(name) + "=" + text(name); }

  /// A number from `low` to `high`; none if the variable is not set.
  std::optional<int> number(const char* name, int low, int high) const {
    const std::string digits = text(name);
    if (digits.empty()) return {};
    const bool good =
        digits.size() <= 9 && digits.find_first_not_of("0123456789") == std::string::npos;
    if (!good || std::stoi(digits) < low || std::stoi(digits) > high) {
      throw refusal(said(name) + " is no number from " + std::to_string(low) + " to " +
                    std::to_string(high));
    }
    return std::stoi(digits);
  }

  std::optional<Claim> claim(const Launcher& launcher) const {
    constexpr int most = 1 << 20;
    const auto rank = number(launcher.rank, 0, most - 1), size = number(launcher.size, 1, most);
    if (!rank && !size) return {};
    Claim claim;
    claim.rank = rank.value_or(-1);
    claim.size = size.value_or(-1);
    claim.rank_said = said(launcher.rank);
    claim.size_said = said(launcher.size);
    claim.launcher = &launcher;
    if (size && rank && *rank >= *size) {
      throw refusal(claim.rank_said + " is no rank of " + claim.size_said);
    }
    if (size) {
      claim.local_size = number(launcher.local_size, 1, *size).value_or(-1);
      claim.local_rank = number(launcher.local_rank, 0, *size - 1).value_or(-1);
    }
    return claim;
  }

 private:
  const Environment& environment_;
};

/// All claims about this process: first the flags', then Slurm's.
std::vector<Claim> claims_of(const RankFlags& flags, int nodes, const LaunchEnvironment& launched) {
  std::vector<Claim> claims;
  if (nodes > 0) {
    claims.emplace_back();
    claims[0].rank = flags.index;
    claims[0].size = nodes;
    claims[0].rank_said = "--index " + std::to_string(flags.index);
    claims[0].size_said = "nodefile " + flags.nodefile + " of " + std::to_string(nodes) +
                          (nodes == 1 ? " rank" : " ranks");
  }
  std::optional<Claim> step;
  if (!launched.text(slurm_step).empty()) step = launched.claim(slurm);
  if (step) {
    step->daemons = launched.number("SLURM_STEP_NUM_NODES", 1, 1 << 20) == step->size;
    claims.push_back(*step);
  }
  for (const Launcher& launcher : others) {
    const auto claim = launched.claim(launcher);
    // Slurm's own PMI repeats what the step says.
    if (claim && !(step && claim->rank == step->rank && claim->size == step->size)) {
      claims.push_back(*claim);
    }
  }
  return claims;
}

/// Returns whether a launcher has started so many processes, one for each slot.
bool starts_each(const LaunchEnvironment& launched, int slots) {
  const std::vector<Claim> claims = claims_of({}, 0, launched);
  return std::any_of(claims.begin(), claims.end(),
                     [slots](const Claim& claim) { return claim.size == slots; });
}

/// Removes the claims of launchers that have started launchers or a shell, not ranks.
void leave_out_outer(std::vector<Claim>& claims, bool index_given) {
  int launched = 0;
  for (const Claim& claim : claims) {
    if (claim.launcher != nullptr) launched = std::max(launched, claim.size);
  }
  const int named = index_given ? claims.front().size : 0;
  const auto outer = [&](const Claim& claim) {
    if (claim.launcher == nullptr || !claim.launcher->process) return false;
    return (claim.daemons && claim.size < launched) || (claim.size == 1 && named > 1);
  };
  claims.erase(std::remove_if(claims.begin(), claims.end(), outer), claims.end());
}

/// Joins the claims to one, which takes each fact from the first that gives it; throws if two
/// contradict each other.
Claim agreed(const std::vector<Claim>& claims) {
  Claim all;
  for (const Claim& claim : claims) {
    const auto contradiction = [](const std::string& one, const std::string& other) {
      return refusal(one + " and " + other +
                     " contradict each other: leave out, or unset, what is not meant");
    };
    if (claim.rank >= 0 && all.rank >= 0 && claim.rank != all.rank) {
      throw contradiction(all.rank_said, claim.rank_said);
    }
    if (claim.size >= 0 && all.size >= 0 && claim.size != all.size) {
      throw contradiction(all.size_said, claim.size_said);
    }
    if (claim.rank >= 0 && all.rank < 0) {
      all.rank = claim.rank;
      all.rank_said = claim.rank_said;
      all.launcher = claim.launcher;
    }
    if (claim.size >= 0 && all.size < 0) {
      all.size = claim.size;
      all.size_said = claim.size_said;
    }
    if (all.local_size < 0) all.local_size = claim.local_size;
    if (all.local_rank < 0) all.local_rank = claim.local_rank;
  }
  return all;
}

/// Finds the addresses of ranks that have no nodefile.
class Finder {
 public:
  Finder(const LaunchEnvironment& launched, const Claim& place, bool central)
      : launched_(launched),
        place_(place),
        central_(central),
        master_(launched.text("MASTER_ADDR")) {
    constexpr int last_port = 65535;
    first_port_ = launched.number("MASTER_PORT", 1, last_port).value_or(default_port);
    // torchrun listens there.
    if (launched.text("TORCHELASTIC_USE_AGENT_STORE") == "True") ++first_port_;
    if (place.size > last_port + 1 - first_port_) {
      throw refusal(std::to_string(place.size) + " ranks from port " + std::to_string(first_port_) +
                    " on would need ports beyond " + std::to_string(last_port));
    }
  }

  /// `used` gets the source of the addresses.
  std::vector<net::Address> find(bool in_step, std::string& used) const {
    if (in_step) return of_step(used);
    if (place_.local_size > 0 && place_.local_size < place_.size) refuse_loopback();
    if (place_.local_size == place_.size || place_.size == 1 || net::means_loopback(master_)) {
      return here(used);
    }
    if (central_ && !master_.empty()) {
      std::vector<net::Address> addresses(static_cast<std::size_t>(place_.size));
      addresses[0] = {master_, port(0)};
      used += "; rank 0 at MASTER_ADDR";
      return addresses;
    }
    throw refusal("where the " + std::to_string(place_.size) + " ranks of " + place_.size_said +
                  " are is not known: give --nodefile FILE with a line for every machine, in the "
                  "order of ranks (`host`, or `host slots=N` for N ranks)" +
                  (central_ ? ", or set MASTER_ADDR to rank 0's host" : ""));
  }

 private:
  std::uint16_t port(int number) const { return static_cast<std::uint16_t>(first_port_ + number); }

  /// Throws if MASTER_ADDR is loopback. Called if ranks are on several machines.
  void refuse_loopback() const {
    if (!net::means_loopback(master_)) return;
    throw refusal(launched_.said("MASTER_ADDR") + " is reached from this machine alone, but the " +
                  std::to_string(place_.size) + " ranks are on several");
  }

  std::vector<net::Address> here(std::string& used) const {
    std::vector<net::Address> addresses;
    for (int rank = 0; rank < place_.size; ++rank) addresses.push_back({"127.0.0.1", port(rank)});
    used += "; all ranks on this machine";
    return addresses;
  }

  /// The addresses of a Slurm step, with consecutive ranks on each host, as srun distributes them
  /// if not told otherwise.
  std::vector<net::Address> of_step(std::string& used) const {
    const std::vector<std::string> hosts = expand_hosts(launched_.text("SLURM_STEP_NODELIST"));
    const std::vector<int> counts = expand_counts(launched_.text("SLURM_STEP_TASKS_PER_NODE"));
    if (hosts.size() != counts.size() ||
        std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) != place_.size) {
      throw refusal(launched_.said("SLURM_STEP_TASKS_PER_NODE") + " does not fit " +
                    place_.size_said + " on " + launched_.said("SLURM_STEP_NODELIST") +
                    ": give --nodefile FILE");
    }
    if (hosts.size() == 1) return here(used);
    check_distribution(counts);
    std::vector<net::Address> addresses;
    for (std::size_t node = 0; node < hosts.size(); ++node) {
      for (int local = 0; local < counts[node]; ++local) {
        addresses.push_back({hosts[node], port(local)});
      }
    }
    used += "; hosts of SLURM_STEP_NODELIST";
    if (central_ && !master_.empty()) {
      refuse_loopback();
      addresses[0].host = master_;
      used += ", rank 0 at MASTER_ADDR";
    }
    return addresses;
  }

  void check_distribution(const std::vector<int>& counts) const {
    const std::string distribution = launched_.text("SLURM_DISTRIBUTION");
    const std::string nodes = distribution.substr(0, distribution.find_first_of(":,"));
    const bool one_each = *std::max_element(counts.begin(), counts.end()) == 1;
    int node = 0;
    for (int first = 0; place_.rank >= (first += counts[static_cast<std::size_t>(node)]);) ++node;
    const auto told = launched_.number("SLURM_NODEID", 0, static_cast<int>(counts.size()) - 1);
    if ((nodes.empty() || nodes == "block" || (nodes == "cyclic" && one_each)) &&
        told.value_or(node) == node) {
      return;
    }
    throw refusal((distribution.empty() ? launched_.said("SLURM_NODEID")
                                        : launched_.said("SLURM_DISTRIBUTION")) +
                  ": ranks are not distributed in blocks; start srun with --distribution=block, or "
                  "give --nodefile FILE with a line for every rank");
  }

  const LaunchEnvironment& launched_;
  const Claim& place_;
  bool central_;
  std::string master_;
  int first_port_ = default_port;
};

/// Counts the slots that compute and have the same host as this rank, or that the launcher counts
/// on it. A central server computes nothing.
void count_computing(RankSource& source, const Claim& place, bool central) {
  const auto rank = static_cast<std::size_t>(source.rank);
  const std::string& host = source.addresses[rank].host;
  if (host.empty()) {  // So may those of ranks on other machines be.
    const int ranks = std::max(place.local_size, 1), own = source.slots[rank];
    source.computing_here = ranks * own;
    source.computing_before = std::clamp(place.local_rank, 0, ranks - 1) * own;
    return;
  }
  int here = 0;
  for (std::size_t other = central ? 1 : 0; other < source.addresses.size(); ++other) {
    if (source.addresses[other].host != host) continue;
    if (other == rank) source.computing_before = here;
    here += source.slots[other];
  }
  source.computing_here = std::max(here, 1);
}

}  // namespace

int RankSource::threads(int usable, int online) const {
  const bool chosen = has_own_cores(usable, online);
  const int own = slots.empty() ? 1 : slots[static_cast<std::size_t>(rank)];
  return std::max(
      chosen ? std::min(usable / own, online / computing_here) : usable / computing_here, 1);
}

std::string RankSource::str() const {
  return "rank " + std::to_string(rank) + " of " + std::to_string(addresses.size()) + " (" + used +
         ")";
}

RankSource find_rank(const RankFlags& flags, const Environment& environment) {
  const LaunchEnvironment launched(environment);
  RankSource source;
  std::vector<Node> ranks;
  if (!flags.nodefile.empty()) {
    const std::vector<Node> lines = read_nodes(flags.nodefile);
    ranks = ranks_of(lines, false);
    const bool apart = flags.index < 0 && starts_each(launched, static_cast<int>(ranks.size()));
    if (flags.takes_slots && !apart) ranks = ranks_of(lines, true, flags.central);
  }
  std::string named = "nodefile " + flags.nodefile;
  if (!flags.without.empty()) {
    if (flags.nodefile.empty())
      throw refusal("--without goes with the --nodefile whose ranks are to be left out");
    ranks = without(ranks, flags.without, named);
    named += " without " + listed(flags.without);
  }
  const int nodes = static_cast<int>(ranks.size());
  if (flags.index >= 0 && nodes == 0) {
    throw refusal("--index goes with the --nodefile whose line it is");
  }
  if (nodes > 0 && flags.index >= nodes) {
    throw Error("--index " + std::to_string(flags.index) + ": " + named + " has ranks 0 to " +
                    std::to_string(nodes - 1),
                Exit::usage);
  }
  std::vector<Claim> claims = claims_of(flags, nodes, launched);
  leave_out_outer(claims, flags.index >= 0);
  const Claim place = agreed(claims);
  if (place.rank < 0) {
    throw refusal("no rank: give --index I" + std::string(nodes > 0 ? "" : " and --nodefile FILE") +
                  ", or start it with duplex launch, srun, mpirun, or RANK and WORLD_SIZE set");
  }
  if (place.size < 0) {
    throw refusal(place.rank_said + " is set without " + place.launcher->size +
                  ": set it as well, or give --nodefile FILE");
  }
  if (place.rank >= place.size) {
    throw refusal(place.rank_said + " is no rank of " + place.size_said);
  }
  source.rank = place.rank;
  source.used = "from --index";
  if (place.launcher != nullptr) {
    source.used = std::string("from ") + place.launcher->name + ": " + place.launcher->rank;
  }
  if (nodes > 0) {
    source.addresses = addresses_of(ranks);
    for (const Node& rank : ranks) source.slots.push_back(rank.slots);
    source.used += "; " + named;
  } else {
    const bool in_step = std::any_of(claims.begin(), claims.end(),
                                     [](const Claim& claim) { return claim.launcher == &slurm; });
    source.addresses = Finder(launched, place, flags.central).find(in_step, source.used);
    source.slots.assign(source.addresses.size(), 1);
  }
  if (flags.slots > 0) {
    if (std::any_of(source.slots.begin(), source.slots.end(), [](int slots) { return slots > 1; }))
      throw refusal("--slots " + std::to_string(flags.slots) + " and the slots of " + named +
                    " say the same: leave one of them out");
    source.slots.assign(source.addresses.size(), flags.slots);
    if (flags.central) source.slots.front() = 1;
  }
  source.launched = place.launcher != nullptr && place.launcher->process;
  count_computing(source, place, flags.central);
  return source;
}

}  // namespace duplex::tools
