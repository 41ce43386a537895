// duplex dist runs one rank of distributed training (Appendix C.3).
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "core/error.h"
#include "layers/checkpoint.h"
#include "layers/exchange/averaging_exchange.h"
#include "layers/exchange/host_staging.h"
#include "layers/exchange/local_exchange.h"
#include "layers/exchange/strict_exchange.h"
#include "net/exchange/exchange.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/flags/dist_flags.h"
#include "tools/launch/rank_record.h"
#include "tools/run_directory/dist_report.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/run_files.h"
#include "tools/text/peak_memory.h"
#include "tools/text/table.h"
#include "tools/tracing/rank_tracing.h"
#include "tools/training/divergence.h"
#include "tools/training/loop.h"
#include "tools/training/network_computation.h"
#include "tools/training/replay.h"
#include "tools/training/setup.h"
#include "tools/training/tester.h"

namespace duplex::tools {
namespace {

const std::string command = "dist";

/// Time that a rank which cannot start has to tell the others.
constexpr std::chrono::milliseconds last_words{5000};

/// The specification of the mesh, without the identity that ranks compare.
net::MeshSpec mesh_spec(const DistFlags& flags) {
  net::MeshSpec spec;
  spec.addresses = flags.addresses;
  const int size = static_cast<int>(spec.addresses.size());
  spec.topology = flags.parallel.spec.topology(size);
  if (spec.topology.mode == net::ServerMode::central && size < 2) {
    throw Error("--server central takes two ranks at least: the server and a worker", Exit::usage);
  }
  spec.rank = flags.index;
  spec.identity.job = flags.job;
  flags.wire.apply_to(spec);
  spec.log = [rank = flags.index](const std::string& line) {
    std::fprintf(stderr, "rank %d: %s\n", rank, line.c_str());
  };
  return spec;
}

/// The identity that ranks compare.
net::Identity identity_of(const DistFlags& flags, const TrainingSetup& setup,
                          net::Fingerprint start) {
  net::Identity identity;
  identity.job = flags.job;
  identity.model = fingerprint_of(setup.model);
  // Ranks compare what the data set holds, not where it lies, which differs between machines.
  const std::string contents =
      setup.data ? setup.data->contents() + ", digest " + std::to_string(setup.data->digest())
                 : "no images";
  identity.data = net::fingerprint(contents);
  if (setup.data) identity.data.text = setup.data->description();
  identity.settings = net::fingerprint(flags.settings());
  identity.start = std::move(start);
  return identity;
}

/// One rank of a run, from its start to its files.
class Rank {
 public:
  /// Does all that can go wrong before the ranks meet. `mesh` comes from mesh_spec().
  Rank(const DistFlags& flags, net::MeshSpec mesh)
      : flags_(flags),
        topology_(mesh.topology),
        trains_(topology_.is_worker(flags.index)),
        setup_(open_training(flags.training.setup())),
        host_(setup_.model, trains_),
        ledger_(ledger_file(flags.index)),
        mesh_(std::move(mesh)),
        tracing_(flags.trace ? flags.trace_steps : 0) {
    mesh_.identity = identity_of(flags, setup_, fill_host_parameters());
    if (trains_) prepare_network();
    directory_.emplace(flags.training.logdir, command, flags.training.model.net, ledger_);
    write_config(*directory_);
  }

  void run() {
    mesh_.log(device_line());
    net::ExchangeSpec spec = exchange_spec();
    spec.ledger_path = directory_->file(ledger_);
    net::ParameterExchange wire(spec, host_.spans(), net::Mesh::join(std::move(mesh_)));
    if (trains_) {
      train_rank(wire, *directory_);
    } else {
      serve(wire, *directory_);
    }
  }

 private:
  /// Fills in the weights to start from. Returns what ranks compare of them, a digest of these
  /// weights and of the running statistics that belong to them; the optimiser begins with zeros
  /// everywhere.
  net::Fingerprint fill_host_parameters() {
    const TrainingFlags& flags = flags_.training;
    net::Sha256 sum;
    host_.fill(setup_.model, flags.seed, flags.weights,
               [&](const ParameterSpec& spec, const float* values) {
                 sum.add(spec.name + '\0');
                 sum.add({reinterpret_cast<const char*>(values),
                          static_cast<std::size_t>(spec.shape.elements()) * sizeof(float)});
               });
    return {flags.weights.empty() ? "--seed " + std::to_string(flags.seed) : flags.weights,
            sum.digest()};
  }

  bool leads() const { return topology_.worker_number(flags_.index) == 0; }

  void prepare_network() {
    const TrainingFlags& flags = flags_.training;
    if (replays()) {
      times_ = layer_times(replay_source(flags.computing.device), setup_.model);
      times_.scale(static_cast<double>(share_of(flags_.index).count) /
                   static_cast<double>(flags.batch));
      return;
    }
    device_ = flags.computing.make();
    network_ = flags.computing.build(setup_.model, *device_, share_of(flags_.index).count);
    network_->observe(tracing_.observer());
    network_->initialise(flags.seed);
    if (!flags.weights.empty()) load_checkpoint(flags.weights, *network_);
  }

  std::string device_line() const {
    if (!trains_) return "holds the weights and does not train";
    if (device_) return "computes on " + device_->description();
    return "computes nothing: it replays " + replay_source(flags_.training.computing.device);
  }

  bool replays() const { return flags_.training.replays(); }

  /// The samples of each step that a rank trains on.
  datasets::Share share_of(int rank) const {
    return flags_.parallel.spec.share(flags_.training.batch, topology_.worker_number(rank),
                                      static_cast<int>(topology_.workers().size()));
  }

  net::ExchangeSpec exchange_spec() const {
    net::ExchangeSpec spec = flags_.exchange();
    for (int worker : topology_.workers()) spec.samples.push_back(share_of(worker).count);
    spec.log = [rank = flags_.index](const std::string& line) {
      std::fprintf(stderr, "rank %d: %s\n", rank, line.c_str());
    };
    return spec;
  }

  /// Exchanges, each built on the one before. The loop uses the last; they use the wire.
  using Exchanges = std::vector<std::unique_ptr<Exchange>>;

  /// Makes the exchanges between the training loop and the wire; none, if the loop uses the wire
  /// itself.
  Exchanges make_exchanges(net::ParameterExchange& wire, const Schedule& schedule) {
    Exchanges made;
    if (network_ && flags_.parallel.spec.average == 0) {
      made.push_back(std::make_unique<HostStaging>(*network_, host_, wire));
    } else if (network_) {
      made.push_back(std::make_unique<LocalExchange>(
          *network_, flags_.training.spec, flags_.training.learning_rate(), Updates::each));
      made.push_back(std::make_unique<AveragingExchange>(
          *network_, host_, wire, *made.back(), flags_.parallel.spec.average, schedule.steps));
    }
    if (!flags_.parallel.spec.overlap) {
      Exchange& inner = made.empty() ? wire : *made.back();
      made.push_back(std::make_unique<StrictExchange>(inner, host_.spans().size()));
    }
    return made;
  }

  void write_config(const RunDirectory& directory) const {
    if (!trains_ || !leads()) return;
    RunConfig config = flags_.training.config(command, setup_, device_.get());
    config.settings = flags_.settings();
    config.parallel = flags_.parallel.config(topology_);
    config.addresses.emplace();
    for (const net::Address& address : flags_.addresses) config.addresses->push_back(address.str());
    directory.write(config_file, text_of(config));
  }

  /// `directory` is set on the rank that shows progress, and null on others.
  LoopSpec loop_spec(const Schedule& schedule, const RunDirectory* directory) {
    LoopSpec loop;
    loop.schedule = schedule;
    loop.rate = flags_.training.learning_rate();
    loop.batch = share_of(flags_.index).count;
    loop.show = directory != nullptr;
    if (directory != nullptr) loop.metrics_path = directory->file(metrics_file);
    loop.beginning = [this](std::uint64_t step) { tracing_.begin_step(step); };
    return loop;
  }

  TrainingResult compute(net::ParameterExchange& wire, const RunDirectory* directory) {
    const TrainingFlags& flags = flags_.training;
    datasets::LoaderOptions loading;
    loading.share = share_of(flags_.index);
    loading.seed = flags.seed;
    loading.mirror = flags.mirror;
    loading.strict = flags.strict;
    loading.threads = loader_threads();
    datasets::BatchLoader loader(setup_.split.train, loading);
    Schedule schedule = schedule_of(loader, flags.epochs, flags.batches, flags.test_every);
    if (flags_.parallel.spec.average > 0) schedule.steps_per_round = flags_.parallel.spec.average;
    const Exchanges exchanges = make_exchanges(wire, schedule);
    LoopSpec loop = loop_spec(schedule, directory);
    if (directory != nullptr) {
      tester_.emplace(*network_, setup_.split.test, *directory, schedule, flags.strict);
      loop.test = [this](std::uint64_t steps) { tester_->test_between(steps); };
    }
    NetworkComputation computation(*network_, batches_of(loader), flags.seed, looks_for_nan);
    const TrainingResult result = train(computation, *exchanges.back(), loop);
    report_replaced(loader);
    return result;
  }

  TrainingResult replay(net::ParameterExchange& wire, const RunDirectory* directory) {
    Replay computation(setup_.model, times_);
    computation.observe(tracing_.observer());
    Schedule schedule;
    schedule.steps = schedule.epoch_samples = flags_.training.batches;
    const Exchanges exchanges = make_exchanges(wire, schedule);
    Exchange& exchange = exchanges.empty() ? wire : *exchanges.back();
    return train(computation, exchange, loop_spec(schedule, directory));
  }

  void train_rank(net::ParameterExchange& wire, const RunDirectory& directory) {
    const RunDirectory* shown = leads() ? &directory : nullptr;
    const TrainingResult result = replays() ? replay(wire, shown) : compute(wire, shown);
    const std::vector<std::string> reports = wire.finish(tracing_.report(wire));
    if (result.steps > 0) spoilt_ = host_.not_finite();
    RunSummary summary = summary_of(wire);
    summary.training = result;
    summary.workers = static_cast<int>(topology_.workers().size());
    const ParallelSpec& parallel = flags_.parallel.spec;
    summary.mode = RankMode{topology_.size, parallel.server, parallel.sync, replays()};
    report_staleness(wire, directory, summary);
    std::optional<Accuracy> accuracy;
    if (leads()) accuracy = finish_leader(result, directory, summary);
    std::fputs(tracing_.write(reports, directory, setup_.model).c_str(), stdout);
    directory.write(rank_file(flags_.index), text_of(summary));
    require_sound_weights();
    if (accuracy) require_finite(*accuracy, *network_);
  }

  /// Every rank holds the last weights and checks them, so that all end alike.
  void require_sound_weights() const {
    if (!spoilt_.empty()) throw diverged("after the last step", spoilt_);
  }

  /// The first worker saves the network that all of them have trained, and tests it if asked.
  std::optional<Accuracy> finish_leader(const TrainingResult& result, const RunDirectory& directory,
                                        RunSummary& summary) {
    const TrainingFlags& flags = flags_.training;
    for (std::size_t i = 0; network_ && i < host_.spans().size(); ++i) {
      device_->upload(network_->parameters()[i].weights, host_.spans()[i].weights);
    }
    if (network_ && result.steps > 0 && spoilt_.empty()) spoilt_ = network_->not_finite();
    if (network_ && result.steps > 0 && spoilt_.empty()) {
      const std::map<std::string, std::string> metadata{{"network", flags.model.net},
                                                        {"steps", std::to_string(result.steps)},
                                                        {"settings", flags_.settings()}};
      save_checkpoint(directory.file(checkpoint_file), *network_, metadata);
      if (!flags.save.empty()) save_checkpoint(flags.save, *network_, metadata);
    }
    std::fputs(report_of(result, flags.batch, false).c_str(), stdout);
    std::fputs(learning_report_of(result, setup_.model).c_str(), stdout);
    std::fputs(traffic_report(*summary.traffic, flags_.index).c_str(), stdout);
    std::optional<Accuracy> accuracy;
    if (flags.accuracy) {
      accuracy = tester_->test(result.steps);
      summary.accuracy = tools::summary_of(*accuracy);
    }
    directory.write(summary_file, text_of(summary));
    std::printf("run      %s\n", directory.path().c_str());
    return accuracy;
  }

  /// The part of the summary that every rank has, whether it trains or not.
  RunSummary summary_of(const net::ParameterExchange& wire) const {
    RunSummary summary;
    summary.command = command;
    summary.rank = flags_.index;
    summary.traffic = wire.traffic();
    summary.connections = wire.connections();
    summary.peak_memory_bytes = peak_memory_bytes();
    return summary;
  }

  /// Reports the staleness that this rank's store has counted in an asynchronous run.
  void report_staleness(const net::ParameterExchange& wire, const RunDirectory& directory,
                        RunSummary& summary) const {
    if (flags_.parallel.spec.sync != net::Sync::none) return;
    const std::vector<net::Store::Staleness> steps = wire.staleness();
    if (!steps.empty()) {
      directory.write(staleness_file(flags_.index), text_of(staleness_rows(steps)));
      std::fputs(staleness_report(steps).c_str(), stdout);
    }
    summary.lost = wire.lost();
  }

  void serve(net::ParameterExchange& wire, const RunDirectory& directory) {
    const std::vector<std::string> reports = wire.finish(tracing_.report(wire));
    std::fputs(tracing_.write(reports, directory, setup_.model).c_str(), stdout);
    RunSummary summary = summary_of(wire);
    report_staleness(wire, directory, summary);
    directory.write(rank_file(flags_.index), text_of(summary));
    spoilt_ = host_.not_finite();
    require_sound_weights();
  }

  const DistFlags& flags_;
  const net::Topology topology_;
  const bool trains_;
  TrainingSetup setup_;
  HostParameters host_;
  const std::string ledger_;  ///< Name of the ledger's file.
  net::MeshSpec mesh_;        ///< Used until the ranks have met.
  RankTracing tracing_;
  std::optional<RunDirectory> directory_;
  LayerTimes times_;              ///< For a replay.
  std::optional<Tester> tester_;  ///< Set on the first worker.
  std::string spoilt_;  ///< Name of a parameter, or of the first worker's statistic, that diverged.
  std::unique_ptr<Device> device_;
  std::unique_ptr<Network> network_;
};

}  // namespace

int dist(int argc, const char* const* argv) {
  CLI::App app{
      "Trains a network as one rank of several; start one on every machine, by hand or with duplex "
      "launch, srun or mpirun.",
      "duplex dist"};
  DistFlags flags;
  flags.add_to(app);
  if (const auto done = parse(app, argc, argv)) return *done;
  std::fprintf(stderr, "%s\n", flags.resolve().c_str());
  std::optional<RankRecord> record;
  if (!flags.nodefile.empty()) record.emplace(flags.nodefile, flags.index);
  if (record && !record->trouble().empty()) {
    std::fprintf(stderr, "rank %d: %s\n", flags.index, record->trouble().c_str());
  }
  const net::MeshSpec mesh = mesh_spec(flags);
  std::optional<Rank> rank;
  try {
    rank.emplace(flags, mesh);
  } catch (const Error& error) {
    net::Mesh::tell_cannot_start(mesh, error.what(), std::min(last_words, mesh.timeout));
    throw;
  }
  rank->run();
  return 0;
}

}  // namespace duplex::tools
