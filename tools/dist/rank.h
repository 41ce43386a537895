// One rank of distributed training, from its start to its files.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "layers/exchange/host_parameters.h"
#include "layers/exchange/local_exchange.h"
#include "layers/exchange/moving_average.h"
#include "layers/network.h"
#include "net/exchange/exchange.h"
#include "tools/checkpoint/stop_signals.h"
#include "tools/dist/dist_spec.h"
#include "tools/dist/rank_checkpoints.h"
#include "tools/parts/cut_part.h"
#include "tools/parts/part_states.h"
#include "tools/prediction/layer_times.h"
#include "tools/run_directory/run_directory.h"
#include "tools/run_directory/run_summary.h"
#include "tools/setup/setup.h"
#include "tools/slots/slot_team.h"
#include "tools/tensorboard/training_events.h"
#include "tools/tracing/rank_tracing.h"
#include "tools/training/evaluation.h"
#include "tools/training/loop.h"
#include "tools/training/profile.h"
#include "tools/training/tester.h"

namespace duplex::tools {

class Rank {
 public:
  /// Does all that can go wrong before the ranks meet: opens the data, makes the network, claims
  /// the run directory. Throws Error.
  explicit Rank(DistSpec spec);

  /// Meets the other ranks and takes part until the run ends; then writes the rank's files. Returns
  /// the program's exit code: 0, or 128 + the signal that ended the training with a checkpoint.
  /// Throws Error as ParameterExchange and train() do, and if the trained weights are not finite.
  /// `signals`: those of the run before, which has paused.
  int run(std::unique_ptr<StopSignals> signals = nullptr);

  /// Returns whether the ranks end this run with a pause, also where run() has thrown.
  bool pauses() const;
  /// Returns whether run() has ended with a checkpoint for all ranks to go on from at once
  /// (DistSpec::reshare).
  bool paused() const { return paused_; }
  /// The specification of the run that goes on.
  DistSpec after_pause() const;
  /// Hands over the object that catches signals, until the run that goes on has it.
  std::unique_ptr<StopSignals> take_signals() { return std::move(signals_); }
  /// Seconds that this rank has computed for an image; 0: it does not train, or has trained
  /// nothing.
  double image_seconds() const { return image_seconds_; }

 private:
  TrainingSetup opened();
  net::Fingerprint fill_host_parameters();
  net::Identity identity(net::Fingerprint start) const;
  void prepare_network();
  void prepare_slots();
  void prepare_checkpoints();
  StateSpans state_spans();
  TraceNames trace_names() const {
    return cut_ ? cut_->trace_names() : TraceNames::of(setup_.model);
  }
  Error further_than(std::uint64_t steps) const;
  void require_cuttable() const;
  std::unique_ptr<CutPart> cut_part() const;
  void require_memory() const;
  void prepare_part();
  void draw_replayed_gradients();
  LayerObserver part_observer();
  std::string device_line() const;
  void write_config() const;
  /// The steps of every worker's training, from the first of all on.
  std::uint64_t all_steps() const { return steps_of(spec_.training, setup_, spec_.step_samples()); }
  std::uint64_t last_step() const;

  net::ResumePoint go_on(net::Mesh& mesh, net::ExchangeSpec& exchange);
  net::ResumePoint go_on_from(const net::ResumePoint& point, net::Mesh& mesh,
                              net::ExchangeSpec& exchange);
  void set_ledger_aside() const;
  void forget_end() const;
  int stopped();
  void end_checkpoints();
  int serve(net::ParameterExchange& wire);
  int train_rank(net::ParameterExchange& wire);
  TrainingResult compute(net::ParameterExchange& wire);
  TrainingResult replay(net::ParameterExchange& wire);
  TrainingResult train_part(net::ParameterExchange& wire);
  TrainingResult train_slots(Exchange& wire,
                             const std::function<TrainingResult(Exchange& inner)>& lead,
                             const SlotTeam::TrainSlot& others);
  datasets::LoaderOptions reading(int slot) const;
  LoopSpec loop_spec(const Schedule& schedule, net::ParameterExchange& wire);
  /// Calls `train` with a computation of the leased batches.
  using WithBatches =
      std::function<void(const net::Lease& lease, const std::function<void(Computation&)>& train)>;
  void train_leases(net::ParameterExchange& wire, Exchange& exchange, std::uint64_t total,
                    const WithBatches& with_batches);
  void train_lease(net::ParameterExchange& wire, Exchange& exchange, const net::Lease& lease,
                   Computation& computation);

  /// Reports to the coordinator, by ParameterExchange::finish.
  net::ParameterExchange::Report report(net::ParameterExchange& wire) const;
  bool reports_statistics() const;
  /// Takes what report() has put before the trace out of the reports of all ranks.
  std::vector<std::vector<float>> take_statistics(std::vector<std::string>& reports) const;

  void keep_trained(std::uint64_t steps);
  void keep_whole(std::vector<std::string>& reports, std::uint64_t steps);
  void make_tester(const Schedule& schedule, std::function<void()> after_batch = {});
  void make_whole_tester(const Schedule& schedule, std::function<void()> after_batch = {});
  void load_whole(const HostParameters& weights, const std::vector<float>& statistics);
  bool tests_parts() const { return cut_ && !replays() && spec_.training.test_every > 0.0; }
  void keep_without_the_first_worker(const net::ParameterExchange& wire,
                                     const std::vector<std::vector<float>>& statistics);
  void note_ledger(const net::ParameterExchange& wire);

  RunSummary summary_of(const net::ParameterExchange& wire) const;
  void report_staleness(const net::ParameterExchange& wire, RunSummary& summary) const;
  std::optional<Accuracy> finish_leader(const TrainingResult& result, RunSummary& summary);
  bool save(const std::vector<StateArray>& arrays, const std::string& steps);
  std::map<std::string, std::string> metadata(const std::string& steps) const;
  void require_sound_weights(const std::optional<Accuracy>& accuracy) const;

  int slots() const { return spec_.slots_of(spec_.rank()); }
  bool trains() const { return spec_.mesh.topology.is_worker(spec_.rank()); }
  std::vector<std::size_t> samples_by_worker() const;
  HostFactors factors_here() const;
  void add_factors(net::ExchangeSpec& exchange) const;
  bool replays() const { return spec_.training.replays(); }
  /// The first worker shows progress, tests, and saves the network that all of them have trained.
  bool asynchronous() const { return spec_.parallel.sync == net::Sync::none; }
  bool leads() const { return spec_.mesh.topology.worker_number(spec_.rank()) == 0; }

  DistSpec spec_;
  TrainingSetup setup_;
  std::unique_ptr<CutPart> cut_;  ///< Null: each rank has the whole network.
  /// Layers whose gradients are exchanged as factors; those of the part, where the network is cut.
  const HostFactors factored_;
  HostParameters host_;
  RankTracing tracing_;
  std::optional<RunDirectory> directory_;                ///< Set once the constructor is done.
  LayerTimes times_;                                     ///< For a replay.
  std::unique_ptr<Device> device_;                       ///< Null: a server, or a replay.
  std::vector<std::unique_ptr<Network>> part_networks_;  ///< Of a network that is cut.
  std::optional<PartStates> part_states_;                ///< Likewise, with --test-every.
  Schedule part_schedule_;
  std::unique_ptr<Network> network_;              ///< Of the whole network; null likewise.
  std::unique_ptr<SlotTeam> team_;                ///< The other slots; null: there are none.
  std::unique_ptr<LocalExchange> own_updates_;    ///< Only with --average, on a worker.
  std::optional<MovingAverage> average_;          ///< Only with --ema, on a worker.
  Troubles troubles_;                             ///< Of metrics.csv, accuracy.csv, checkpoints.
  std::optional<TrainingEvents> events_;          ///< On the first worker, with --tensorboard.
  std::unique_ptr<RankCheckpoints> checkpoints_;  ///< Null: a replay.
  net::ResumeOffer offer_{{}, false, true};       ///< With --resume.
  net::ResumePoint from_;                         ///< What was trained before.
  std::optional<Tester> tester_;                  ///< Set on the first worker.
  std::unique_ptr<Profile> profile_;              ///< Likewise, with --profile.
  std::unique_ptr<StopSignals> signals_;
  bool paused_ = false;
  double image_seconds_ = 0.0;
  std::string spoilt_;  ///< Name of a parameter, or of the first worker's statistic, that diverged.
};

}  // namespace duplex::tools
