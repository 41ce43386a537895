// Training with others: one rank's part in exchanging weights and gradients. Puts mesh, shard map,
// parameter server and connections together behind core's Exchange.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/exchange.h"
#include "net/exchange/flow_control.h"
#include "net/exchange/incoming_weights.h"
#include "net/exchange/parameter_server.h"
#include "net/exchange/peers.h"
#include "net/exchange/spec.h"
#include "net/ledger/ledger.h"
#include "net/ledger/trace.h"
#include "net/rendezvous/mesh.h"

namespace duplex::net {

/// The model's fingerprint for the handshake: names and sizes of the spans, in order. `text` is
/// what a message about a mismatch shows, e.g. "resnet34, 1000 classes".
Fingerprint fingerprint_of(const std::string& text, const std::vector<Span>& spans);

/// A run from its first weights to its last, seen from one rank.
///
/// On a worker: begin, await, push, end as core/exchange.h says, for steps 0, 1, ...; then finish.
/// The weights of step 0 are those that the owners' spans held when the exchange was made, on every
/// rank. await may be called again for weights that have come already. On a rank that only serves:
/// finish alone; it returns when every worker has finished.
///
/// Join and split: the weights of step s + 1 are the update (3.2) of those of step s by the mean
/// (3.12) of all workers' gradients, weighted by their samples and summed in rank order.
///
/// None: those that a worker gets after its gradient of step s are the owners' newest. Workers may
/// take different numbers of steps; finish gives all of them the same last weights. A worker that a
/// central server loses stops nobody: that is logged, and the others go on.
///
/// Whatever ends the run early (a lost peer, a deadline, a frame that should not be) is thrown, the
/// first cause of it, as Error with its exit code from whichever call waits or comes next, on every
/// rank. Destroying an exchange that has not finished tells the other ranks and ends their run.
class ParameterExchange final : public duplex::Exchange, private ConnectionOwner {
 public:
  /// `spans`: the same names and counts on every rank, in forward order.
  ParameterExchange(const ExchangeSpec& spec, std::vector<Span> spans, Mesh mesh);
  ~ParameterExchange() override;
  ParameterExchange(const ParameterExchange&) = delete;
  ParameterExchange& operator=(const ParameterExchange&) = delete;

  void begin(std::uint64_t step) override;
  void await(std::size_t parameter) override;
  void push(std::size_t parameter) override;
  void end() override;
  void await_all() override;

  /// Any text, of 256 MiB at most; asked for when all weights and gradients of this rank are
  /// through.
  using Report = std::function<std::string()>;
  /// Waits for the last weights (a worker's spans hold them afterwards; so do a central server's),
  /// says goodbye to every peer, and compares the ledger with the kernel's counters. The
  /// coordinator gets the reports of all ranks, by rank (its own among them), the others an empty
  /// vector.
  std::vector<std::string> finish(const Report& report = {});

  /// The waits, frames and store's work of the last steps, by this rank's clock. From a report.
  std::vector<TraceEvent> trace();

  /// Of an asynchronous run, of this rank's chunks. After finish.
  std::vector<Store::Staleness> staleness() const;
  std::vector<int> lost() const {
    return peers_.all_lost();
  }  ///< Ranks that an asynchronous run went on without.

  bool is_worker() const { return topology_.is_worker(rank_); }  ///< False on a dedicated server.
  int rank() const { return rank_; }
  const ShardMap& shards() const { return map_; }

  /// What went over this rank's wire. Complete after finish.
  const Ledger& ledger() const { return ledger_; }
  /// Bytes, t_comm, exposed communication: ledger and waiting together. After finish.
  TrafficSummary traffic() const;
  /// Of every connection to a rank that was not lost. After finish.
  const std::vector<ConnectionBytes>& connections() const { return counted_; }

 private:
  struct Unstarted {};
  /// Does all but start threads: the destructor runs if one cannot be had.
  ParameterExchange(const ExchangeSpec& spec, std::vector<Span> spans, Mesh mesh, Unstarted);
  void connect(Link link);
  void start();

  // ConnectionOwner: what the connections' threads call.

  Reservation reserve(int peer, const FrameHeader& header) override;
  void commit(const Reservation& reservation) override;
  void copy_payload(int peer, const Outgoing& frame, float* to) override;
  void sent(const Outgoing& frame) override;
  void notice(int peer, Notice notice) override;
  void weights_turn(int peer, SendOrder::Tell what) override;
  void failed(int peer, std::exception_ptr cause) override;

  void await_last_weights();
  void wait_until_idle();
  void wait_for_goodbyes();
  void lose(int peer, const std::exception_ptr& cause);
  void fail(const std::exception_ptr& cause);
  std::exception_ptr trouble_with(std::size_t parameter, bool overdue,
                                  std::chrono::milliseconds allowed) const;
  void note(TraceEvent::Kind kind, std::uint32_t parameter, std::uint32_t chunk, std::int64_t from,
            std::int64_t to);
  bool is_async() const { return spec_.sync == Sync::none; }

  const ExchangeSpec spec_;
  const std::vector<Span> spans_;
  const Topology topology_;
  const int rank_;
  const ShardMap map_;
  Ledger ledger_;
  TraceWindow trace_;
  Peers peers_;
  IncomingWeights incoming_;  ///< Of a worker.
  FlowControl flow_;
  const ExchangeContext context_;
  std::optional<ParameterServer> server_;  ///< Of an owner.
  std::vector<ConnectionBytes> counted_;   ///< After finish.

  // The training thread's. `pushed_` is the pushing thread's until end().
  std::uint64_t step_ = 0;
  bool in_step_ = false, finished_ = false;
  std::vector<std::uint64_t> pushed_;  ///< By parameter: steps whose gradient was pushed.
};

}  // namespace duplex::net
