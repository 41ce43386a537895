#include "tools/simulation/wire.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace duplex::tools::simulation {
namespace {

using net::FrameKind;

net::Deadline deadline(double seconds) {
  return net::Deadline(std::chrono::nanoseconds(nanoseconds(seconds)));
}

double seconds_of(net::Deadline deadline) {
  return std::chrono::duration<double>(deadline.time_since_epoch()).count();
}

/// Changes of what waits in a queue by a smaller part make no difference worth telling.
constexpr double noticed = 0.01;

/// How many times as much is sent to an owner as it sends, where several send: so much do gradients
/// meet in the switch's port to it. At a dedicated server they do, and where a distributed one
/// holds more than its share.
double crowd_of(const net::Topology& topology, const net::ShardMap& map, int owner) {
  const bool works = topology.is_worker(owner);
  const auto senders = static_cast<double>(topology.workers().size()) - (works ? 1.0 : 0.0);
  const auto owned = static_cast<double>(map.elements_of(owner));
  const double goes = works ? static_cast<double>(map.elements()) - owned : 0.0;
  if (senders <= 1.0 || owned <= 0.0) return 0.0;
  return goes > 0.0 ? owned * senders / goes : std::numeric_limits<double>::infinity();
}

bool is_data(FrameKind kind) {
  return kind == FrameKind::weights || kind == FrameKind::gradient;
}

double bytes_of(const net::FrameHeader& header) {
  return is_data(header.kind) ? static_cast<double>(net::header_bytes + header.length) : 0.0;
}

}  // namespace

Wire::Turns::Turns(Wire& wire, int owner)
    : gradients(
          [&wire, owner](int worker) {
            const Index lane = wire.at(owner, worker);
            wire.lanes_[lane].order.urgent(
                net::Outgoing::of(FrameKind::grant, nanoseconds(wire.agenda_.now())));
            wire.wake(lane);
          },
          [](int) {}),
      weights(
          [&wire, owner](int worker) {
            const Index lane = wire.at(owner, worker);
            wire.lanes_[lane].order.grant_weights();
            wire.wake(lane);
          },
          [&wire, owner](int worker) {
            const Index lane = wire.at(owner, worker);
            wire.lanes_[lane].order.want_weights_turn();
            wire.wake(lane);
          }) {}

Wire::Wire(const Spec& spec, const net::ShardMap& map, Agenda& agenda, Recorder* recorder,
           Ends ends)
    : spec_(spec),
      ranks_(spec.topology.size),
      agenda_(agenda),
      recorder_(recorder),
      ends_(std::move(ends)),
      limits_(spec.topology.mode == net::ServerMode::central && spec.queue > 0.0) {
  const auto size = static_cast<std::size_t>(ranks_);
  lane_at_.assign(size * size, none);
  blocked_.resize(size);
  turns_.resize(size);
  std::vector<std::size_t> owned(size, 0), receiving(size, 0);
  for (std::size_t i = 0; i < map.chunks(); ++i) ++owned[static_cast<std::size_t>(map[i].owner)];
  std::vector<Index> out, in;
  for (std::size_t rank = 0; rank < size; ++rank) {
    out.push_back(fluid_.add_port(spec.rates[rank]));
    in.push_back(fluid_.add_port(spec.rates[rank]));
    if (owned[rank] > 0) turns_[rank] = std::make_unique<Turns>(*this, static_cast<int>(rank));
  }
  // Between ranks of which neither owns anything, nothing moves.
  for (std::size_t a = 0; a < size; ++a) {
    for (std::size_t b = 0; b < size; ++b) {
      if (a == b || (owned[a] == 0 && owned[b] == 0)) continue;
      lane_at_[a * size + b] = fluid_.add_flow(out[a], in[b]);
      Lane lane;
      lane.from = static_cast<int>(a);
      lane.to = static_cast<int>(b);
      if (spec.semaphore) lane.order.take_turns(owned[b] > 0, owned[a], spec.linger);
      ++receiving[b];
      lanes_.push_back(std::move(lane));
    }
  }
  std::vector<double> crowds;
  for (int rank = 0; rank < ranks_; ++rank) crowds.push_back(crowd_of(spec.topology, map, rank));
  meeting_.resize(size);
  for (Index index = 0; spec.queue > 0.0 && index < lanes_.size(); ++index) {
    const auto to = static_cast<std::size_t>(lanes_[index].to);
    shares_.emplace_back(spec, lanes_[index].to, receiving[to], crowds[to], index);
    // Connections that are alike begin alike.
    if (shares_.back().meets() && spec.unfairness > 0.0) meeting_[to].push_back(index);
  }
}

void Wire::send(FrameKind kind, int from, int to, const net::Chunk& chunk, std::uint64_t step,
                std::uint64_t place) {
  const Index index = at(from, to);
  Lane& lane = lanes_[index];
  if (lane.state == Lane::gone) return;
  net::Outgoing frame = net::Outgoing::of(kind, chunk, step, place);
  frame.queued = nanoseconds(agenda_.now());
  tell(lane, lane.order.data(std::move(frame)));
  wake(index);
}

void Wire::done(int from, int to) {
  const Index index = at(from, to);
  lanes_[index].order.last(net::Outgoing::of(FrameKind::done, nanoseconds(agenda_.now())));
  wake(index);
}

void Wire::room_made(int owner) {
  std::vector<Index> waiting;
  waiting.swap(blocked_[static_cast<std::size_t>(owner)]);
  for (const Index index : waiting)
    if (lanes_[index].state == Lane::blocked) begin(index);
}

void Wire::lose(int rank) {
  for (Index index = 0; index < lanes_.size(); ++index) {
    Lane& lane = lanes_[index];
    if (lane.from != rank && lane.to != rank) continue;
    lane.state = Lane::gone;
    lane.order = net::SendOrder();
    fluid_.stop(index);
    if (limits_) count(index);
  }
  for (const auto& turn : turns_) {
    if (!turn) continue;
    turn->gradients.leave(rank);
    turn->weights.leave(rank);
  }
}

double Wire::next() const {
  const double arrival =
      under_way_.empty() ? std::numeric_limits<double>::infinity() : under_way_.front().at;
  return std::min(arrival, fluid_.next_end());
}

void Wire::step() {
  if (!under_way_.empty() && under_way_.front().at <= fluid_.next_end()) {
    const Delivery delivery = under_way_.front();
    under_way_.pop_front();
    const Lane& lane = lanes_[delivery.lane];
    if (lane.state != Lane::gone) arrive(lane, delivery.header, delivery.first);
    return;
  }
  const Index lane = fluid_.take_ended();
  leave(lane);
  pump(lane);
}

void Wire::arrive(const Lane& lane, const net::FrameHeader& header, double first) {
  record(lane, header, false, nanoseconds(first), first);
  switch (header.kind) {
    case FrameKind::ask:
      turns(lane.to).gradients.ask(lane.from);
      break;
    case FrameKind::release:
      turns(lane.to).gradients.leave(lane.from);
      break;
    case FrameKind::grant:
      lanes_[at(lane.to, lane.from)].order.grant_gradients();
      wake(at(lane.to, lane.from));
      break;
    default:
      ends_.arrived(lane.from, lane.to, header);
  }
}

void Wire::look(std::uint32_t index) {
  wake(index);
}

void Wire::wake(Index index) {
  Lane& lane = lanes_[index];
  if (lane.woken) return;
  lane.woken = true;
  woken_.push_back(index);
}

void Wire::settle() {
  while (!woken_.empty()) {
    std::vector<Index> now;
    now.swap(woken_);
    for (const Index index : now) {
      lanes_[index].woken = false;
      const Lane::State state = lanes_[index].state;
      if (state == Lane::behind && agenda_.now() >= lanes_[index].begun) start(index);
      if (state == Lane::idle || state == Lane::sending) pump(index);
    }
  }
  if (limits_) limit();
}

/// Acknowledgements of what a dedicated server sends wait behind gradients in the switch's port to
/// it, those of gradients behind the weights in its own queue; what a connection may have in flight
/// meanwhile is no more than its window.
void Wire::count(Index index) {
  Lane& lane = lanes_[index];
  Waiting& waiting = lane.to == spec_.topology.server ? gradients_ : weights_;
  const double before = lane.waits;
  lane.waits = lane.state != Lane::sending ? 0.0
               : &waiting == &weights_     ? Share::host_bytes
                                           : shares_[index].waiting();
  waiting.lanes += (lane.waits > 0.0) - (before > 0.0);
  waiting.bytes = waiting.lanes > 0 ? waiting.bytes + lane.waits - before : 0.0;
  fluid_.set_limit(index, shares_[index].limit(opposite(lane).seconds));
}

/// Of all lanes that send, where what waits has changed.
void Wire::limit() {
  const double rate = spec_.rates[static_cast<std::size_t>(spec_.topology.server)];
  for (Waiting* waiting : {&gradients_, &weights_}) {
    // Gradients of one that sends alone wait in its own host.
    const bool none = waiting == &gradients_ && waiting->lanes < 2;
    const double seconds = none ? 0.0 : waiting->bytes / rate;
    if (std::abs(seconds - waiting->seconds) <= noticed * waiting->seconds) continue;
    waiting->seconds = seconds;
    for (Index index = 0; index < lanes_.size(); ++index) {
      const Lane& lane = lanes_[index];
      if (lane.state == Lane::sending && &opposite(lane) == waiting)
        fluid_.set_limit(index, shares_[index].limit(seconds));
    }
  }
}

void Wire::tell(const Lane& lane, net::SendOrder::Tell what) {
  using Tell = net::SendOrder::Tell;
  if (what == Tell::nothing) return;
  net::QueuedSemaphore& weights = turns(lane.from).weights;
  if (what == Tell::want)
    weights.ask(lane.to);
  else if (what == Tell::leave)
    weights.leave(lane.to);
  else
    weights.step_aside(lane.to, what == Tell::step_aside_waiting);
}

bool Wire::has_room(Index index) const {
  const Lane& lane = lanes_[index];
  return lane.handed.empty() || (!shares_.empty() && lane.handed_bytes < shares_[index].ahead());
}

/// What SendQueue and Connection do between two frames.
void Wire::pump(Index index) {
  Lane& lane = lanes_[index];
  while (has_room(index)) {
    for (;;) {
      const net::SendOrder::Tell what = lane.order.mind(deadline(agenda_.now()));
      if (what == net::SendOrder::Tell::nothing) break;
      tell(lane, what);
    }
    net::Outgoing frame;
    if (!lane.order.take(frame)) break;
    hand_over(index, std::move(frame));
  }
  if (lane.handed.empty()) {
    fluid_.stop(index);
    if (limits_) count(index);
    if (Share* share = share_of(index)) {
      share->pauses();
      let_through(lane.to);
    }
  }
  if (const auto again = lane.order.look_again()) {
    const double at = seconds_of(*again + std::chrono::nanoseconds(1));
    if (at > agenda_.now() && at != lane.look_at)
      agenda_.put(lane.look_at = at, Agenda::Kind::lane, index);
  }
}

void Wire::hand_over(Index index, net::Outgoing frame) {
  Lane& lane = lanes_[index];
  if (frame.header.kind == FrameKind::weights) ends_.read(lane.from, lane.to, frame.header);
  lane.handed_bytes += bytes_of(frame.header);
  lane.handed.push_back(std::move(frame));
  if (lane.handed.size() == 1) begin(index);
}

/// Of the first frame that was handed over.
void Wire::begin(Index index) {
  Lane& lane = lanes_[index];
  const net::FrameHeader& header = lane.handed.front().header;
  if (!is_data(header.kind)) {  // A header alone: it takes no time worth telling.
    lane.begun = agenda_.now();
    leave(index);
    return;
  }
  if (header.kind == FrameKind::gradient && !ends_.room(lane.from, lane.to, header)) {
    if (lane.state != Lane::blocked && spec_.semaphore) turns(lane.to).gradients.leave(lane.from);
    lane.state = Lane::blocked;
    blocked_[static_cast<std::size_t>(lane.to)].push_back(index);
    fluid_.stop(index);
    if (limits_) count(index);
    return;
  }
  const double waits = behind(index);
  if (waits <= 0.0) {
    start(index);
    return;
  }
  lane.state = Lane::behind;
  lane.begun = agenda_.now() + waits;
  agenda_.put(lane.begun, Agenda::Kind::lane, index);
}

/// Seconds that a frame waits in a port behind what others have there by now: each fills its window
/// as fast as its own link lets it. One whose connection had no pause is among them already.
double Wire::behind(Index index) const {
  if (shares_.empty() || shares_[index].sends()) return 0.0;
  const auto to = static_cast<std::size_t>(lanes_[index].to);
  double bytes = 0.0;
  int others = 0;
  for (const Index each : meeting_[to]) {
    const Lane& other = lanes_[each];
    if (other.state != Lane::sending) continue;
    ++others;
    const double rate = spec_.rates[static_cast<std::size_t>(other.from)];
    bytes += std::min(other.handed_bytes, shares_[each].filled(agenda_.now(), rate));
  }
  return others > 0 ? bytes * (1.0 - 1.0 / (others + 1)) / spec_.rates[to] : 0.0;
}

/// Who waits in a port behind others, when these are through.
void Wire::let_through(int to) {
  const std::vector<Index>& lanes = meeting_[static_cast<std::size_t>(to)];
  for (const Index index : lanes)
    if (lanes_[index].state == Lane::sending) return;
  for (const Index index : lanes) {
    if (lanes_[index].state != Lane::behind) continue;
    lanes_[index].begun = agenda_.now();
    wake(index);
  }
}

void Wire::start(Index index) {
  Lane& lane = lanes_[index];
  const net::FrameHeader& header = lane.handed.front().header;
  if (Share* share = share_of(index)) {
    share->begins(agenda_.now());
    fluid_.set_weight(index, share->weight());
  }
  lane.state = Lane::sending;
  lane.begun = agenda_.now();
  if (limits_) count(index);
  ++frames_;
  fluid_.carry(index, bytes_of(header), agenda_.now());
}

/// The first frame is through; the next begins.
void Wire::leave(Index index) {
  Lane& lane = lanes_[index];
  const net::Outgoing frame = std::move(lane.handed.front());
  lane.handed.erase(lane.handed.begin());
  lane.handed_bytes -= bytes_of(frame.header);
  if (Share* share = share_of(index)) share->sent(bytes_of(frame.header), fluid_.is_limited(index));
  const double first = lane.begun + spec_.latency;
  record(lane, frame.header, true, frame.queued, lane.begun);
  if (spec_.latency > 0.0)
    under_way_.push_back({agenda_.now() + spec_.latency, first, index, frame.header});
  else
    arrive(lane, frame.header, first);
  lane.state = Lane::idle;
  if (!lane.handed.empty()) begin(index);
}

void Wire::record(const Lane& lane, const net::FrameHeader& header, bool sent, std::int64_t queued,
                  double first) const {
  const int rank = sent ? lane.from : lane.to;
  if (recorder_ == nullptr || !recorder_->keeps(rank)) return;
  net::FrameRecord record;
  record.step = header.step;
  record.parameter = header.parameter;
  record.chunk = header.chunk;
  record.kind = header.kind;
  record.sent = sent;
  record.peer = sent ? lane.to : lane.from;
  record.bytes = net::header_bytes + header.length;
  record.queued = queued;
  record.first = nanoseconds(first);
  record.last = nanoseconds(agenda_.now());
  recorder_->frame(rank, record);
}

}  // namespace duplex::tools::simulation
