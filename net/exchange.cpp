#include "net/exchange.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <queue>
#include <set>
#include <thread>
#include <utility>

#include "net/connection.h"

namespace duplex::net {
namespace {

/// How often a wait looks whether something is overdue.
constexpr std::chrono::milliseconds look_every{50};
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

ShardMap map_of(const ExchangeSpec& spec, const std::vector<Span>& spans,
                const Topology& topology) {
  if (topology.mode == ServerMode::central)
    return ShardMap::central(counts_of(spans), topology.server, spec.chunk_bytes);
  return ShardMap::distributed(counts_of(spans), topology.size, spec.shards, spec.chunk_bytes);
}

}  // namespace

Fingerprint fingerprint_of(const std::string& text, const std::vector<Span>& spans) {
  std::string table;
  for (const Span& span : spans) table += span.name + '\0' + std::to_string(span.count) + '\n';
  return {text, sha256(table)};
}

class ParameterExchange::State final : public ConnectionOwner {
 public:
  State(const ExchangeSpec& spec, std::vector<Span> spans, Mesh mesh)
      : spec_(spec),
        spans_(std::move(spans)),
        topology_(mesh.topology()),
        rank_(mesh.rank()),
        map_(map_of(spec_, spans_, topology_)),
        workers_(topology_.workers()),
        ledger_(rank_, mesh.hub_time(), spec_.ledger_path),
        incoming_(map_.chunks()),
        remaining_(spans_.size()),
        pushed_(spans_.size(), 0) {
    if (workers_.empty()) throw Error("a run without a worker: give it a rank more", Exit::usage);
    for (const Span& span : spans_)
      if (span.weights == nullptr || (is_worker() && span.gradient == nullptr))
        throw Error("parameter " + span.name + " has no memory");
    for (std::size_t p = 0; p < spans_.size(); ++p)
      remaining_[p] = map_.first(p + 1) - map_.first(p);
    if (topology_.is_owner(rank_)) make_store();
    connections_.resize(static_cast<std::size_t>(topology_.size));
    parted_.resize(connections_.size(), false);
    lost_.resize(connections_.size(), false);
    reports_.resize(connections_.size());
    for (Link& link : mesh.links()) {
      const int peer = link.rank;
      connections_[index(peer)] =
          std::make_unique<Connection>(std::move(link), *this, ledger_, spec_.timeout);
      if (!spec_.overlap) connections_[index(peer)]->gradients_first();
    }
  }

  /// Apart from the constructor, so that the destructor runs if a thread cannot be had.
  void start() {
    if (store_) store_->publish_initial();
    if (store_ && is_worker()) own_lane_ = std::thread([this] { give_loop(); });
    for (auto& connection : connections_)
      if (connection) connection->start();
  }

  ~State() override {
    if (!finished_) {
      fail(std::make_exception_ptr(
          Error(name_of_rank(rank_) + " stopped before the end of the run", Exit::peer_lost)));
      const Deadline deadline = Clock::now() + last_words;
      for (auto& connection : connections_)
        if (connection) connection->wait_until_over(deadline);
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
      own_changed_.notify_all();
    }
    if (own_lane_.joinable()) own_lane_.join();
    // All stop before the first goes: a thread of one may still hand a frame to another.
    for (auto& connection : connections_)
      if (connection) connection->stop();
    if (finished_) return;
    try {
      ledger_.close();  // What there is of it may tell what went wrong.
    } catch (const Error&) {
    }
  }

  // What the training thread calls.

  void begin(std::uint64_t step) {
    if (!is_worker() || step != step_ || in_step_)
      throw Error("step " + std::to_string(step) + " begins where step " + std::to_string(step_) +
                  (in_step_ ? " has not ended" : " is due"));
    in_step_ = true;
  }

  void await(std::size_t p) {
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
      ledger_.waited({from, now_ns()});
    }
    if (failure_) std::rethrow_exception(failure_);
  }

  void push(std::size_t p) {
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
        if (map_[chunk].owner == rank_) own_gradients_.push({p, chunk, step_});
      }
      own_changed_.notify_one();
    }
    for (std::size_t i = map_.first(p); i < map_.first(p + 1); ++i) {
      const Chunk& chunk = map_[i];
      if (chunk.owner != rank_)
        connections_[index(chunk.owner)]->send(FrameKind::gradient, chunk.parameter, chunk.number,
                                               step_, spans_[p].gradient + chunk.offset,
                                               chunk.bytes());
    }
  }

  void end() {
    for (std::size_t p = 0; p < spans_.size(); ++p)
      if (pushed_[p] != step_ + 1)
        throw Error("step " + std::to_string(step_) + " ends without the gradient of " +
                    spans_[p].name);
    ++step_;
    in_step_ = false;
    ledger_.settle();
  }

  std::vector<std::string> finish(const std::string& report) {
    if (is_worker()) {
      await_all();
      if (is_async()) await_last_weights();
    } else {
      wait_for_goodbyes();
      if (is_async()) take_own_weights();
    }
    for (auto& connection : connections_)
      if (connection && !is_lost(connection->peer()))
        connection->part(connection->peer() == topology_.hub() ? report : std::string());
    wait_for_goodbyes();
    const Deadline deadline = Clock::now() + spec_.timeout;
    for (auto& connection : connections_) {
      if (!connection || is_lost(connection->peer())) continue;
      if (!connection->wait_until_sent(deadline))
        throw Error(connection->peer_name() + " does not take this rank's goodbye",
                    Exit::timed_out);
      connection->check_counters(deadline);
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (failure_) std::rethrow_exception(failure_);
      finished_ = true;
    }
    ledger_.close();
    if (rank_ != topology_.hub()) return {};
    reports_[index(rank_)] = report;
    return reports_;
  }

  bool is_worker() const { return topology_.is_worker(rank_); }
  int rank() const { return rank_; }
  const ShardMap& shards() const { return map_; }
  const Ledger& ledger() const { return ledger_; }
  std::vector<Store::Staleness> staleness() const {
    return store_ ? store_->staleness() : std::vector<Store::Staleness>();
  }
  std::vector<int> lost() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < lost_.size(); ++rank)
      if (lost_[rank]) ranks.push_back(static_cast<int>(rank));
    return ranks;
  }

  // What the connections' threads call.

  void* destination(int peer, const FrameHeader& header) override {
    const std::size_t chunk = map_.find(header.parameter, header.chunk);
    const std::string what = name_of(header.kind) + " of parameter " +
                             std::to_string(header.parameter) + ", chunk " +
                             std::to_string(header.chunk) + ", step " + std::to_string(header.step);
    if (chunk == map_.chunks()) throw ProtocolError(what + ": there is no such chunk");
    if (header.length != map_[chunk].bytes())
      throw ProtocolError(what + ": " + std::to_string(header.length) + " bytes where " +
                          std::to_string(map_[chunk].bytes()) + " are due");
    if (header.kind == FrameKind::gradient) return destination_of_gradient(peer, chunk, header);

    if (!is_worker() || map_[chunk].owner != peer)
      throw ProtocolError(what + ": it does not own the chunk");
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_) return nullptr;
    Incoming& incoming = incoming_[chunk];
    if (incoming.state != Incoming::due || incoming.step != header.step)
      throw ProtocolError(what + ": not due");
    incoming.state = Incoming::arriving;
    return spans_[header.parameter].weights + map_[chunk].offset;
  }

  void fill(int peer, const FrameHeader& header, void* payload) override {
    store_->read(map_.find(header.parameter, header.chunk), worker_number(peer),
                 static_cast<float*>(payload));
  }

  void received(int peer, const FrameHeader& header) override {
    const std::size_t chunk = map_.find(header.parameter, header.chunk);
    if (header.kind == FrameKind::gradient)
      store_->arrived(chunk, worker_number(peer));
    else
      weights_are_here(chunk);
  }

  void sent(int, const FrameHeader& header) override {
    if (header.kind == FrameKind::gradient)
      one_less(header.parameter);
    else
      store_->sent(map_.find(header.parameter, header.chunk));
  }

  void reported(int peer, std::string report) override {
    if (rank_ != topology_.hub())
      throw ProtocolError(name_of_rank(peer) + " sent its report to the wrong rank");
    const std::lock_guard<std::mutex> lock(mutex_);
    reports_[index(peer)] = std::move(report);
  }

  void done(int peer) override {
    if (!is_async() || !store_ || !topology_.is_worker(peer))
      throw ProtocolError(name_of_rank(peer) + " ended its training out of turn");
    store_->done(worker_number(peer), false);
  }

  void parted(int peer) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    parted_[index(peer)] = true;
    changed_.notify_all();
  }

  void failed(int peer, std::exception_ptr cause) override {
    if (is_async() && !is_worker())
      lose(peer, cause);
    else
      fail(cause);
  }

 private:
  /// Weights of a chunk on their way to a worker.
  struct Incoming {
    std::uint64_t step = 0;
    enum State { due, arriving, here } state = due;
  };
  /// A gradient on its way from this rank's worker to this rank's store.
  struct OwnGradient {
    std::size_t parameter, chunk;
    std::uint64_t step;
    bool operator<(const OwnGradient& other) const {  // The queue's top is its greatest.
      return std::make_pair(step, chunk) > std::make_pair(other.step, other.chunk);
    }
  };

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  bool is_async() const { return spec_.sync == Sync::none; }

  void await_all() {
    for (std::size_t p = 0; p < spans_.size(); ++p) await(p);
  }

  /// Asynchronous: tells the owners that this worker pushes no more, and waits for what they send
  /// when that is so of every worker.
  void await_last_weights() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (std::size_t chunk = 0; chunk < incoming_.size(); ++chunk) {
        incoming_[chunk] = {step_ + 1, Incoming::due};
        ++remaining_[map_[chunk].parameter];
      }
    }
    for (auto& connection : connections_)
      if (connection && topology_.is_owner(connection->peer())) connection->done();
    if (store_) store_->done(worker_number(rank_), false);
    await_all();
  }

  /// Asynchronous: a server's store has weights of its own.
  void take_own_weights() {
    for (std::size_t chunk = 0; chunk < map_.chunks(); ++chunk)
      store_->read(chunk, 0, spans_[map_[chunk].parameter].weights + map_[chunk].offset);
  }

  /// A worker of an asynchronous central server is lost: the others go on, if there are any.
  void lose(int peer, const std::exception_ptr& cause) {
    std::string why;
    try {
      std::rethrow_exception(cause);
    } catch (const std::exception& error) {
      why = error.what();
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (finished_ || lost_[index(peer)]) return;
      lost_[index(peer)] = true;
      parted_[index(peer)] = true;
      changed_.notify_all();
    }
    if (lost().size() == workers_.size()) {
      fail(cause);
      return;
    }
    if (spec_.log) spec_.log("going on without " + name_of_rank(peer) + ": " + why);
    connections_[index(peer)]->drop();
    store_->done(worker_number(peer), true);
  }

  void make_store() {
    StoreSpec store;
    store.sync = spec_.sync;
    store.workers = static_cast<int>(workers_.size());
    store.own = is_worker() ? worker_number(rank_) : -1;
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
    store.early_bytes = is_worker() ? owned * workers_.size() : owned;
    store_ = net::make_store(map_, rank_, store, weights_of(spans_),
                             [this](std::size_t chunk, std::uint64_t step, int worker) {
                               publish(chunk, step, worker);
                             });
  }

  int worker_number(int rank) const {
    const auto at = std::lower_bound(workers_.begin(), workers_.end(), rank);
    return static_cast<int>(at - workers_.begin());
  }

  std::string name_of_rank(int rank) const {
    if (rank != rank_ && connections_[index(rank)]) return connections_[index(rank)]->peer_name();
    return "rank " + std::to_string(rank);
  }

  void* destination_of_gradient(int peer, std::size_t chunk, const FrameHeader& header) {
    if (!store_ || !topology_.is_worker(peer)) throw ProtocolError("it is no worker of this rank");
    float* place =
        store_->place(chunk, worker_number(peer), header.step, Clock::now() + spec_.timeout);
    if (place != nullptr) return place;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (failure_) return nullptr;
    }
    if (const auto overdue = store_->overdue(std::chrono::seconds(0))) throw error_of(*overdue);
    throw Error("no room for more gradients for too long", Exit::timed_out);
  }

  /// The store's: new weights go to the other workers that they are for, and count as arrived here.
  void publish(std::size_t chunk_index, std::uint64_t step, int worker) {
    if (worker != Store::every_worker) {
      const int to = workers_[index(worker)];
      if (to == rank_)
        take(chunk_index);
      else if (!is_lost(to))
        send_weights(to, map_[chunk_index], step, nullptr);
      return;
    }
    const bool here = is_worker();
    store_->sending(chunk_index, static_cast<int>(workers_.size()) - (here ? 1 : 0));
    for (const int to : workers_)
      if (to != rank_) send_weights(to, map_[chunk_index], step, store_->published(chunk_index));
    if (here) weights_are_here(chunk_index);
  }

  void send_weights(int to, const Chunk& chunk, std::uint64_t step, const float* values) {
    connections_[index(to)]->send(FrameKind::weights, chunk.parameter, chunk.number, step, values,
                                  chunk.bytes());
  }

  /// This rank's worker is given this rank's weights as they are; the store's go on changing.
  void take(std::size_t chunk) {
    store_->read(chunk, worker_number(rank_),
                 spans_[map_[chunk].parameter].weights + map_[chunk].offset);
    weights_are_here(chunk);
  }

  bool is_lost(int rank) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return lost_[index(rank)];
  }

  void weights_are_here(std::size_t chunk) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      incoming_[chunk].state = Incoming::here;
    }
    one_less(map_[chunk].parameter);
  }

  void one_less(std::size_t parameter) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--remaining_[parameter] == 0) changed_.notify_all();
  }

  /// Carries this rank's own gradients to its store, so that adding and updating do not hold up the
  /// training thread.
  void give_loop() {
    const int worker = worker_number(rank_);
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      own_changed_.wait(lock, [this] { return stop_ || failure_ || !own_gradients_.empty(); });
      if (stop_ || failure_) return;
      const OwnGradient next = own_gradients_.top();
      own_gradients_.pop();
      lock.unlock();
      store_->give(next.chunk, worker, next.step,
                   spans_[next.parameter].gradient + map_[next.chunk].offset);
      lock.lock();
    }
  }

  /// The first cause counts: it is what every call throws from then on, and what the peers are
  /// told.
  void fail(const std::exception_ptr& cause) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (failure_ || finished_) return;
      failure_ = cause;
      changed_.notify_all();
      own_changed_.notify_all();
    }
    if (store_) store_->stop();
    AbortReason reason;
    try {
      std::rethrow_exception(cause);
    } catch (const Error& error) {
      reason = {error.what(), error.code};
    } catch (const std::exception& error) {
      reason = {error.what(), Exit::failed};
    }
    for (auto& connection : connections_)
      if (connection) connection->abort(reason);
  }

  Error error_of(const Store::Overdue& overdue) const {
    std::string ranks;
    for (const int worker : overdue.missing)
      ranks += (ranks.empty() ? "" : ", ") + name_of_rank(workers_[index(worker)]);
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.1f s", overdue.seconds);
    return Error(ranks + ": no gradient of " + spans_[map_[overdue.chunk].parameter].name +
                     " for step " + std::to_string(overdue.step) + " within " + seconds,
                 Exit::timed_out);
  }

  Error left_early(int rank) const {
    return Error(name_of_rank(rank) +
                 " ended its training while this rank goes on: give every "
                 "rank as many batches");
  }

  /// What this rank's store waits for in vain, if anything. Lets the lock go meanwhile.
  std::exception_ptr trouble_of_waiting(std::unique_lock<std::mutex>& lock) {
    if (!store_) return nullptr;
    lock.unlock();
    const auto open = store_->overdue(std::chrono::seconds(0));
    const auto overdue = store_->overdue(spec_.timeout);
    lock.lock();
    if (overdue) return std::make_exception_ptr(error_of(*overdue));
    if (!open) return nullptr;
    for (const int worker : open->missing)
      if (parted_[index(workers_[index(worker)])])
        return std::make_exception_ptr(left_early(workers_[index(worker)]));
    return nullptr;
  }

  /// What the weights of p wait for in vain. Under the mutex.
  std::exception_ptr trouble_with(std::size_t p, bool overdue,
                                  std::chrono::milliseconds allowed) const {
    for (std::size_t chunk = map_.first(p); chunk < map_.first(p + 1); ++chunk) {
      const int owner = map_[chunk].owner;
      if (owner == rank_ || incoming_[chunk].state == Incoming::here) continue;
      if (parted_[index(owner)]) return std::make_exception_ptr(left_early(owner));
      if (overdue)
        return std::make_exception_ptr(NetworkError(
            "await", name_of_rank(owner),
            "waiting for weights of " + spans_[p].name + " for step " +
                std::to_string(incoming_[chunk].step),
            "deadline passed", std::chrono::duration<double>(allowed).count(), Exit::timed_out));
    }
    if (overdue)
      return std::make_exception_ptr(Error("rank " + std::to_string(rank_) +
                                               " waited in vain for its own share of " +
                                               spans_[p].name,
                                           Exit::timed_out));
    return nullptr;
  }

  /// Every peer shows signs of life until its goodbye, or its connection fails: this ends.
  void wait_for_goodbyes() {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto all = [this] {
      for (std::size_t rank = 0; rank < connections_.size(); ++rank)
        if (connections_[rank] && !parted_[rank]) return false;
      return true;
    };
    while (!failure_ && !all()) {
      if (changed_.wait_for(lock, look_every) == std::cv_status::no_timeout) continue;
      std::exception_ptr trouble = trouble_of_waiting(lock);
      if (!trouble) {
        if (!is_worker()) ledger_.settle();
        continue;
      }
      lock.unlock();
      fail(trouble);
      lock.lock();
    }
    if (failure_) std::rethrow_exception(failure_);
  }

  const ExchangeSpec spec_;
  const std::vector<Span> spans_;
  const Topology topology_;
  const int rank_;
  const ShardMap map_;
  const std::vector<int> workers_;  ///< Ranks that train.
  Ledger ledger_;
  std::unique_ptr<Store> store_;

  std::uint64_t step_ = 0;  ///< The training thread's, like in_step_.
  bool in_step_ = false;
  bool finished_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_, own_changed_;
  std::vector<Incoming> incoming_;      ///< By chunk.
  std::vector<std::size_t> remaining_;  ///< By parameter: what await still waits for.
  std::vector<std::uint64_t> pushed_;   ///< By parameter: steps whose gradient was pushed.
  std::priority_queue<OwnGradient> own_gradients_;
  std::vector<bool> parted_;          ///< By rank: said goodbye, or lost.
  std::vector<bool> lost_;            ///< By rank.
  std::vector<std::string> reports_;  ///< By rank.
  std::exception_ptr failure_;
  bool stop_ = false;

  std::thread own_lane_;
  std::vector<std::unique_ptr<Connection>> connections_;  ///< By rank; the first to be destroyed.
};

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
std::vector<Store::Staleness> ParameterExchange::staleness() const {
  return state_->staleness();
}
std::vector<int> ParameterExchange::lost() const {
  return state_->lost();
}
std::vector<std::string> ParameterExchange::finish(const std::string& report) {
  return state_->finish(report);
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
TrafficSummary ParameterExchange::traffic() const {
  return state_->ledger().summary(state_->shards().elements() * sizeof(float));
}

}  // namespace duplex::net
