#include "tools/simulation/wire.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace duplex::tools::simulation {
namespace {

using net::FrameKind;

Deadline deadline(double seconds) {
  return Deadline(std::chrono::nanoseconds(nanoseconds(seconds)));
}

double seconds_of(Deadline deadline) {
  return std::chrono::duration<double>(deadline.time_since_epoch()).count();
}

}  // namespace

/// Bytes that take time on a link.
double Wire::bytes_of(const net::FrameHeader& header) const {
  if (!is_data(header.kind)) return 0.0;
  return static_cast<double>(net::frame_bytes(spec_.protection(), header.length));
}

Wire::Turns::Turns(Wire& wire, int owner)
    : gradients(
          [&wire, owner](int worker) {
            const Index lane = wire.at(owner, worker);
            wire.lanes_[lane].order.urgent(
                net::Outgoing::of(FrameKind::grant, nanoseconds(wire.event_queue_.now())));
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

Wire::Wire(const Spec& spec, const net::ShardMap& map, EventQueue& event_queue,
           Processors& processors, Recorder* recorder, Ends ends)
    : spec_(spec),
      map_(map),
      ranks_(spec.topology.size),
      event_queue_(event_queue),
      processors_(processors),
      recorder_(recorder),
      ends_(std::move(ends)) {
  const auto size = static_cast<std::size_t>(ranks_);
  lane_at_.assign(size * size, none);
  blocked_.resize(size);
  turns_.resize(size);
  std::vector<std::size_t> owned(size, 0);
  for (std::size_t i = 0; i < map.chunks(); ++i) ++owned[static_cast<std::size_t>(map[i].owner)];
  std::vector<Index> out, in;
  for (std::size_t rank = 0; rank < size; ++rank) {
    out.push_back(fluid_.add_port(spec.rates[rank], spec.burst));
    in.push_back(fluid_.add_port(spec.rates[rank], spec.burst));
    if (owned[rank] > 0) turns_[rank] = std::make_unique<Turns>(*this, static_cast<int>(rank));
  }
  // Two ranks that own nothing have no connection to each other, unless maps cross it.
  for (std::size_t a = 0; a < size; ++a) {
    for (std::size_t b = 0; b < size; ++b) {
      if (a == b || (!spec.cut && owned[a] == 0 && owned[b] == 0)) continue;
      lane_at_[a * size + b] = fluid_.add_flow(out[a], in[b]);
      Lane lane;
      lane.from = static_cast<int>(a);
      lane.to = static_cast<int>(b);
      if (spec.semaphore) lane.order.take_turns(owned[b] > 0, owned[a], spec.linger);
      lanes_.push_back(std::move(lane));
    }
  }
  std::vector<Queues::Ends> ends_of_lanes;
  for (const Lane& lane : lanes_) ends_of_lanes.push_back({lane.from, lane.to});
  queues_ = std::make_unique<Queues>(spec, map, ends_of_lanes, fluid_);
}

void Wire::send(FrameKind kind, int from, int to, const net::Chunk& chunk, std::uint64_t step,
                std::uint64_t priority, net::Coding coding) {
  const Index index = at(from, to);
  Lane& lane = lanes_[index];
  if (lane.state == Lane::gone) return;
  net::Outgoing frame = net::Outgoing::of(kind, chunk, step, priority, coding);
  frame.header.length = net::expected_bytes(
      coding, kind == FrameKind::weights ? net::Values::weights : net::Values::gradient,
      chunk.count, spec_.packed);
  frame.queued = nanoseconds(event_queue_.now());
  tell(lane, lane.order.data(std::move(frame)));
  wake(index);
}

void Wire::done(int from, int to) {
  const Index index = at(from, to);
  net::Outgoing frame = net::Outgoing::of(FrameKind::done, nanoseconds(event_queue_.now()));
  frame.header.step = spec_.steps;
  lanes_[index].order.last(std::move(frame));
  wake(index);
}

void Wire::lease(int from, int to, const net::Lease& lease) {
  const Index index = at(from, to);
  if (lanes_[index].state == Lane::gone) return;
  net::Outgoing frame = net::Outgoing::of(FrameKind::lease, nanoseconds(event_queue_.now()));
  frame.header.step = lease.steps.first;
  frame.header.parameter = static_cast<std::uint32_t>(lease.worker);
  frame.header.chunk = static_cast<std::uint32_t>(lease.steps.count());
  lanes_[index].order.urgent(std::move(frame));
  wake(index);
}

void Wire::room_made(int owner) {
  std::vector<Index>& waiting = blocked_[static_cast<std::size_t>(owner)];
  std::size_t left = 0;
  for (const Index index : waiting)  // The longest waiting one goes first.
    if (!resume(index)) waiting[left++] = index;
  waiting.resize(left);
}

void Wire::turn_came(int owner, int worker) {
  const Index index = at(worker, owner);
  if (lanes_[index].state != Lane::blocked || !resume(index)) return;
  std::vector<Index>& waiting = blocked_[static_cast<std::size_t>(owner)];
  waiting.erase(std::find(waiting.begin(), waiting.end(), index));
}

/// Returns whether a connection that waits for room need wait no more.
bool Wire::resume(Index index) {
  const Lane& lane = lanes_[index];
  if (lane.state == Lane::gone) return true;
  if (!ends_.room(lane.from, lane.to, lane.handed.front().header)) return false;
  enter(index);
  return true;
}

void Wire::lose(int rank) {
  for (Index index = 0; index < lanes_.size(); ++index) {
    Lane& lane = lanes_[index];
    if (lane.from != rank && lane.to != rank) continue;
    lane.state = Lane::gone;
    lane.order = net::SendOrder();
    fluid_.stop(index, event_queue_.now());
    queues_->hold(index);
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

/// Returns the bytes that the values of a frame from that rank have in float32, as maps always are.
std::size_t Wire::plain_bytes(int from, const net::FrameHeader& header) const {
  if (net::is_map(header.kind)) return header.length;
  if (header.kind != FrameKind::factors) return map_.find(header.parameter, header.chunk)->bytes();
  const net::FactorMap& factors = *spec_.factors;
  return factors
      .pieces(*factors.layer_of(header.parameter), spec_.topology.worker_number(from))[header.chunk]
      .bytes();
}

/// Returns the processor seconds that it takes to pack or unpack the values of a frame.
double Wire::packing(int from, const net::FrameHeader& header) const {
  if (header.coding != net::Coding::lossless) return 0.0;
  return static_cast<double>(plain_bytes(from, header)) / spec_.packed.rate;
}

void Wire::arrive(const Lane& lane, const net::FrameHeader& header, double first) {
  processors_.received(lane.to, bytes_of(header));
  processors_.take(lane.to, packing(lane.from, header));
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
      ends_.received(lane.from, lane.to, header);
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

void Wire::flush() {
  while (!woken_.empty()) {
    std::vector<Index> now;
    now.swap(woken_);
    for (const Index index : now) {
      lanes_[index].woken = false;
      const Lane::State state = lanes_[index].state;
      if (state == Lane::behind && event_queue_.now() >= lanes_[index].begun) start(index);
      if (state == Lane::idle || state == Lane::sending) pump(index);
    }
  }
  queues_->limit();
}

void Wire::tell(const Lane& lane, net::SendOrder::TurnRequest what) {
  using TurnRequest = net::SendOrder::TurnRequest;
  if (what == TurnRequest::nothing) return;
  net::QueuedSemaphore& weights = turns(lane.from).weights;
  if (what == TurnRequest::want)
    weights.ask(lane.to);
  else if (what == TurnRequest::leave)
    weights.leave(lane.to);
  else
    weights.step_aside(lane.to, what == TurnRequest::step_aside_waiting);
}

/// Does what SendQueue and Connection do between two frames.
void Wire::pump(Index index) {
  Lane& lane = lanes_[index];
  while (lane.handed.empty() || queues_->has_room(index)) {
    for (;;) {
      const net::SendOrder::TurnRequest what =
          lane.order.update_turns(deadline(event_queue_.now()));
      if (what == net::SendOrder::TurnRequest::nothing) break;
      tell(lane, what);
    }
    net::Outgoing frame;
    if (!lane.order.take(frame)) break;
    hand_over(index, std::move(frame));
  }
  if (lane.handed.empty()) pause(index);
  if (const auto again = lane.order.look_again()) {
    const double at = seconds_of(*again + std::chrono::nanoseconds(1));
    if (at > event_queue_.now() && at != lane.look_at)
      event_queue_.put(lane.look_at = at, EventQueue::Kind::lane, index);
  }
}

/// The connection has nothing to send. Those that waited behind others in its port go when these
/// are through.
void Wire::pause(Index index) {
  fluid_.stop(index, event_queue_.now());
  queues_->pause(index);
  for (const Index each : queues_->let_through(lanes_[index].to)) {
    if (lanes_[each].state != Lane::behind) continue;
    lanes_[each].begun = event_queue_.now();
    wake(each);
  }
}

void Wire::hand_over(Index index, net::Outgoing frame) {
  Lane& lane = lanes_[index];
  if (frame.header.kind == FrameKind::weights) ends_.read(lane.from, lane.to, frame.header);
  queues_->hand_over(index, bytes_of(frame.header));
  lane.handed.push_back(std::move(frame));
  if (lane.handed.size() == 1) begin(index);
}

/// Begins the first frame that was handed over.
void Wire::begin(Index index) {
  Lane& lane = lanes_[index];
  const net::FrameHeader& header = lane.handed.front().header;
  if (!is_data(header.kind)) {  // A header alone takes no time worth telling.
    lane.begun = event_queue_.now();
    leave(index);
    return;
  }
  if (header.kind == FrameKind::gradient && !ends_.room(lane.from, lane.to, header)) {
    lane.state = Lane::blocked;
    blocked_[static_cast<std::size_t>(lane.to)].push_back(index);
    if (spec_.semaphore) turns(lane.to).gradients.leave(lane.from);
    fluid_.stop(index, event_queue_.now());
    queues_->hold(index);
    return;
  }
  enter(index);
}

void Wire::enter(Index index) {
  Lane& lane = lanes_[index];
  const double waits = queues_->behind(index, event_queue_.now());
  if (waits <= 0.0) {
    start(index);
    return;
  }
  lane.state = Lane::behind;
  lane.begun = event_queue_.now() + waits;
  event_queue_.put(lane.begun, EventQueue::Kind::lane, index);
}

void Wire::start(Index index) {
  Lane& lane = lanes_[index];
  const net::FrameHeader& header = lane.handed.front().header;
  queues_->begin(index, event_queue_.now());
  lane.state = Lane::sending;
  lane.begun = event_queue_.now();
  ++frames_;
  fluid_.carry(index, bytes_of(header), event_queue_.now());
}

/// The first frame has left; the next begins.
void Wire::leave(Index index) {
  Lane& lane = lanes_[index];
  const net::Outgoing frame = std::move(lane.handed.front());
  lane.handed.erase(lane.handed.begin());
  queues_->sent(index, bytes_of(frame.header));
  processors_.sent(lane.from, bytes_of(frame.header));
  if (frame.header.kind != FrameKind::weights)  // Owners pack weights once, when they update.
    processors_.take(lane.from, packing(lane.from, frame.header));
  const double first = lane.begun + spec_.latency;
  record(lane, frame.header, true, frame.queued, lane.begun);
  if (spec_.latency > 0.0)
    under_way_.push_back({event_queue_.now() + spec_.latency, first, index, frame.header});
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
  record.bytes = net::frame_bytes(spec_.protection(), header.length);
  if (is_data(header.kind))
    record.saved = static_cast<std::int64_t>(plain_bytes(lane.from, header)) -
                   static_cast<std::int64_t>(header.length);
  record.queued = queued;
  record.first = nanoseconds(first);
  record.last = nanoseconds(event_queue_.now());
  recorder_->frame(rank, record);
}

}  // namespace duplex::tools::simulation
