// One rank's part in training with others. It puts mesh, shard map, parameter server and
// connections together behind core's Exchange.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/exchange.h"
#include "net/connection/peers.h"
#include "net/connection/progress.h"
#include "net/connection/state_outbox.h"
#include "net/exchange/checkpoint_calls.h"
#include "net/exchange/flow_control.h"
#include "net/exchange/incoming_weights.h"
#include "net/exchange/lease_inbox.h"
#include "net/exchange/parameter_server.h"
#include "net/exchange/spec.h"
#include "net/exchange/straggler_notice.h"
#include "net/factors/factor_exchange.h"
#include "net/ledger/ledger.h"
#include "net/ledger/trace.h"
#include "net/maps/map_traffic.h"
#include "net/rendezvous/mesh.h"

namespace duplex::net {

/// The model's fingerprint for the handshake, from names and sizes of the spans in order. A message
/// about a mismatch shows `text`, such as "resnet34, 1000 classes".
Fingerprint fingerprint_of(const std::string& text, const std::vector<Span>& spans);

/// A run from its first weights to its last, seen from one rank.
///
/// A worker calls begin, await, push and end, as core/exchange.h says, for steps 0, 1, ... or from
/// ExchangeSpec::first_step on; then await_last_weights and finish. On every rank, the weights of
/// the first step are those that the owners' spans held when the exchange was made. await may be
/// called again for weights that have come already. A rank that only serves calls finish alone,
/// which returns when every worker has finished.
///
/// With join and split, the weights of step s + 1 are the update (3.2) of those of step s by the
/// mean (3.12) of all workers' gradients, weighted by their samples and summed in rank order.
///
/// With none (asynchronous), a worker gets the owners' newest weights after its gradient of step s.
/// Workers may take different numbers of steps; finish gives all of them the same last weights. If
/// a central server loses a worker, it logs that, and the others go on.
///
/// When something ends the run early (a lost peer, a deadline, a frame that should not be), its
/// first cause is thrown on every rank, as Error with its exit code, from whichever call waits or
/// comes next. Destroying an exchange that has not finished tells the other ranks and ends their
/// run.
class ParameterExchange final : public duplex::Exchange, private ConnectionHandler {
 public:
  /// `spans` have the same names and counts on every rank, in forward order.
  ParameterExchange(const ExchangeSpec& spec, std::vector<Span> spans, Mesh mesh);
  ~ParameterExchange() override;
  ParameterExchange(const ParameterExchange&) = delete;
  ParameterExchange& operator=(const ParameterExchange&) = delete;

  void begin(std::uint64_t step) override;
  void await(std::size_t parameter) override;
  void push(std::size_t parameter) override;
  void end() override;
  void await_all() override {
    for (std::size_t p = 0; p < spans_.size(); ++p)
      if (map_.trains(rank_, p)) await(p);
  }

  /// On a worker of an asynchronous run with a central server, after its last step: waits until it
  /// is given batches of lost workers, which it then trains, step by step, under steps of its own
  /// (next_step); none: there are no more, and the last weights are on their way. Call it again
  /// after them. `total`: the steps of its whole training. Elsewhere there are none.
  std::optional<Lease> next_lease(std::uint64_t total);
  /// The step that begins next.
  std::uint64_t next_step() const { return step_; }

  /// Call it after the last step, and the last lease: waits until a worker's spans hold the last
  /// weights. Whatever finish() throws, the trained weights are here. Does nothing on a rank that
  /// only serves.
  void await_last_weights();

  /// This rank's training goes on, though it pushes nothing: a test, for instance. The others wait
  /// for it as long as it says so once within every time-out. Any thread may call it.
  void progress_made() { progress_.made(); }

  // Checkpoints (docs/decisions/training.md). A worker of a synchronous run calls for one between
  // two steps, when it has trained `steps` of them, for two rounds later at least: no worker can
  // be there before it has heard of the call. In an asynchronous run a central server calls, else
  // the first worker, and every worker takes its part as soon as it can.

  /// Tells all ranks. Throws ProtocolError where too many calls are open.
  void call_checkpoint(const CheckpointCall& call);
  /// The same on a central server of an asynchronous run, which takes its part when all workers
  /// have.
  void call_and_open_checkpoint(const CheckpointCall& call);
  /// Tells all ranks that some rank, this one at first, could not write the checkpoint after so
  /// many steps. All have heard of it when they take the next but one, if it is told when the next
  /// one is taken.
  void tell_unwritten(std::uint64_t steps);
  /// The checkpoints that some rank could not write.
  std::set<std::uint64_t> unwritten() { return calls_.unwritten(); }
  /// Takes the call for a checkpoint after so many steps.
  std::optional<CheckpointCall> called_for(std::uint64_t steps) { return calls_.take(steps); }
  /// Asks the rank that calls for checkpoints, which is another, for one; `signal` as in the call.
  void ask_for_checkpoint(int signal);
  /// On the rank that calls: takes what was asked for.
  std::optional<int> take_asked() { return calls_.take_asked(); }
  /// On the first worker of a central server, after await_all, between two steps: the server takes
  /// its snapshot now (ExchangeSpec::snapshot).
  void order_snapshot(const CheckpointCall& call);
  /// Whether this rank calls for checkpoints.
  bool calls_for_checkpoints() const { return rank_ == caller(); }
  /// On a worker of an asynchronous run: the oldest call that it has taken no part of.
  std::optional<CheckpointCall> open_call() { return calls_.oldest(); }
  /// On a worker of an asynchronous run, after await_all, between two steps: it has taken its part.
  /// Where this rank owns weights and is the last to mark, ExchangeSpec::snapshot is called.
  void mark_checkpoint(const CheckpointCall& call);
  /// On a worker: IncomingWeights::answered_steps.
  std::optional<std::uint64_t> answered_steps() const { return incoming_.answered_steps(); }
  /// On a worker: when the last weights came, on the coordinator's clock.
  std::int64_t last_weights_ns() const { return last_weights_ns_ + time_.offset_ns; }
  /// When the run began, on the coordinator's clock: all ranks know it, and no other run has it.
  std::int64_t epoch_ns() const { return time_.epoch_ns; }
  /// Sends the state of a checkpoint to the rank that keeps a copy of it, while neither weights nor
  /// gradients wait to be sent there. Call await_state_sent() before.
  void send_state(int to, std::uint64_t steps, std::vector<StateValues> arrays) {
    state_.send(*peers_.connection(to), steps, std::move(arrays));
  }
  /// Waits until the state that send_state() was given last has left.
  void await_state_sent();
  /// On a worker: the step that the weights of another owner's chunk are for, which lie in the span
  /// now; none: some are on their way into it, or none have come. When a run has failed, they stay.
  std::optional<std::uint64_t> step_of_weights(std::size_t chunk) const;
  /// The chunks that this rank owns, their steps and states; only an owner has them. Between two
  /// steps of a worker, after await_all, and on a server within ExchangeSpec::snapshot, all chunks
  /// are of one step; when a run has failed, of two at most, over all ranks, so that each rank has
  /// all its chunks of the older one (ExchangeSpec::keeps_before).
  const Store& store() const { return *store_; }
  /// The step that a chunk of this rank is of, and all that there is of it for a step
  /// (Store::step_of, Store::state), also of layers whose gradients are exchanged as factors.
  std::uint64_t step_of(std::size_t chunk) const;
  std::optional<ChunkState> state_of(std::size_t chunk, std::uint64_t step) const;

  /// Where a training has come to its aim: whether the weights of so many steps are the last ones.
  bool ends_at(std::uint64_t step) const { return server_ && server_->ends_at(step); }
  /// Throws if the run has failed; fails it if no other rank has got on within the time-out since
  /// `begin`, in which this one waits for `what` of a rank.
  void check_wait(int rank, const std::string& what, Deadline begin);

  /// Makes the report, any text of at most 256 MiB. It is called when all weights and gradients of
  /// this rank have been sent.
  using Report = std::function<std::string()>;
  /// Waits for the last weights, unless await_last_weights() has, says goodbye to every peer, and
  /// compares the ledger with the kernel's counters. A central server's spans hold the last weights
  /// afterwards. Returns the reports of all ranks, by rank, to the coordinator (its own among
  /// them), and an empty vector to the others.
  std::vector<std::string> finish(const Report& report = {});

  /// The waits, the frames and the store's work of the last steps, on this rank's clock. Call it
  /// from the Report.
  std::vector<TraceEvent> trace();

  /// The staleness of this rank's chunks in an asynchronous run. Call it after finish.
  std::vector<Store::Staleness> staleness() const {
    return server_ ? server_->staleness() : std::vector<Store::Staleness>();
  }
  /// The workers for whom all others waited in a synchronous run, as this owner saw it; empty on a
  /// rank that owns nothing. Call it after finish.
  std::vector<StragglerTime> stragglers() const {
    return server_ ? server_->store().stragglers() : std::vector<StragglerTime>();
  }
  /// Returns whether finish() has come to its end: the run is over, and has not failed.
  bool finished() const { return finished_; }
  /// Ends the run for a reason of this rank's own: its peers are told it, with its exit code. Later
  /// calls throw it. Does nothing where the run has failed already or is over.
  void give_up(const std::exception_ptr& cause) { fail(cause); }

  /// Ranks that an asynchronous run went on without: so far on a central server, which alone knows
  /// them; on a worker of one to the end of the run, after finish.
  std::vector<int> lost() const;
  /// Ranks that were lost and came back, each as often as it did.
  std::vector<int> returned() const { return peers_.returned(); }
  /// On a central server: batches of lost workers that others have trained, [worker][other].
  std::vector<std::vector<std::uint64_t>> trained_by_others() const {
    return server_ ? server_->trained_by_others() : std::vector<std::vector<std::uint64_t>>();
  }

  /// The way of maps, where a network is cut (ExchangeSpec::maps).
  MapExchange& maps() { return maps_.value(); }

  bool is_worker() const { return trains_; }  ///< False on a dedicated server.
  int rank() const { return rank_; }
  const ShardMap& shards() const { return map_; }

  /// Says why a file of the ledger is not whole; "" if all are. Known after finish.
  const std::string& ledger_trouble() const { return ledger_trouble_; }
  /// This is what went over this rank's wire. Complete after finish.
  const Ledger& ledger() const { return ledger_; }
  /// Bytes, t_comm and exposed communication, from the ledger and the waits. Call it after finish.
  TrafficSummary traffic() const { return ledger_.summary(map_.elements() * sizeof(float)); }
  /// The bytes of every connection to a rank that was not lost. Call it after finish.
  const std::vector<ConnectionBytes>& connections() const { return counted_; }

 private:
  /// Time between two looks of a wait at whether something is overdue.
  static constexpr std::chrono::milliseconds look_every{50};

  struct Unstarted {};
  /// Does all but start threads, so that the destructor runs if one cannot be started.
  ParameterExchange(const ExchangeSpec& spec, std::vector<Span> spans, Mesh mesh, Unstarted);
  std::unique_ptr<Connection> connection_to(Link link);
  void start();

  // ConnectionHandler, called by the connections' threads.

  Reservation reserve(int peer, const FrameHeader& header) override;
  void commit(const Reservation& reservation) override;
  void copy_payload(int peer, const Outgoing& frame, float* to) override;
  void sent(const Outgoing& frame) override;
  void notice(int peer, Notice notice) override;
  void end_at(std::uint64_t step);
  void pass_on(const CheckpointCall& call);
  void hear_checkpoint(int peer, std::uint64_t steps, std::uint32_t number);
  void hear_snapshot(int peer, const CheckpointCall& call);
  void hear_goodbye(int peer);
  void hear_report(int peer, std::string report);
  void weights_turn(int peer, SendOrder::TurnRequest what) override;
  std::uint64_t progress() const override { return progress_.count(); }
  Deadline progressed(int peer) const override { return progress_.last(peer); }
  void failed(int peer, std::exception_ptr cause) override;

  bool comes_from_owners(std::size_t parameter) const;
  bool expect_weights(std::size_t parameter);
  void send_last_weights(std::size_t p, std::uint64_t step);
  bool expect_update(std::size_t parameter);
  void push_factors(std::size_t parameter);
  bool is_factored(std::size_t parameter) const {
    return factors_ && factors_->map().layer_of(parameter).has_value();
  }
  void require_factors() const;
  MapTrafficSpec map_spec() const;
  void wait_for_maps(std::uint64_t known);
  FactorStoreSpec factor_spec();
  void expect_initial_state();
  void send_initial_state();
  Reservation reserve_state(int peer, const FrameHeader& header);
  bool takes_leases() const { return is_async() && trains_ && !server_; }
  void hear_lease(const Notice& notice);
  void watch_door();
  void take_back(Link link);
  void close_door();
  void wait_until_over();
  void wait_until_idle();
  void wait_for_goodbyes();
  void lose(int peer, const std::exception_ptr& cause);
  void fail(const std::exception_ptr& cause);
  std::exception_ptr trouble_with(std::size_t parameter, bool late) const;
  /// The longest that a wait may take in which no other rank gets on. Whoever is waited for may
  /// wait for a third rank, and is given the time to report that.
  std::chrono::milliseconds patience() const {
    return spec_.timeout + spec_.timeout / 10 + 10 * look_every;
  }
  bool is_overdue(Deadline begin) const;
  std::exception_ptr overdue(int rank, const std::string& what) const;
  void mind_turns();
  void name_stragglers();
  void name_owner(std::size_t parameter, Clock::duration waited);
  void note(TraceEvent::Kind kind, std::uint64_t step, std::uint32_t parameter, std::uint32_t chunk,
            std::int64_t from, std::int64_t to);
  bool is_async() const { return spec_.sync == Sync::none; }
  /// The rank that calls for checkpoints.
  int caller() const { return is_async() ? topology_.coordinator() : topology_.workers().front(); }

  const ExchangeSpec spec_;
  const std::vector<Span> spans_;
  const Topology topology_;
  const int rank_;
  const bool trains_;
  const ShardMap map_;
  const CoordinatorTime time_;
  Ledger ledger_;
  TraceWindow trace_;
  Progress progress_;
  CheckpointCalls calls_;
  Peers peers_;
  StateOutbox state_;         ///< Uses the connections of peers_.
  IncomingWeights incoming_;  ///< Used by a worker.
  FlowControl flow_;          ///< Used by peers_: the destructor stops all connections first.
  const ExchangeContext context_;
  std::optional<MapTraffic> maps_;  ///< Where a network is cut. Uses peers_.
  std::mutex state_mutex_;          ///< Guards state_due_; receiving threads take it.
  /// The optimiser's first state that is to come: chunk, and the number of the array, from 1.
  std::set<std::pair<std::size_t, std::size_t>> state_due_;
  std::optional<ParameterServer> server_;  ///< Set on an owner.
  Store* store_ = nullptr;                 ///< That of server_.
  /// Where some layers' gradients are factors. Its thread uses server_, and ends before that.
  std::optional<FactorExchange> factors_;
  std::vector<ConnectionBytes> counted_;          ///< Set by finish.
  std::string ledger_trouble_;                    ///< Likewise.
  std::atomic<std::int64_t> last_weights_ns_{0};  ///< By clock_ns().
  LeaseInbox leases_;                             ///< Used by a worker.

  // On a central server of an asynchronous run, where lost workers come back.
  std::unique_ptr<Door> door_;
  std::thread doorkeeper_;
  std::atomic<bool> door_closes_{false};
  mutable std::mutex lost_mutex_;  ///< Guards what follows; no other lock is taken meanwhile.
  std::exception_ptr lost_last_;   ///< Why the last worker that was lost was.
  Deadline lost_since_;            ///< When that was.

  // Used by the training thread, which changes step_ and in_step_ while nothing is being pushed;
  // the pushing thread reads these and uses pushed_ until end().
  std::uint64_t step_;
  bool in_step_ = false, ending_ = false, has_all_leases_ = false, has_last_weights_ = false,
       finished_ = false;
  StragglerNotice stragglers_;         ///< Used by the thread that waits.
  std::vector<std::uint64_t> pushed_;  ///< By parameter: steps whose gradient was pushed.
};

}  // namespace duplex::net
