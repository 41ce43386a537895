// Training with others: one rank's part in exchanging weights and gradients. Puts together mesh,
// shard map, store and connections behind core's Exchange.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/exchange.h"
#include "core/optimiser.h"
#include "net/connection_bytes.h"
#include "net/incast.h"
#include "net/ledger.h"
#include "net/mesh.h"
#include "net/shard_map.h"
#include "net/store.h"
#include "net/trace.h"

namespace duplex::net {

/// A parameter of the network: a named run of plain float32s in host memory. It must outlive the
/// exchange and is written by it. What other ranks get is sent from where it lies, without a copy:
/// memory of its own pages (core/mapped_memory.h) makes sure that what is still on its way when a
/// run fails stays as it was.
struct Span {
  std::string name;
  std::size_t count = 0;
  float* weights = nullptr;
  float* gradient = nullptr;  ///< A rank that only serves needs none.
};

struct ExchangeSpec {
  Sync sync = Sync::join;
  /// By worker, in rank order: what its gradient counts in the mean; empty: all the same.
  std::vector<std::int64_t> samples;
  /// What is pushed are weights, and the new weights are their mean; the optimiser is not used.
  bool average = false;
  /// Off: an owner publishes its new weights together, when it has them all.
  bool overlap = true;
  /// An owner lets one worker at a time send its gradients, and sends weights to one at a time,
  /// each in the order in which they ask (thesis, 7.2).
  bool semaphore = false;
  /// Steps at the end of the run that trace() tells of; 0: none, and nothing is recorded for it.
  std::uint64_t trace_steps = 0;
  Shards shards = Shards::even;
  std::optional<std::size_t> chunk_bytes;  ///< None: ShardMap's default.
  /// What a dedicated server keeps of gradients that came before their turn to be added, if one of
  /// each is not more.
  std::size_t early_bytes = usual_early_bytes;
  OptimiserSpec optimiser;
  LearningRate rate;
  /// For every wait: for weights, for a gradient, for a frame to get through, for a sign of life.
  std::chrono::milliseconds timeout{60000};
  std::string ledger_path;                      ///< Where the ledger's CSV goes; empty: nowhere.
  std::function<void(const std::string&)> log;  ///< A line for the user; may be empty.
};

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
class ParameterExchange final : public duplex::Exchange {
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
  /// says goodbye to every peer, and compares the ledger with the kernel's counters. The hub gets
  /// the reports of all ranks, by rank (its own among them), the others an empty vector.
  std::vector<std::string> finish(const Report& report = {});

  /// The waits, frames and store's work of the last steps, by this rank's clock. From a report.
  std::vector<TraceEvent> trace();

  /// Of an asynchronous run, of this rank's chunks. After finish.
  std::vector<Store::Staleness> staleness() const;
  std::vector<int> lost() const;  ///< Ranks that an asynchronous run went on without.

  bool is_worker() const;  ///< False on a dedicated central server.
  int rank() const;
  const ShardMap& shards() const;

  /// What went over this rank's wire. Complete after finish.
  const Ledger& ledger() const;
  /// Bytes, t_comm, exposed communication: ledger and waiting together. After finish.
  TrafficSummary traffic() const;
  /// Of every connection to a rank that was not lost. After finish.
  const std::vector<ConnectionBytes>& connections() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace duplex::net
