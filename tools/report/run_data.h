// Reads all that a run has left in its directory, as far as it came.
#pragma once
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "models/registry.h"
#include "net/connection/connection_bytes.h"
#include "net/ledger/ledger.h"
#include "net/store/store.h"
#include "net/topology/shard_map.h"
#include "tools/plan/parallel.h"
#include "tools/report/ledgers.h"
#include "tools/report/step_traffic.h"
#include "tools/report/trace_data.h"
#include "tools/run_directory/evaluation_file.h"
#include "tools/run_directory/rows.h"
#include "tools/run_directory/run_config.h"
#include "tools/run_directory/run_summary.h"
#include "tools/run_directory/time_to_accuracy.h"

namespace duplex::tools::reports {

/// rank-RANK.json.
struct RankSummary {
  net::TrafficSummary traffic;
  double pace = 0.0;        ///< Steps a second; 0 for a server.
  std::uint64_t steps = 0;  ///< Steps that it has trained.
  std::vector<net::ConnectionBytes> connections;
  std::optional<net::FramesKept> frames;  ///< None: an old run's, which kept all.
  std::optional<std::vector<StragglerSummary>> stragglers;
  std::vector<int> lost;  ///< Ranks that the run went on without, as far as this one knows.
};

/// t_comm, and the rank that measured it.
struct RankComm {
  int rank = 0;
  double seconds = 0.0;
};

struct RunData {
  std::string directory, name;
  std::string command, network, title, input, device, settings, data;
  std::optional<double> link_rate;    ///< Bytes a second of --link-rate; none: no limit.
  std::optional<int> threads, cores;  ///< That computed on a rank, of its machine's.
  /// Seconds; see RunSummary.
  std::optional<double> gradients_down, weights_up, sample_processor;
  std::vector<std::string> machines;  ///< The addresses of all ranks, or the one machine's name.
  int classes = 0, ranks = 1, workers = 1;
  std::int64_t height = 0;  ///< Pixels of the input.
  std::int64_t batch = 0;
  net::ServerMode server = net::ServerMode::distributed;
  net::Sync sync = net::Sync::join;
  bool parallel = false, replayed = false, simulated = false;
  std::uint64_t average = 0;  ///< Batches between averagings; 0: gradients are sent.
  /// Returns the word for a step of the exchange, which ledgers and traces tell of: a batch of
  /// every worker, or an averaging.
  std::string exchange_step() const { return average > 0 ? "averaging" : "step"; }
  std::string per_exchange_step() const { return average > 0 ? "an averaging" : "a step"; }
  /// How the network is cut over the ranks, as ParallelSpec has these.
  std::string strategy, stages;
  std::uint64_t micro_batches = 1;
  std::string network_file;  ///< Its text; empty: the network is compiled.
  bool auxiliary = false, padded = false, overlap = true, semaphore = false;
  net::WireFormat wire;
  Factors factors = Factors::off;
  net::Shards shards = net::Shards::even;
  std::vector<std::int64_t> samples;  ///< Of each step, by worker; empty: shared out evenly.
  std::vector<int> slots;             ///< By worker; empty: each has one.

  bool complete = false;  ///< There is a summary. Else what is there is as far as the run came.
  bool ended = false;     ///< There is a summary, whatever ended the run.
  bool goes_on = false;   ///< It is not complete, and somebody watches how it goes on.
  std::vector<StepMetrics> metrics;
  std::vector<AccuracyRow> tests;
  std::optional<double> grad, step, await;  ///< Seconds: medians of the summary.
  std::optional<PlanConfig> plan;           ///< What its plan was predicted to come to.
  std::optional<AccuracySummary> accuracy;
  std::optional<AccuracyTarget> until;       ///< It was to end at this accuracy.
  std::optional<EvaluationFile> evaluation;  ///< None: nobody has evaluated its weights.
  std::uint64_t steps = 0;
  std::map<int, RankSummary> rank_summaries;
  std::vector<LayerSeconds> layers;      ///< From profile.json.
  std::optional<double> simulated_grad;  ///< t_grad that a simulation was given.

  bool has_trace() const;
  /// Throws Error where the file is damaged.
  TraceData trace() const;
  /// The slots of all workers, each of which computes its own batch or part of one.
  int all_slots() const {
    return slots.empty() ? workers : std::accumulate(slots.begin(), slots.end(), 0);
  }
  int first_worker() const { return ranks - workers; }  ///< Its rank.
  models::ModelOptions options() const;                 ///< That build its network.
  Ledgers ledgers() const { return read_ledgers(directory, ranks); }
  /// The first worker's, step by step; empty: an old run has no such file.
  std::vector<net::StepTraffic> step_traffic() const;
  /// Seconds of one transfer of all weights over a link that nothing else uses: that of the rank
  /// that had the most of its link. (A central server's is always busy for all its workers.)
  std::optional<RankComm> link_comm() const;
  bool cut() const { return !strategy.empty(); }  ///< Ranks have parts of the network.
  /// "pipeline 6:2, 8 micro-batches"; empty: it is not cut.
  std::string cut_text() const;
  RowMeaning row_meaning() const { return {parallel && sync == net::Sync::none, average}; }
  double batches_a_step() const { return sync == net::Sync::split ? 1.0 : all_slots(); }
  /// Batches a second of all workers. Asynchronous ones have each a pace of its own; of the others
  /// the first stands for all. None: no step was timed, or not of every worker, or one was lost.
  std::optional<double> throughput() const;
  /// The ranks that an asynchronous run went on without to its end. A central server knows them.
  std::set<int> lost() const;
};

/// The measurement that a run of transport has left.
struct LinkData {
  std::string name, title;
  double comm = 0.0;
  /// Processor seconds a byte; none: an older transport did not measure them.
  std::optional<double> send_processor, receive_processor, frame_processor;
  std::optional<double> owner_rate;  ///< Bytes a second that an owner adds.
  std::optional<double> link_rate;   ///< Of --link-rate; none: no limit.
};
bool is_link(const std::string& directory);
LinkData read_link(const std::string& directory);  ///< Throws Error as read_run_data does.

/// Throws Error: no run directory, damaged, or of another version of duplex; says which file.
RunData read_run_data(const std::string& directory);

}  // namespace duplex::tools::reports
