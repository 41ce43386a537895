#include "tools/simulation/queues.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace duplex::tools::simulation {
namespace {

/// Smaller changes of the bytes in a queue, as a part of them, make no difference worth telling.
constexpr double noticed = 0.01;

/// Says how many times as much is sent to an owner as it sends, if several ranks send to it:
/// gradients meet so much in the switch's port to it. They do at a dedicated server, and at a
/// distributed one that holds more than its share.
double crowd_of(const net::Topology& topology, const net::ShardMap& map, int owner) {
  const bool works = topology.is_worker(owner);
  const auto senders = static_cast<double>(topology.workers().size()) - (works ? 1.0 : 0.0);
  const auto owned = static_cast<double>(map.elements_of(owner));
  const double goes = works ? static_cast<double>(map.elements()) - owned : 0.0;
  if (senders <= 1.0 || owned <= 0.0) return 0.0;
  return goes > 0.0 ? owned * senders / goes : std::numeric_limits<double>::infinity();
}

}  // namespace

Queues::Queues(const Spec& spec, const net::ShardMap& map, const std::vector<Ends>& ends,
               Fluid& fluid)
    : spec_(spec),
      fluid_(fluid),
      meeting_(static_cast<std::size_t>(spec.topology.size)),
      limits_(spec.topology.mode == net::ServerMode::central && spec.queue > 0.0) {
  if (spec.queue <= 0.0) return;
  std::vector<std::size_t> receiving(meeting_.size(), 0);
  for (const Ends& each : ends) ++receiving[static_cast<std::size_t>(each.to)];
  std::vector<double> crowds;
  for (int rank = 0; rank < spec.topology.size; ++rank)
    crowds.push_back(crowd_of(spec.topology, map, rank));
  connections_.reserve(ends.size());
  for (Index index = 0; index < ends.size(); ++index) {
    const auto to = static_cast<std::size_t>(ends[index].to);
    connections_.emplace_back();
    connections_.back().ends = ends[index];
    connections_.back().share = Share(spec, ends[index].to, receiving[to], crowds[to], index);
    // Connections that are alike begin alike, so none of them waits for another.
    if (connections_.back().share.meets() && spec.unfairness > 0.0) meeting_[to].push_back(index);
  }
}

bool Queues::has_room(Index index) const {
  return !connections_.empty() && connections_[index].handed < connections_[index].share.ahead();
}

void Queues::hand_over(Index index, double bytes) {
  if (!connections_.empty()) connections_[index].handed += bytes;
}

double Queues::behind(Index index, double now) const {
  if (connections_.empty() || connections_[index].share.sends()) return 0.0;
  const auto to = static_cast<std::size_t>(connections_[index].ends.to);
  double bytes = 0.0;
  int others = 0;
  for (const Index each : meeting_[to]) {
    const Connection& other = connections_[each];
    if (!other.sends) continue;
    ++others;
    // Each connection fills its window as fast as its own link lets it.
    const double rate = spec_.rates[static_cast<std::size_t>(other.ends.from)];
    bytes += std::min(other.handed, other.share.filled(now, rate));
  }
  return others > 0 ? bytes * (1.0 - 1.0 / (others + 1)) / spec_.rates[to] : 0.0;
}

void Queues::begin(Index index, double now) {
  if (connections_.empty()) return;
  Connection& connection = connections_[index];
  connection.share.begins(now);
  fluid_.set_weight(index, connection.share.weight());
  connection.sends = true;
  count(index);
}

void Queues::sent(Index index, double bytes) {
  if (connections_.empty()) return;
  connections_[index].handed -= bytes;
  connections_[index].share.sent(bytes, fluid_.is_limited(index));
}

void Queues::hold(Index index) {
  if (connections_.empty()) return;
  connections_[index].sends = false;
  count(index);
}

void Queues::pause(Index index) {
  if (connections_.empty()) return;
  connections_[index].share.pauses();
  hold(index);
}

const std::vector<Queues::Index>& Queues::let_through(int to) const {
  const std::vector<Index>& here = meeting_[static_cast<std::size_t>(to)];
  const bool used = std::any_of(here.begin(), here.end(),
                                [this](Index index) { return connections_[index].sends; });
  return used ? nobody_ : here;
}

/// Acknowledgements of a dedicated server's weights wait behind gradients in the switch's port to
/// it, and those of gradients behind weights in its own queue. A connection may have no more than
/// its window in flight meanwhile.
void Queues::count(Index index) {
  if (!limits_) return;
  Connection& connection = connections_[index];
  Waiting& waiting = is_gradients(connection) ? gradients_ : weights_;
  const double before = connection.waits;
  connection.waits = !connection.sends          ? 0.0
                     : is_gradients(connection) ? connection.share.waiting()
                                                : Share::host_bytes;
  waiting.connections += (connection.waits > 0.0) - (before > 0.0);
  waiting.bytes = waiting.connections > 0 ? waiting.bytes + connection.waits - before : 0.0;
  fluid_.set_limit(index, connection.share.limit(opposite(connection).seconds));
}

void Queues::limit() {
  if (!limits_) return;
  const double rate = spec_.rates[static_cast<std::size_t>(spec_.topology.server)];
  for (Waiting* waiting : {&gradients_, &weights_}) {
    // If one worker sends alone, its gradients wait in its own host.
    const bool none = waiting == &gradients_ && waiting->connections < 2;
    const double seconds = none ? 0.0 : waiting->bytes / rate;
    if (std::abs(seconds - waiting->seconds) <= noticed * waiting->seconds) continue;
    waiting->seconds = seconds;
    for (Index index = 0; index < connections_.size(); ++index) {
      const Connection& connection = connections_[index];
      if (connection.sends && &opposite(connection) == waiting)
        fluid_.set_limit(index, connection.share.limit(seconds));
    }
  }
}

}  // namespace duplex::tools::simulation
