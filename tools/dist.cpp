// duplex dist: one rank of distributed training (Appendix C.3).
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/error.h"
#include "layers/checkpoint.h"
#include "layers/local_exchange.h"
#include "layers/strict_exchange.h"
#include "net/exchange.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/dist_flags.h"
#include "tools/dist_report.h"
#include "tools/finite.h"
#include "tools/network_steps.h"
#include "tools/peak_memory.h"
#include "tools/rank_record.h"
#include "tools/rank_tracing.h"
#include "tools/replay.h"
#include "tools/table.h"
#include "tools/tester.h"
#include "tools/training.h"
#include "tools/wire_exchange.h"

namespace duplex::tools {
namespace {

net::MeshSpec mesh_spec(const DistFlags& flags, const Task& task, net::Fingerprint start) {
  net::MeshSpec spec;
  spec.addresses = flags.addresses;
  const int size = static_cast<int>(spec.addresses.size());
  spec.topology = flags.parallel.topology(size);
  if (spec.topology.mode == net::ServerMode::central && size < 2) {
    throw Error("--server central takes two ranks at least: the server and a worker", Exit::usage);
  }
  spec.rank = flags.index;
  spec.identity.job = flags.job;
  spec.identity.model = fingerprint_of(task.model);
  // What the data set holds, not where it lies: that differs from machine to machine.
  const std::string contents =
      task.data ? task.data->contents() + ", digest " + std::to_string(task.data->digest())
                : "no pictures";
  spec.identity.data = net::fingerprint(contents);
  if (task.data) spec.identity.data.text = task.data->description();
  spec.identity.settings = net::fingerprint(flags.settings());
  spec.identity.start = std::move(start);
  flags.wire.apply_to(spec);
  spec.log = [rank = flags.index](const std::string& line) {
    std::fprintf(stderr, "rank %d: %s\n", rank, line.c_str());
  };
  return spec;
}

/// One rank of a run, from its start to its files.
class Rank {
 public:
  explicit Rank(const DistFlags& flags)
      : flags_(flags),
        task_(open_task(flags.training)),
        trains_(!flags.parallel.central() || flags.index != 0),
        host_(task_.model, trains_),
        tracing_(flags.trace ? flags.trace_steps : 0) {}

  void run() {
    net::MeshSpec mesh = mesh_spec(
        flags_, task_, host_.fill(task_.model, flags_.training.seed, flags_.training.weights));
    topology_ = mesh.topology;
    RunDirectory directory(flags_.training.logdir, "dist", flags_.training.model.net);
    if (trains_) prepare_network();
    mesh.log(device_line());
    write_config(directory);
    net::ExchangeSpec spec = exchange_spec();
    spec.ledger_path = directory.file("ledger-" + std::to_string(flags_.index) + ".csv");
    net::ParameterExchange wire(spec, host_.spans(), net::Mesh::join(std::move(mesh)));
    if (trains_) {
      train_rank(wire, directory);
    } else {
      serve(wire, directory);
    }
  }

 private:
  bool leads() const { return topology_.worker_number(flags_.index) == 0; }

  void prepare_network() {
    const TrainingFlags& flags = flags_.training;
    if (replays()) {
      times_ = layer_times(replay_source(flags.computing.device), task_.model);
      times_.scale(static_cast<double>(share_of(flags_.index).count) /
                   static_cast<double>(flags.batch));
      return;
    }
    device_ = flags.computing.make();
    network_ = flags.computing.build(task_.model, *device_, share_of(flags_.index).count);
    network_->observe(tracing_.observer());
    network_->initialise(flags.seed);
    if (!flags.weights.empty()) load_checkpoint(flags.weights, *network_);
  }

  std::string device_line() const {
    if (!trains_) return "holds the weights and does not train";
    if (device_) return "computes on " + device_->description();
    return "computes nothing: it replays " + replay_source(flags_.training.computing.device);
  }

  bool replays() const { return !replay_source(flags_.training.computing.device).empty(); }

  /// What a rank trains on of each step's samples.
  datasets::Share share_of(int rank) const {
    return flags_.parallel.share(flags_.training.batch, topology_.worker_number(rank),
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

  /// Exchanges, each built on the one before; the last is the one to use. They use the wire.
  using Exchanges = std::vector<std::unique_ptr<Exchange>>;

  /// What stands between the training loop and the wire; empty: nothing.
  Exchanges make_exchanges(net::ParameterExchange& wire, const Length& length) {
    Exchanges made;
    if (network_ && flags_.parallel.average == 0) {
      made.push_back(std::make_unique<WireExchange>(*network_, host_, wire));
    } else if (network_) {
      made.push_back(std::make_unique<LocalExchange>(
          *network_, flags_.training.spec, flags_.training.learning_rate(), Updates::each));
      made.push_back(std::make_unique<AveragingExchange>(*network_, host_, wire, *made.back(),
                                                         flags_.parallel.average, length.steps));
    }
    if (flags_.parallel.overlap != "on") {
      Exchange& inner = made.empty() ? wire : *made.back();
      made.push_back(std::make_unique<StrictExchange>(inner, host_.spans().size()));
    }
    return made;
  }

  void write_config(const RunDirectory& directory) const {
    if (!trains_ || !leads()) return;
    nlohmann::ordered_json config = config_of(flags_.training, task_, device_.get());
    config["command"] = "dist";
    config["settings"] = flags_.settings();
    flags_.parallel.describe(config, topology_);
    for (const net::Address& address : flags_.addresses)
      config["addresses"].push_back(address.str());
    directory.write("config.json", config.dump(1) + "\n");
  }

  TrainingResult compute(net::ParameterExchange& wire, const RunDirectory* directory) {
    const TrainingFlags& flags = flags_.training;
    const datasets::Share share = share_of(flags_.index);
    datasets::LoaderOptions loading;
    loading.share = share;
    loading.seed = flags.seed;
    loading.mirror = flags.mirror;
    loading.strict = flags.strict;
    loading.threads = loader_threads();
    datasets::BatchLoader loader(task_.split.train, loading);
    Length length = length_of(flags, loader);
    if (flags_.parallel.average > 0) length.steps_per_round = flags_.parallel.average;
    const Exchanges exchanges = make_exchanges(wire, length);
    TestRunner test;
    if (directory != nullptr) {
      tester_.emplace(*network_, task_.split.test, *directory, length, flags.strict);
      test = [this](std::uint64_t steps) { tester_->test_between(steps); };
    }
    const TrainingResult result =
        train(tracing_.counting(network_steps(*network_, loader, flags.seed)), share.count,
              *exchanges.back(), flags, length, directory, directory != nullptr, test);
    report_replaced(loader);
    return result;
  }

  TrainingResult replay(net::ParameterExchange& wire, const RunDirectory* directory) {
    const TrainingFlags& flags = flags_.training;
    Replay replay(task_.model, times_);
    replay.observe(tracing_.observer());
    Length length;
    length.steps = length.epoch_samples = flags.batches;
    const auto step = [&](std::uint64_t number, Exchange& exchange) {
      StepOutcome outcome;
      outcome.have_data = clock_ns();
      replay.step(number, exchange);
      return outcome;
    };
    const Exchanges exchanges = make_exchanges(wire, length);
    Exchange& exchange = exchanges.empty() ? wire : *exchanges.back();
    return train(tracing_.counting(step), share_of(flags_.index).count, exchange, flags, length,
                 directory, directory != nullptr);
  }

  void train_rank(net::ParameterExchange& wire, const RunDirectory& directory) {
    const RunDirectory* shown = leads() ? &directory : nullptr;
    const TrainingResult result = replays() ? replay(wire, shown) : compute(wire, shown);
    nlohmann::ordered_json summary = tools::json_of(result);
    const std::vector<std::string> reports = wire.finish(tracing_.report(wire));
    if (result.steps > 0) spoilt_ = host_.not_finite();
    const net::TrafficSummary traffic = wire.traffic();
    summary["version"] = 1;
    summary["command"] = "dist";
    summary["rank"] = flags_.index;
    summary["workers"] = topology_.workers().size();
    summary["ranks"] = topology_.size;
    summary["server"] = flags_.parallel.server;
    summary["sync"] = flags_.parallel.sync;
    summary["replayed"] = replays();
    summary["traffic"] = json_of(traffic);
    summary["connections"] = json_of(wire.connections());
    summary["peak_memory_bytes"] = peak_memory_bytes();
    report_staleness(wire, directory, summary);
    std::optional<Accuracy> accuracy;
    if (leads()) accuracy = finish_leader(result, traffic, directory, summary);
    std::fputs(tracing_.write(reports, directory, task_.model).c_str(), stdout);
    directory.write("rank-" + std::to_string(flags_.index) + ".json", summary.dump(1) + "\n");
    require_sound_weights();
    if (accuracy) require_finite(*accuracy, *network_);
  }

  /// Every rank holds the last weights, so that all end alike.
  void require_sound_weights() const {
    if (!spoilt_.empty()) throw diverged("after the last step", spoilt_);
  }

  /// The first worker saves what all of them have trained, and tests it if asked.
  std::optional<Accuracy> finish_leader(const TrainingResult& result,
                                        const net::TrafficSummary& traffic,
                                        const RunDirectory& directory,
                                        nlohmann::ordered_json& summary) {
    const TrainingFlags& flags = flags_.training;
    for (std::size_t i = 0; network_ && i < host_.spans().size(); ++i) {
      device_->upload(network_->parameters()[i].weights, host_.spans()[i].weights);
    }
    if (network_ && result.steps > 0 && spoilt_.empty()) spoilt_ = network_->not_finite();
    if (network_ && result.steps > 0 && spoilt_.empty()) {
      const std::map<std::string, std::string> metadata{{"network", flags.model.net},
                                                        {"steps", std::to_string(result.steps)},
                                                        {"settings", flags_.settings()}};
      save_checkpoint(directory.file("checkpoint.safetensors"), *network_, metadata);
      if (!flags.save.empty()) save_checkpoint(flags.save, *network_, metadata);
    }
    std::fputs(report_of(result, flags.batch, false).c_str(), stdout);
    std::fputs(traffic_report(traffic).c_str(), stdout);
    std::optional<Accuracy> accuracy;
    if (flags.accuracy) {
      accuracy = tester_->test(result.steps);
      summary["accuracy"] = tools::json_of(*accuracy);
    }
    directory.write("summary.json", summary.dump(1) + "\n");
    std::printf("run      %s\n", directory.path().c_str());
    return accuracy;
  }

  /// What the store of this rank has to tell of an asynchronous run.
  void report_staleness(const net::ParameterExchange& wire, const RunDirectory& directory,
                        nlohmann::ordered_json& summary) const {
    if (flags_.parallel.sync != "none") return;
    const std::vector<net::Store::Staleness> steps = wire.staleness();
    if (!steps.empty()) {
      directory.write("staleness-" + std::to_string(flags_.index) + ".csv", staleness_csv(steps));
      std::fputs(staleness_report(steps).c_str(), stdout);
    }
    summary["lost"] = wire.lost();
  }

  void serve(net::ParameterExchange& wire, const RunDirectory& directory) {
    const std::vector<std::string> reports = wire.finish(tracing_.report(wire));
    std::fputs(tracing_.write(reports, directory, task_.model).c_str(), stdout);
    nlohmann::ordered_json summary;
    summary["version"] = 1;
    summary["command"] = "dist";
    summary["rank"] = flags_.index;
    summary["traffic"] = json_of(wire.traffic());
    summary["connections"] = json_of(wire.connections());
    summary["peak_memory_bytes"] = peak_memory_bytes();
    report_staleness(wire, directory, summary);
    directory.write("rank-" + std::to_string(flags_.index) + ".json", summary.dump(1) + "\n");
    spoilt_ = host_.not_finite();
    require_sound_weights();
  }

  const DistFlags& flags_;
  Task task_;
  bool trains_;
  HostParameters host_;
  RankTracing tracing_;
  net::Topology topology_;
  LayerTimes times_;              ///< Of replay.
  std::optional<Tester> tester_;  ///< Of the first worker.
  std::string spoilt_;  ///< A parameter, or the first worker's statistic, that has diverged.
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
  std::fprintf(stderr, "%s\n", flags.settle().c_str());
  std::optional<RankRecord> record;
  if (!flags.nodefile.empty()) record.emplace(flags.nodefile, flags.index);
  if (record && !record->trouble().empty()) {
    std::fprintf(stderr, "rank %d: %s\n", flags.index, record->trouble().c_str());
  }
  Rank(flags).run();
  return 0;
}

}  // namespace duplex::tools
