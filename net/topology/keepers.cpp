#include "net/topology/keepers.h"

#include <algorithm>
#include <cstddef>

namespace duplex::net {
namespace {

/// Keepers by a common distance, where no owner shares its machine with its keeper.
std::vector<int> by_distance(const std::vector<int>& workers, const std::vector<std::string>& hosts,
                             std::size_t distance) {
  std::vector<int> keepers(hosts.size(), -1);
  const std::size_t count = workers.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto owner = static_cast<std::size_t>(workers[i]);
    const int keeper = workers[(i + distance) % count];
    const std::string& host = hosts[owner];
    if (!host.empty() && host == hosts[static_cast<std::size_t>(keeper)]) return {};
    keepers[owner] = keeper;
  }
  return keepers;
}

/// The first of the ranks that is on another machine, or else the first.
int first_elsewhere(const std::vector<int>& ranks, const std::vector<std::string>& hosts,
                    const std::string& host) {
  const auto found = std::find_if(ranks.begin(), ranks.end(), [&](int rank) {
    return host.empty() || hosts[static_cast<std::size_t>(rank)] != host;
  });
  return found == ranks.end() ? ranks.front() : *found;
}

}  // namespace

Keepers::Keepers(const Topology& topology, const std::vector<std::string>& hosts)
    : keepers_(hosts.size(), -1) {
  const std::vector<int> workers = topology.workers();
  if (topology.mode == ServerMode::central) {
    const auto server = static_cast<std::size_t>(topology.server);
    if (workers.empty()) return;
    keepers_[server] = first_elsewhere(workers, hosts, hosts[server]);
    distance_ = keepers_[server] == workers.front() ? 1 : 0;
    return;
  }
  for (std::size_t distance = 1; distance < workers.size(); ++distance) {
    const std::vector<int> found = by_distance(workers, hosts, distance);
    if (found.empty()) continue;
    keepers_ = found;
    distance_ = distance;
    return;
  }
  if (workers.size() < 2) {
    distance_ = 1;
    return;
  }
  for (std::size_t i = 0; i < workers.size(); ++i) {
    std::vector<int> others(workers.begin() + static_cast<std::ptrdiff_t>(i) + 1, workers.end());
    others.insert(others.end(), workers.begin(), workers.begin() + static_cast<std::ptrdiff_t>(i));
    const auto owner = static_cast<std::size_t>(workers[i]);
    keepers_[owner] = first_elsewhere(others, hosts, hosts[owner]);
  }
}

std::vector<int> Keepers::owners_of(int keeper) const {
  std::vector<int> owners;
  for (std::size_t owner = 0; owner < keepers_.size(); ++owner)
    if (keepers_[owner] == keeper) owners.push_back(static_cast<int>(owner));
  return owners;
}

std::string Keepers::str() const {
  if (distance_ == 1) return "";
  if (distance_ > 1) return "nodefile with copies " + std::to_string(distance_) + " workers on";
  std::string text = "nodefile with copies at";
  for (const int keeper : keepers_)
    if (keeper >= 0) text += " " + std::to_string(keeper);
  return text;
}

}  // namespace duplex::net
