#include "tools/simulation/fluid.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace duplex::tools::simulation {
namespace {

/// Rates closer than this are the same: sums in another order differ by so much.
constexpr double same = 1e-12;

constexpr double unlimited = std::numeric_limits<double>::infinity();

}  // namespace

Fluid::Index Fluid::add_port(double bytes_per_second, double burst) {
  ports_.emplace_back();
  ports_.back().capacity = bytes_per_second;
  ports_.back().burst = ports_.back().saved = burst;
  return static_cast<Index>(ports_.size() - 1);
}

Fluid::Index Fluid::add_flow(Index out, Index in) {
  flows_.emplace_back();
  flows_.back().ports[0] = out;
  flows_.back().ports[1] = in;
  return static_cast<Index>(flows_.size() - 1);
}

/// A port that is not used to its rate saves something, too; but then the other port of its flows
/// has nothing saved.
double Fluid::saved(const Port& port, double now) {
  if (!port.flows.empty()) return port.saved;
  return std::min(port.burst, port.saved + port.capacity * (now - port.since));
}

/// Returns how many of these bytes pass at once, which both ports let them do, and takes them from
/// what the ports have saved.
double Fluid::pass_at_once(const Flow& flow, double bytes, double now) {
  for (const Index port : flow.ports) bytes = std::min(bytes, saved(ports_[port], now));
  for (const Index each : flow.ports) {
    Port& port = ports_[each];
    port.saved = saved(port, now) - bytes;
    port.since = now;
  }
  return bytes;
}

void Fluid::carry(Index index, double bytes, double now) {
  Flow& flow = flows_[index];
  bytes -= pass_at_once(flow, bytes, now);
  flow.left = bytes;
  flow.since = now;
  if (flow.active()) {
    flow.end = now + bytes / flow.rate;
    if (flow.rate > 0.0) push(index);
    return;
  }
  for (const int side : {0, 1}) {
    std::vector<Index>& flows = ports_[flow.ports[side]].flows;
    flow.places[side] = static_cast<Index>(flows.size());
    flows.push_back(index);
    ports_[flow.ports[side]].weight += flow.weight;
  }
  flow.rate = 0.0;
  changed_ = true;
}

void Fluid::set_weight(Index index, double weight) {
  Flow& flow = flows_[index];
  if (flow.weight == weight) return;
  if (flow.active()) {
    for (const Index port : flow.ports) ports_[port].weight += weight - flow.weight;
    changed_ = true;
  }
  flow.weight = weight;
}

void Fluid::set_limit(Index index, double bytes_per_second) {
  Flow& flow = flows_[index];
  if (flow.limit == bytes_per_second) return;
  limited_ += (bytes_per_second < unlimited) - (flow.limit < unlimited);
  flow.limit = bytes_per_second;
  if (flow.active()) changed_ = true;
}

void Fluid::stop(Index index, double now) {
  Flow& flow = flows_[index];
  if (!flow.active()) return;
  if (flow.heap_place != none) remove(index);
  for (const int side : {0, 1}) {
    std::vector<Index>& flows = ports_[flow.ports[side]].flows;
    const Index last = flows.back();
    flows[flow.places[side]] = last;
    flows_[last].places[side] = flow.places[side];
    flows.pop_back();
    flow.places[side] = none;
    if (flows.empty()) ports_[flow.ports[side]].since = now;
    // Without flows it is 0, whatever rounding has left.
    double& weight = ports_[flow.ports[side]].weight;
    weight = flows.empty() ? 0.0 : weight - flow.weight;
  }
  changed_ = true;
}

/// Progressive filling: the port with the least for its flows, by weight, gives them that; bytes
/// that they do not take elsewhere are left for others. A flow's limit acts as a port of its own.
void Fluid::share(double now) {
  if (!changed_) return;
  changed_ = false;
  ++sharings_;
  levels_.clear();
  ends_open_ = 0;
  for (Port& port : ports_) {
    port.left = port.capacity;
    port.open = static_cast<Index>(port.flows.size());
    port.open_weight = port.weight;
    ends_open_ += port.open;
    if (port.open > 0)
      levels_.emplace_back(port.level(), static_cast<Index>(&port - ports_.data()));
  }
  const auto ports = static_cast<Index>(ports_.size());
  for (Index index = 0; limited_ > 0 && index < flows_.size(); ++index) {
    const Flow& flow = flows_[index];
    if (flow.active() && flow.limit < unlimited)
      levels_.emplace_back(flow.limit / flow.weight, ports + index);
  }
  std::make_heap(levels_.begin(), levels_.end(), std::greater<>());
  while (ends_open_ > 0) {
    std::pop_heap(levels_.begin(), levels_.end(), std::greater<>());
    const auto [level, index] = levels_.back();
    levels_.pop_back();
    if (index >= ports) {
      fix(index - ports, flows_[index - ports].limit, now);
      continue;
    }
    const Port& port = ports_[index];
    if (port.open == 0) continue;
    const double risen = port.level();
    if (risen > level * (1.0 + same)) {  // Other flows took less than their part.
      levels_.emplace_back(risen, index);
      std::push_heap(levels_.begin(), levels_.end(), std::greater<>());
      continue;
    }
    fill(index, risen, now);
  }
}

void Fluid::fill(Index port, double level, double now) {
  for (const Index index : ports_[port].flows) fix(index, level * flows_[index].weight, now);
}

/// Changes nothing if the flow's rate is found already.
void Fluid::fix(Index index, double rate, double now) {
  Flow& flow = flows_[index];
  if (flow.round == sharings_) return;
  flow.round = sharings_;
  for (const Index side : flow.ports) {
    ports_[side].left -= rate;
    ports_[side].open_weight -= flow.weight;
    --ports_[side].open;
  }
  ends_open_ -= 2;
  if (std::abs(rate - flow.rate) > same * rate) set_rate(index, rate, now);
}

void Fluid::set_rate(Index index, double rate, double now) {
  Flow& flow = flows_[index];
  flow.left = std::max(flow.left - flow.rate * (now - flow.since), 0.0);
  flow.since = now;
  flow.rate = rate;
  flow.end = now + flow.left / rate;
  if (flow.heap_place == none) {
    push(index);
  } else {
    rise(flow.heap_place);
    sink(flow.heap_place);
  }
}

double Fluid::next_end() const {
  return heap_.empty() ? unlimited : flows_[heap_[0]].end;
}

Fluid::Index Fluid::take_ended() {
  const Index index = heap_[0];
  remove(index);
  Flow& flow = flows_[index];
  flow.left = 0.0;
  flow.since = flow.end;
  return index;
}

// ---- A binary heap whose elements know their places.

bool Fluid::before(Index a, Index b) const {
  return flows_[a].end != flows_[b].end ? flows_[a].end < flows_[b].end : a < b;
}

void Fluid::put(Index place, Index flow) {
  heap_[place] = flow;
  flows_[flow].heap_place = place;
}

void Fluid::rise(Index place) {
  const Index flow = heap_[place];
  while (place > 0 && before(flow, heap_[(place - 1) / 2])) {
    put(place, heap_[(place - 1) / 2]);
    place = (place - 1) / 2;
  }
  put(place, flow);
}

void Fluid::sink(Index place) {
  const Index flow = heap_[place];
  const auto size = static_cast<Index>(heap_.size());
  for (Index child = 2 * place + 1; child < size; child = 2 * place + 1) {
    if (child + 1 < size && before(heap_[child + 1], heap_[child])) ++child;
    if (!before(heap_[child], flow)) break;
    put(place, heap_[child]);
    place = child;
  }
  put(place, flow);
}

void Fluid::push(Index flow) {
  heap_.push_back(flow);
  rise(static_cast<Index>(heap_.size() - 1));
}

void Fluid::remove(Index flow) {
  const Index place = flows_[flow].heap_place, last = heap_.back();
  flows_[flow].heap_place = none;
  heap_.pop_back();
  if (last == flow) return;
  put(place, last);
  rise(place);
  sink(flows_[last].heap_place);
}

}  // namespace duplex::tools::simulation
