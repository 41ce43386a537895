#include "tools/simulation/servers.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace duplex::tools::simulation {

Servers::Servers(const Spec& spec, const net::ShardMap& map, EventQueue& event_queue,
                 Processors& processors, Wire& wire, Recorder* recorder, OwnWeights own_weights)
    : spec_(spec),
      map_(map),
      event_queue_(event_queue),
      processors_(processors),
      wire_(wire),
      recorder_(recorder),
      own_weights_(std::move(own_weights)),
      workers_(spec.topology.workers()),
      numbers_(workers_.size()),
      head_start_(net::head_start(map.elements(), spec.overlap)),
      slots_(map.chunks()),
      owned_(static_cast<std::size_t>(spec.topology.size)),
      early_room_(owned_.size(), 0),
      updated_(owned_.size(), 0),
      busy_until_(owned_.size(), 0.0),
      staleness_(static_cast<int>(workers_.size())) {
  std::iota(numbers_.begin(), numbers_.end(), 0);
  for (std::size_t i = 0; i < map.chunks(); ++i) {
    // An owner sends nothing but the first weights of a factored layer.
    if (spec.factors && spec.factors->layer_of(map[i].parameter)) continue;
    owned_[static_cast<std::size_t>(map[i].owner)].push_back(i);
    early_room_[static_cast<std::size_t>(map[i].owner)] += map[i].bytes();
  }
  for (std::size_t& room : early_room_)
    if (room > 0) room = net::early_room(room, spec.early_bytes);
  if (!asynchronous()) {
    contributions_.assign(map.chunks() * workers_.size(), missing);
    tallies_.resize(owned_.size());
    for (std::size_t rank = 0; rank < owned_.size(); ++rank)
      if (recorder_ != nullptr && recorder_->keeps(static_cast<int>(rank)) &&
          !owned_[rank].empty()) {
        std::vector<std::size_t> from(workers_.size(), 0);
        for (const std::size_t chunk : owned_[rank])
          for (const int worker : trainers(chunk)) ++from[static_cast<std::size_t>(worker)];
        tallies_[rank] = std::make_unique<net::StragglerTally>(std::move(from));
      }
    return;
  }
  seen_.assign(map.chunks() * workers_.size(), 0);
  steps_of_.assign(workers_.size(), 0);
  for (const auto& chunks : owned_) {
    answered_.emplace_back(chunks.empty() ? 0 : workers_.size(), 0);
    done_.emplace_back(workers_.size(), false);
    lost_.emplace_back(workers_.size(), false);
  }
  if (spec.topology.mode != net::ServerMode::central) return;
  applied_.assign(map.chunks(), std::vector<net::AppliedSteps>(workers_.size()));
  assigned_.resize(workers_.size());
  pool_.emplace(
      std::vector<net::StepRange>(workers_.size(), {0, net::BatchPool::to_its_end}),
      [this](int worker, const net::StepRange& steps) { return undone(worker, steps); },
      spec.steps);
}

void Servers::publish_initial() {
  for (std::size_t chunk = 0; chunk < slots_.size(); ++chunk) publish_to_all(chunk, 0);
}

void Servers::publish_to_all(std::size_t chunk, std::uint64_t step) {
  const bool last = !asynchronous() && step == spec_.steps;
  const std::vector<int>& all = trainers(chunk);
  // The coordinator ends with the whole network; see ParameterServer::wants().
  const bool coordinates = !std::binary_search(all.begin(), all.end(), 0) && last;
  if (coordinates) publish(chunk, step, 0, true);
  for (const int worker : all) publish(chunk, step, worker, last);
}

void Servers::publish(std::size_t chunk, std::uint64_t step, int worker, bool last) {
  const net::Chunk& what = map_[chunk];
  const int rank = workers_[static_cast<std::size_t>(worker)];
  if (rank != what.owner) {
    wire_.send(net::FrameKind::weights, what.owner, rank, what, step, what.position + head_start_,
               coding_of(what, step, rank, last));
    return;
  }
  if (asynchronous()) read(chunk, worker);
  own_weights_(worker, chunk);
}

/// See ParameterServer::publish().
net::Coding Servers::coding_of(const net::Chunk& chunk, std::uint64_t step, int rank,
                               bool last) const {
  if (!map_.trains(rank, chunk.parameter)) return net::Coding::float32;
  if (spec_.factors && spec_.factors->layer_of(chunk.parameter)) return net::Coding::float32;
  const net::Coding agreed = net::wire_of(spec_.wire, spec_.sync).weights;
  const bool plain = agreed == net::Coding::lossless ? step == 0 : last;
  return plain ? net::Coding::float32 : agreed;
}

/// Between ranks that are both worker and owner nothing waits for room; see
/// net/exchange/parameter_server.cpp.
bool Servers::room(std::size_t chunk, int worker) {
  if (asynchronous()) return true;
  Contribution as = placed;
  if (spec_.topology.mode == net::ServerMode::central && turn_of(chunk) != worker) {
    std::size_t& room = early_room_[static_cast<std::size_t>(map_[chunk].owner)];
    if (room < map_[chunk].bytes()) return false;
    room -= map_[chunk].bytes();
    as = placed_early;
  }
  contribution(chunk, worker) = as;
  if (net::StragglerTally* tally = tallies_[static_cast<std::size_t>(map_[chunk].owner)].get())
    tally->begins(worker, nanoseconds(event_queue_.now()));
  return true;
}

void Servers::received(std::size_t chunk, int worker, std::uint64_t step) {
  if (asynchronous()) {
    slots_[chunk].waiting.push_back({worker, step});
  } else {
    Contribution& its = contribution(chunk, worker);
    its = its == placed_early ? here_early : here;
    if (net::StragglerTally* tally = tallies_[static_cast<std::size_t>(map_[chunk].owner)].get())
      tally->complete(worker, step, nanoseconds(event_queue_.now()));
  }
  advance(chunk);
}

/// An asynchronous owner also copies the new weights, which go on changing, for the worker that
/// they answer.
double Servers::work(std::size_t chunk) const {
  if (spec_.owner_rate <= 0.0) return 0.0;
  return (asynchronous() ? 2.0 : 1.0) * static_cast<double>(map_[chunk].bytes()) / spec_.owner_rate;
}

/// Does all that can be done now.
void Servers::advance(std::size_t chunk) {
  Slot& slot = slots_[chunk];
  while (slot.work == Slot::idle) {
    if (asynchronous()) {
      if (slot.waiting.empty()) return;
      start(chunk, true);
    } else if (slot.turn == trainers(chunk).size()) {
      start(chunk, true);
    } else {
      if (contribution(chunk, turn_of(chunk)) < here) return;
      start(chunk, false);
    }
  }
}

void Servers::start(std::size_t chunk, bool update) {
  Slot& slot = slots_[chunk];
  slot.work = update ? Slot::updating : Slot::adding;
  double takes = !update && slot.turn == 0 ? 0.0 : work(chunk);  // The first one is the sum.
  const std::vector<int>& all = trainers(chunk);
  const bool leaves = std::any_of(all.begin(), all.end(), [&](int worker) {
    return workers_[static_cast<std::size_t>(worker)] != map_[chunk].owner;
  });
  if (update && leaves && net::wire_of(spec_.wire, spec_.sync).weights == net::Coding::lossless)
    takes += static_cast<double>(map_[chunk].bytes()) / spec_.packed.rate;
  double& busy_until = busy_until_[static_cast<std::size_t>(map_[chunk].owner)];
  slot.since = takes > 0.0 ? std::max(event_queue_.now(), busy_until) : event_queue_.now();
  processors_.take(map_[chunk].owner, takes);
  if (takes > 0.0)
    event_queue_.put(busy_until = slot.since + takes, EventQueue::Kind::store,
                     static_cast<std::uint32_t>(chunk));
  else if (update)
    updated(chunk);
  else
    added(chunk);
}

void Servers::worked(std::size_t chunk) {
  if (slots_[chunk].work == Slot::updating)
    updated(chunk);
  else
    added(chunk);
  advance(chunk);
}

void Servers::added(std::size_t chunk) {
  Slot& slot = slots_[chunk];
  slot.work = Slot::idle;
  note(chunk, false, turn_of(chunk), slot.step, slot.since);
  const bool early = contribution(chunk, turn_of(chunk)) == here_early;
  ++slot.turn;
  if (spec_.topology.mode != net::ServerMode::central) return;
  const int owner = map_[chunk].owner;
  if (early) {
    early_room_[static_cast<std::size_t>(owner)] += map_[chunk].bytes();
    wire_.room_made(owner);
  } else if (turn_of(chunk) >= 0) {
    wire_.turn_came(owner, workers_[static_cast<std::size_t>(turn_of(chunk))]);
  }
}

void Servers::updated(std::size_t chunk) {
  Slot& slot = slots_[chunk];
  slot.work = Slot::idle;
  last_update_ = event_queue_.now();
  if (asynchronous()) {
    applied(chunk);
    return;
  }
  note(chunk, true, static_cast<int>(workers_.size()) - 1, slot.step, slot.since);
  for (std::size_t worker = 0; worker < workers_.size(); ++worker)
    contribution(chunk, static_cast<int>(worker)) = missing;
  slot.turn = 0;
  const std::uint64_t step = ++slot.step;
  if (spec_.overlap) {
    publish_to_all(chunk, step);
    return;
  }
  const auto owner = static_cast<std::size_t>(map_[chunk].owner);
  if (++updated_[owner] < owned_[owner].size()) return;
  updated_[owner] = 0;
  for (const std::size_t each : owned_[owner]) publish_to_all(each, step);
}

/// Applies one worker's gradient of a chunk, in an asynchronous run.
void Servers::applied(std::size_t chunk) {
  Slot& slot = slots_[chunk];
  const Gradient gradient = slot.waiting.front();
  slot.waiting.pop_front();
  const auto worker = static_cast<std::size_t>(gradient.worker);
  const Gradient batch = batch_of(gradient);
  // A lost worker may have pushed it before another trained the batch.
  const bool known =
      pool_ && applied_[chunk][static_cast<std::size_t>(batch.worker)].has(batch.step);
  if (!known) {
    if (pool_) applied_[chunk][static_cast<std::size_t>(batch.worker)].add(batch.step);
    const std::uint64_t behind = slot.updates - seen(chunk, gradient.worker);
    ++slot.updates;
    note(chunk, true, gradient.worker, gradient.step, slot.since);
    staleness_.add(batch.worker, batch.step, behind);
  }

  steps_of_[worker] = gradient.step + 1;
  const auto owner = static_cast<std::size_t>(map_[chunk].owner);
  if (spec_.overlap) {
    publish(chunk, gradient.step + 1, gradient.worker);
    return;
  }
  if (++answered_[owner][worker] < owned_[owner].size()) return;
  answered_[owner][worker] = 0;
  for (const std::size_t each : owned_[owner]) publish(each, gradient.step + 1, gradient.worker);
}

void Servers::read(std::size_t chunk, int worker) {
  if (asynchronous()) seen(chunk, worker) = slots_[chunk].updates;
}

/// The batch that an asynchronous worker's gradient belongs to.
Servers::Gradient Servers::batch_of(const Gradient& gradient) const {
  if (!pool_) return gradient;
  const auto& assigned = assigned_[static_cast<std::size_t>(gradient.worker)];
  if (!assigned || gradient.step < assigned->from) return gradient;
  return {assigned->lease.worker, assigned->lease.steps.first + (gradient.step - assigned->from)};
}

std::vector<net::StepRange> Servers::undone(int worker, const net::StepRange& steps) const {
  std::vector<net::AppliedSteps> applied;
  applied.reserve(applied_.size());
  for (const auto& chunk : applied_) applied.push_back(chunk[static_cast<std::size_t>(worker)]);
  return net::missing_of(applied, steps);
}

void Servers::done(int owner, int worker, bool lost) {
  const auto rank = static_cast<std::size_t>(owner), who = static_cast<std::size_t>(worker);
  if (lost) lost_[rank][who] = true;
  if (pool_) {
    if (lost)
      pool_->lose(worker);
    else
      pool_->idle(worker, spec_.steps);
    give_work();
    return;
  }
  if (done_[rank][who]) return;
  done_[rank][who] = true;
  if (std::count(done_[rank].begin(), done_[rank].end(), false) == 0) publish_last(owner);
}

/// See ParameterServer::give_work().
void Servers::give_work() {
  const int server = spec_.topology.server, workers = static_cast<int>(workers_.size());
  for (int worker = 0; worker < workers; ++worker) {
    const auto who = static_cast<std::size_t>(worker);
    const auto lease = pool_->lease(worker);
    if (!lease) continue;
    assigned_[who] = Assigned{steps_of_[who], *lease};
    wire_.lease(server, workers_[who], *lease);
  }
  if (over_ || !pool_->over()) return;
  over_ = true;
  for (int worker = 0; worker < workers; ++worker)
    if (pool_->is_idle(worker)) wire_.lease(server, workers_[static_cast<std::size_t>(worker)], {});
  publish_last(server);
}

void Servers::publish_last(int owner) {
  int own = -1;
  for (std::size_t each = 0; each < workers_.size(); ++each) {
    if (workers_[each] == owner)
      own = static_cast<int>(each);
    else
      publish_last(owner, static_cast<int>(each));
  }
  if (own >= 0) publish_last(owner, own);
}

void Servers::publish_last(int owner, int worker) {
  const auto rank = static_cast<std::size_t>(owner), who = static_cast<std::size_t>(worker);
  if (lost_[rank][who]) return;
  for (const std::size_t chunk : owned_[rank]) publish(chunk, steps_of_[who] + 1, worker, true);
}

std::vector<std::vector<net::StragglerTime>> Servers::stragglers() const {
  std::vector<std::vector<net::StragglerTime>> by_rank;
  for (const auto& tally : tallies_)
    by_rank.push_back(tally ? tally->sums() : std::vector<net::StragglerTime>());
  return by_rank;
}

void Servers::note(std::size_t chunk, bool update, int worker, std::uint64_t step,
                   double from) const {
  const int owner = map_[chunk].owner;
  if (recorder_ == nullptr || !recorder_->traces(owner)) return;
  net::TraceEvent event;
  event.kind = update ? net::TraceEvent::Kind::update : net::TraceEvent::Kind::add;
  if (!update || asynchronous()) event.peer = workers_[static_cast<std::size_t>(worker)];
  event.parameter = map_[chunk].parameter;
  event.chunk = map_[chunk].number;
  event.step = step;
  event.from = nanoseconds(from);
  event.to = nanoseconds(event_queue_.now());
  recorder_->event(owner, event);
}

}  // namespace duplex::tools::simulation
