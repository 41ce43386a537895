#include "net/exchange.h"

#include <algorithm>
#include <utility>

#include "net/exchange_state.h"

namespace duplex::net {
namespace {

/// What a failing rank gives its last words to get through.
constexpr std::chrono::milliseconds last_words{1000};

std::vector<std::size_t> counts_of(const std::vector<Span>& spans) {
  std::vector<std::size_t> counts;
  counts.reserve(spans.size());
  for (const Span& span : spans) counts.push_back(span.count);
  return counts;
}

std::vector<float*> weights_of(const std::vector<Span>& spans) {
  std::vector<float*> weights;
  weights.reserve(spans.size());
  for (const Span& span : spans) weights.push_back(span.weights);
  return weights;
}

}  // namespace

Fingerprint fingerprint_of(const std::string& text, const std::vector<Span>& spans) {
  std::string table;
  for (const Span& span : spans) table += span.name + '\0' + std::to_string(span.count) + '\n';
  return {text, sha256(table)};
}

ParameterExchange::State::State(const ExchangeSpec& spec, std::vector<Span> spans, Mesh mesh)
    : spec_(spec),
      spans_(std::move(spans)),
      topology_(mesh.topology()),
      rank_(mesh.rank()),
      map_(topology_.shard_map(counts_of(spans_), spec_.shards, spec_.chunk_bytes)),
      head_start_(head_start(map_.elements(), spec_.overlap)),
      workers_(topology_.workers()),
      ledger_(rank_, mesh.hub_time(), spec_.ledger_path),
      window_(spec_.trace_steps),
      receive_window_(window_of(topology_.peers_of(rank_).size(), !is_worker(), spec_.semaphore)),
      incoming_(map_.chunks()),
      remaining_(spans_.size()),
      pushed_(spans_.size(), 0),
      gradients_turn_([this](int rank) { connections_[index(rank)]->grant(); }, [](int) {}),
      weights_turn_([this](int rank) { connections_[index(rank)]->grant_weights(); },
                    [this](int rank) { connections_[index(rank)]->want_weights_turn(); }) {
  if (workers_.empty()) throw Error("a run without a worker: give it a rank more", Exit::usage);
  for (const Span& span : spans_)
    if (span.weights == nullptr || (is_worker() && span.gradient == nullptr))
      throw Error("parameter " + span.name + " has no memory");
  for (std::size_t p = 0; p < spans_.size(); ++p) remaining_[p] = map_.first(p + 1) - map_.first(p);
  if (topology_.is_owner(rank_)) make_store();
  connections_.resize(static_cast<std::size_t>(topology_.size));
  parted_.resize(connections_.size(), false);
  lost_.resize(connections_.size(), false);
  reports_.resize(connections_.size());
  for (Link& link : mesh.links()) connect(std::move(link));
}

void ParameterExchange::State::connect(Link link) {
  const int peer = link.rank;
  auto& connection = connections_[index(peer)];
  connection = std::make_unique<Connection>(std::move(link), *this, ledger_, spec_.timeout);
  connection->keep_to(receive_window_);
  if (spec_.semaphore) connection->take_turns(topology_.is_owner(peer), map_.chunks_of(rank_));
}

void ParameterExchange::State::start() {
  if (store_) store_->publish_initial();
  if (store_ && is_worker())
    own_lane_ = std::make_unique<OwnLane>(*store_, topology_.worker_number(rank_));
  if (receive_window_.narrowed()) window_changed();
  for (auto& connection : connections_)
    if (connection) connection->start();
}

ParameterExchange::State::~State() {
  if (!finished_) {
    fail(std::make_exception_ptr(
        Error(name_of_rank(rank_) + " stopped before the end of the run", Exit::peer_lost)));
    const Deadline deadline = Clock::now() + last_words;
    for (auto& connection : connections_)
      if (connection) connection->wait_until_over(deadline);
  }
  if (own_lane_) own_lane_->stop();
  // All stop before the first goes: a thread of one may still hand a frame to another.
  for (auto& connection : connections_)
    if (connection) connection->stop();
  if (finished_) return;
  try {
    ledger_.close();  // What there is of it may tell what went wrong.
  } catch (const Error&) {
  }
}

void ParameterExchange::State::make_store() {
  StoreSpec store;
  store.sync = spec_.sync;
  store.workers = static_cast<int>(workers_.size());
  store.own = topology_.worker_number(rank_);
  store.samples = spec_.samples;
  store.average = spec_.average;
  store.publish_together = !spec_.overlap;
  store.optimiser = spec_.optimiser;
  store.rate = spec_.rate;
  // A central server bounds what it keeps, whatever the number of workers: a connection from a
  // worker carries gradients alone, so that one may wait for its turn while the others go on.
  // Between ranks that are both worker and owner it may not: new weights that this rank's worker
  // needs before it can give its own gradient could be behind the one that waits for it. There
  // the bound is what the workers can send in a step, less than one copy of the model's
  // gradients.
  const std::size_t owned = map_.elements_of(rank_) * sizeof(float);
  store.early_bytes = is_worker() ? owned * workers_.size() : early_room(owned, spec_.early_bytes);
  if (spec_.semaphore) store.on_wait = [this](int worker) { released(workers_[index(worker)]); };
  if (spec_.trace_steps > 0) store.on_work = [this](const StoreWork& work) { note(work); };
  store_ = net::make_store(
      map_, rank_, store, weights_of(spans_),
      [this](std::size_t chunk, std::uint64_t step, int worker) { publish(chunk, step, worker); });
}

void ParameterExchange::State::begin(std::uint64_t step) {
  if (!is_worker() || step != step_ || in_step_)
    throw Error("step " + std::to_string(step) + " begins where step " + std::to_string(step_) +
                (in_step_ ? " has not ended" : " is due"));
  in_step_ = true;
}

void ParameterExchange::State::await(std::size_t p) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (remaining_[p] > 0 && !failure_) {
    const std::int64_t from = now_ns();
    // The owner of what is missing knows whose gradient it lacks, and is given the time to say
    // so.
    const auto allowed = spec_.timeout + spec_.timeout / 10 + 10 * look_every;
    const Deadline deadline = Clock::now() + allowed;
    while (!failure_ && remaining_[p] > 0) {
      if (changed_.wait_for(lock, look_every) == std::cv_status::no_timeout) continue;
      std::exception_ptr trouble = trouble_of_waiting(lock);
      if (!trouble && remaining_[p] > 0)
        trouble = trouble_with(p, Clock::now() >= deadline, allowed);
      if (!trouble) continue;
      lock.unlock();
      fail(trouble);
      lock.lock();
    }
    const std::int64_t to = now_ns();
    ledger_.waited({from, to});
    if (spec_.trace_steps > 0)
      note(TraceEvent::Kind::wait, static_cast<std::uint32_t>(p), 0, from, to);
  }
  if (failure_) std::rethrow_exception(failure_);
}

void ParameterExchange::State::push(std::size_t p) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    if (!in_step_ || remaining_[p] > 0 || pushed_[p] != step_)
      throw Error("gradient of " + spans_[p].name + " in step " + std::to_string(step_) +
                  " out of turn");
    pushed_[p] = step_ + 1;
    for (std::size_t chunk = map_.first(p); chunk < map_.first(p + 1); ++chunk) {
      // Awaited from now on: that the gradient has left, and that the new weights have come.
      remaining_[p] += map_[chunk].owner == rank_ ? 1 : 2;
      incoming_[chunk] = {step_ + 1, Incoming::due};
    }
  }
  const std::int64_t now = now_ns();
  for (std::size_t i = map_.first(p); i < map_.first(p + 1); ++i) {
    const Chunk& chunk = map_[i];
    const float* gradient = spans_[p].gradient + chunk.offset;
    if (chunk.owner == rank_) {
      if (spec_.trace_steps > 0)
        note(TraceEvent::Kind::pushed, chunk.parameter, chunk.number, now, now);
      own_lane_->put(i, step_, gradient);
      continue;
    }
    connections_[index(chunk.owner)]->send(FrameKind::gradient, chunk, step_, gradient,
                                           chunk.position);
  }
}

/// Of the step that the training thread is in.
void ParameterExchange::State::note(TraceEvent::Kind kind, std::uint32_t parameter,
                                    std::uint32_t chunk, std::int64_t from, std::int64_t to) {
  TraceEvent event;
  event.kind = kind;
  event.parameter = parameter;
  event.chunk = chunk;
  event.step = step_;
  event.from = from;
  event.to = to;
  window_.add(event);
}

void ParameterExchange::State::end() {
  for (std::size_t p = 0; p < spans_.size(); ++p)
    if (pushed_[p] != step_ + 1)
      throw Error("step " + std::to_string(step_) + " ends without the gradient of " +
                  spans_[p].name);
  ++step_;
  in_step_ = false;
  ledger_.settle();
  find_pace();
}

std::vector<TraceEvent> ParameterExchange::State::trace() {
  std::vector<TraceEvent> events = window_.events();
  ledger_.settle(true);
  const std::vector<TraceEvent> frames = trace_of(ledger_.records(), spec_.trace_steps);
  events.insert(events.end(), frames.begin(), frames.end());
  return events;
}

std::vector<Store::Staleness> ParameterExchange::State::staleness() const {
  return store_ ? store_->staleness() : std::vector<Store::Staleness>();
}

std::vector<int> ParameterExchange::State::lost() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < lost_.size(); ++rank)
    if (lost_[rank]) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

ParameterExchange::ParameterExchange(const ExchangeSpec& spec, std::vector<Span> spans, Mesh mesh)
    : state_(std::make_unique<State>(spec, std::move(spans), std::move(mesh))) {
  state_->start();
}
ParameterExchange::~ParameterExchange() = default;

void ParameterExchange::begin(std::uint64_t step) {
  state_->begin(step);
}
void ParameterExchange::await(std::size_t parameter) {
  state_->await(parameter);
}
void ParameterExchange::push(std::size_t parameter) {
  state_->push(parameter);
}
void ParameterExchange::end() {
  state_->end();
}
void ParameterExchange::await_all() {
  state_->await_all();
}
std::vector<Store::Staleness> ParameterExchange::staleness() const {
  return state_->staleness();
}
std::vector<int> ParameterExchange::lost() const {
  return state_->lost();
}
std::vector<std::string> ParameterExchange::finish(const Report& report) {
  return state_->finish(report);
}
std::vector<TraceEvent> ParameterExchange::trace() {
  return state_->trace();
}
bool ParameterExchange::is_worker() const {
  return state_->is_worker();
}
int ParameterExchange::rank() const {
  return state_->rank();
}
const ShardMap& ParameterExchange::shards() const {
  return state_->shards();
}
const Ledger& ParameterExchange::ledger() const {
  return state_->ledger();
}
const std::vector<ConnectionBytes>& ParameterExchange::connections() const {
  return state_->counted();
}
TrafficSummary ParameterExchange::traffic() const {
  return state_->ledger().summary(state_->shards().elements() * sizeof(float));
}

}  // namespace duplex::net
