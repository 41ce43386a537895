#include "tools/dist/rank.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "core/factors/outer_products.h"
#include "layers/checkpoint.h"
#include "tools/checkpoint/statistics_report.h"
#include "tools/checkpoint/stop_signals.h"
#include "tools/display/learning_curves.h"
#include "tools/dist/rank_copies.h"
#include "tools/plan/factored_layers.h"
#include "tools/run_directory/dist_report.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/run_files.h"
#include "tools/setup/weights_file.h"
#include "tools/text/peak_memory.h"
#include "tools/text/rate.h"
#include "tools/training/divergence.h"

namespace duplex::tools {
namespace {

const std::string command = "dist";

}  // namespace

// ---- Before the ranks meet.

Rank::Rank(DistSpec spec)
    : spec_(std::move(spec)),
      setup_(opened()),
      cut_(cut_part()),
      factored_(factors_here()),
      host_(cut_ ? cut_->part().model : setup_.model, trains(), factored_.layers,
            factored_.samples),
      tracing_(spec_.trace_steps, spec_.parallel.average) {
  set_updates(spec_.training.rate, all_steps());
  spec_.mesh.identity = identity(fill_host_parameters());
  if (trains()) {
    cut_ ? prepare_part() : prepare_slots();
    draw_replayed_gradients();
  }
  std::vector<std::string> claims{ledger_file(spec_.rank())};
  std::vector<std::string> later{traffic_file(spec_.rank()), rank_file(spec_.rank()),
                                 staleness_file(spec_.rank())};
  if (trains() && leads()) {
    claims.emplace_back(config_file);
    later.insert(later.end(), {metrics_file, accuracy_file, profile_file, checkpoint_file, ema_file,
                               summary_file});
  }
  // Such a worker may have been lost by a run that still goes on.
  const bool returns = asynchronous() && spec_.parallel.central() && trains();
  directory_.emplace(spec_.training.logdir, command, spec_.training.model.net, claims, later,
                     spec_.resumes(), returns);
  if (trains() && leads() && !spec_.training.tensorboard.empty())
    events_.emplace(spec_.training.tensorboard, spec_.resumes() || returns, troubles_);
  if (!spec_.trouble.empty()) troubles_.keep(spec_.trouble);
  if (!replays()) prepare_checkpoints();
}

TrainingSetup Rank::opened() {
  TrainingSetup setup = open_training(spec_.training);
  spec_.require_planned(setup.model);
  return setup;
}

/// Fills in the weights to start from. Returns what ranks compare of them, a digest of these
/// weights and of the running statistics that belong to them; the optimiser begins with zeros
/// everywhere.
net::Fingerprint Rank::fill_host_parameters() {
  const TrainingSpec& training = spec_.training;
  const bool refuses = training.trains() || !training.accuracy;
  net::Sha256 sum;
  const auto visit = [&](const ParameterSpec& spec, const float* values) {
    const auto count = static_cast<std::size_t>(spec.shape.elements());
    if (refuses && !all_finite(values, count)) {
      throw Error(training.weights + ": " + spec.name +
                  " is not finite; train from another checkpoint");
    }
    sum.add(spec.name + '\0');
    sum.add({reinterpret_cast<const char*>(values), count * sizeof(float)});
  };
  if (cut_)
    cut_->fill(host_, training.seed, training.weights, visit);
  else
    host_.fill(setup_.model, training.seed, training.weights, visit);
  return {training.weights.empty() ? "--seed " + std::to_string(training.seed) : training.weights,
          sum.digest()};
}

/// The identity that ranks compare.
net::Identity Rank::identity(net::Fingerprint start) const {
  net::Identity identity;
  identity.job = spec_.mesh.identity.job;
  identity.model = spec_.training.model.fingerprint(setup_.model);
  // Ranks compare what the data set holds, not where it lies, which differs between machines.
  const std::string contents =
      setup_.data ? setup_.data->contents() + ", digest " + std::to_string(setup_.data->digest())
                  : "no images";
  identity.data = net::fingerprint(contents);
  if (setup_.data) identity.data.text = setup_.data->description();
  // Whoever keeps copies, and whose, goes by the hosts in the nodefile.
  std::string copies = spec_.parallel.sync == net::Sync::none ? "" : keepers_of(spec_).str();
  if (!copies.empty()) copies = ", " + copies;
  // Copies of a layer whose sums are rounded by another rule would drift apart.
  const bool factors = spec_.parallel.factors != Factors::off;
  const std::string sums =
      factors ? std::string(", sums of factors by ") + OuterProducts::rounding : "";
  // Ranks that wait for different times would give each other up.
  // Ranks that had cut the network otherwise would take each other's maps for their own.
  std::string cut = cut_ ? ", cut " + cut_->digest() : "";
  // Others send the first rank what it tests.
  if (tests_parts())
    cut += ", tests every " + std::to_string(spec_.training.test_every) + " epochs";
  identity.settings = net::fingerprint(spec_.settings() + cut + sums + ", timeout " +
                                       std::to_string(spec_.mesh.timeout.count()) + " ms" + copies);
  identity.start = std::move(start);
  return identity;
}

std::string Rank::device_line() const {
  if (!trains()) return "holds the weights and does not train";
  if (device_) return "computes on " + device_->description();
  return "computes nothing: it replays " + replay_source(spec_.training.computing.device);
}

void Rank::write_config() const {
  RunConfig config = config_of(spec_.training, command, setup_, device_.get());
  config.settings = spec_.settings();
  config.parallel = spec_.parallel.config(spec_.mesh.topology, spec_.training.batch);
  config.plan = spec_.predicted;
  config.addresses.emplace();
  for (const net::Address& address : spec_.mesh.addresses)
    config.addresses->push_back(address.str());
  if (spec_.mesh.link_rate) config.link_rate = spec_.mesh.link_rate->out.rate();
  directory_->write(config_file, text_of(config));
}

/// The steps after which a synchronous training ends, also one that other ranks have begun.
std::uint64_t Rank::last_step() const {
  const TrainingSpec& training = spec_.training;
  if (!training.epochs || replays()) return training.batches.value();
  const std::uint64_t samples = *training.epochs * setup_.split.train.size();
  const std::uint64_t left = samples > from_.samples ? samples - from_.samples : 0;
  const std::uint64_t steps = from_.steps + left / spec_.step_samples();
  return std::min(steps, training.batches.value_or(steps));
}

// ---- The run.

int Rank::run(std::unique_ptr<StopSignals> signals) {
  spec_.mesh.log(device_line());
  if (spec_.mesh.link_rate)
    spec_.mesh.log("sends and takes at most " + rate_text(spec_.mesh.link_rate->out.rate()) +
                   " (--link-rate)");
  if (cut_) spec_.mesh.log(cut_->text());
  if (team_)
    for (const std::string& line : team_->lines()) spec_.mesh.log(line);
  net::ExchangeSpec exchange = spec_.exchange();
  if (cut_) cut_->add_to(exchange, replays());
  add_factors(exchange);
  exchange.ledger = {directory_->file(ledger_file(spec_.rank())),
                     directory_->file(traffic_file(spec_.rank()))};
  spec_.mesh.takes_back = asynchronous() && !trains();
  if (asynchronous() && !trains()) exchange.steps = all_steps();
  net::Mesh mesh = net::Mesh::join(spec_.mesh);
  from_ = go_on(mesh, exchange);
  if (!asynchronous()) exchange.last_step = last_step();
  if (trains() && leads()) write_config();  // A run whose ranks never met leaves nothing.
  if (checkpoints_) {
    if (!signals) signals = std::make_unique<StopSignals>();
    checkpoints_->hook_into(exchange);
    checkpoints_->pause_every(spec_.reshare * setup_.split.train.size(), last_step());
    exchange.ready = [this](net::ParameterExchange& wire) { checkpoints_->attach(wire); };
  }
  if (part_states_) part_states_->prepare(checkpoints_->shards(), exchange);
  net::ParameterExchange wire(exchange, cut_ ? cut_->exchange(host_).spans() : host_.spans(),
                              std::move(mesh));
  try {
    const int code = trains() ? train_rank(wire) : serve(wire);
    if (paused_) signals_ = std::move(signals);
    return code;
  } catch (...) {
    wire.give_up(std::current_exception());
    if (checkpoints_) checkpoints_->rescue();
    throw;
  }
}

std::vector<std::size_t> Rank::samples_by_worker() const {
  std::vector<std::size_t> samples;
  for (const int worker : spec_.mesh.topology.workers())
    samples.push_back(static_cast<std::size_t>(spec_.share_of(worker).count));
  return samples;
}

HostFactors Rank::factors_here() const {
  if (cut_) return cut_->host_factors(spec_.rank(), cut_->part().model);
  HostFactors here;
  here.layers = factored_layers(setup_.model, spec_.parallel, samples_by_worker(), command);
  here.samples.assign(here.layers.size(),
                      trains() ? static_cast<std::size_t>(spec_.share_of(spec_.rank()).count) : 0);
  return here;
}

/// Those of a network that is cut are in the exchange already.
void Rank::add_factors(net::ExchangeSpec& exchange) const {
  if (!cut_) exchange.factored = of_exchange(factored_.layers, samples_by_worker());
  if (exchange.factored.empty()) return;
  const int threads = spec_.training.computing.threads;
  exchange.factor_threads = threads > 0 ? threads * slots() : usable_cores();
  if (replays())
    exchange.replayed_flops = spec_.factor_rate > 0.0
                                  ? spec_.factor_rate
                                  : exchange.factor_threads * OuterProducts::operations_a_second();
}

int Rank::serve(net::ParameterExchange& wire) {
  std::vector<std::string> reports = wire.finish(tracing_.report(wire));
  if (checkpoints_ && checkpoints_->stopped()) {
    note_ledger(wire);
    return stopped();
  }
  spoilt_ = host_.not_finite();
  if (checkpoints_ && spoilt_.empty()) checkpoints_->finish(0);
  keep_without_the_first_worker(wire, take_statistics(reports));
  note_ledger(wire);
  std::fputs(tracing_.write(reports, *directory_, setup_.model, trace_names()).c_str(), stdout);
  RunSummary summary = summary_of(wire);
  report_staleness(wire, summary);
  directory_->write(rank_file(spec_.rank()), text_of(summary));
  end_checkpoints();
  require_sound_weights({});
  troubles_.raise();
  return 0;
}

int Rank::train_rank(net::ParameterExchange& wire) {
  const TrainingResult result = cut_ ? train_part(wire) : replays() ? replay(wire) : compute(wire);
  image_seconds_ =
      result.own_gradient.median / static_cast<double>(spec_.share_of(spec_.rank(), 0).count);
  wire.await_last_weights();
  if (checkpoints_) checkpoints_->end();
  if (checkpoints_ && checkpoints_->stopped()) {
    // Ranks that pause meet again at once, so the checkpoint has to be there.
    if (pauses()) checkpoints_->settle([&wire] { wire.progress_made(); });
    wire.finish();
    note_ledger(wire);
    return stopped();
  }
  spoilt_ = cut_ ? cut_->exchange(host_).not_finite() : host_.not_finite();
  if (leads() && !cut_) keep_trained(result.steps);
  if (checkpoints_ && spoilt_.empty()) checkpoints_->finish(result.steps);
  std::vector<std::string> reports = wire.finish(report(wire));
  if (cut_ && leads() && !replays()) keep_whole(reports, result.steps);
  take_statistics(reports);
  note_ledger(wire);
  RunSummary summary = summary_of(wire);
  summary.training = result;
  const net::Topology& topology = spec_.mesh.topology;
  summary.workers = static_cast<int>(topology.workers().size());
  if (!spec_.parallel.slots.empty())
    summary.slots = spec_.parallel.all_slots(summary.workers.value());
  summary.mode = RankMode{topology.size, spec_.parallel.server, spec_.parallel.sync, replays()};
  report_staleness(wire, summary);
  std::optional<Accuracy> accuracy;
  if (leads()) accuracy = finish_leader(result, summary);
  std::fputs(tracing_.write(reports, *directory_, setup_.model, trace_names()).c_str(), stdout);
  directory_->write(rank_file(spec_.rank()), text_of(summary));
  end_checkpoints();
  require_sound_weights(accuracy);
  troubles_.raise();
  return 0;
}

// ---- After the run.

/// The part of the summary that every rank has, whether it trains or not.
RunSummary Rank::summary_of(const net::ParameterExchange& wire) const {
  RunSummary summary;
  summary.command = command;
  summary.rank = spec_.rank();
  summary.traffic = wire.traffic();
  summary.ledger = wire.ledger().kept();
  summary.connections = wire.connections();
  if (checkpoints_) summary.bytes_before = checkpoints_->bytes_before();
  const net::Topology& topology = spec_.mesh.topology;
  if (spec_.parallel.sync != net::Sync::none && topology.is_owner(spec_.rank()))
    summary.stragglers = straggler_summaries(wire.stragglers(), topology.workers());
  summary.peak_memory_bytes = peak_memory_bytes();
  return summary;
}

/// Reports the staleness that this rank's store has counted in an asynchronous run.
void Rank::report_staleness(const net::ParameterExchange& wire, RunSummary& summary) const {
  if (!asynchronous()) return;
  const std::vector<net::Store::Staleness> steps = wire.staleness();
  if (!steps.empty()) {
    directory_->write(staleness_file(spec_.rank()), text_of(staleness_rows(steps)));
    std::fputs(staleness_report(steps).c_str(), stdout);
  }
  summary.lost = wire.lost();
  if (trains() || !spec_.parallel.central()) return;
  summary.returned = wire.returned();
  summary.leases.emplace();
  const std::vector<int> workers = spec_.mesh.topology.workers();
  const auto trained = wire.trained_by_others();
  for (std::size_t worker = 0; worker < trained.size(); ++worker)
    for (std::size_t other = 0; other < trained.size(); ++other)
      if (trained[worker][other] > 0)
        summary.leases->push_back({workers[worker], workers[other], trained[worker][other]});
}

std::optional<Accuracy> Rank::finish_leader(const TrainingResult& result, RunSummary& summary) {
  std::fputs(report_of(result, spec_.share_of(spec_.rank()).count, false).c_str(), stdout);
  std::fputs(learning_report_of(result, setup_.model).c_str(),
             spec_.training.quiet ? stderr : stdout);
  std::fputs(traffic_report(*summary.traffic, spec_.rank(), spec_.parallel.average > 0).c_str(),
             stdout);
  if (profile_ && result.steps > from_.steps) {
    directory_->write(profile_file, text_of(profile_->file()));
    std::fputs((data_report_of(result) + profile_->report()).c_str(), stdout);
  }
  std::optional<Accuracy> accuracy;
  if (spec_.training.accuracy) {
    // Others have trained on since the last test, until they heard that this one was enough.
    if (asynchronous()) tester_->forget();
    accuracy = tester_->test(result.steps);
    summary.accuracy = tools::summary_of(*accuracy);
  }
  if (spec_.training.until) {
    summary.reached = time_to_accuracy(directory_->path(), *spec_.training.until, spec_.rank(),
                                       {asynchronous(), spec_.parallel.average});
    std::fputs(reached_report(*spec_.training.until, summary.reached).c_str(), stdout);
  }
  show_learning_curves(directory_->path(), spec_.training.display);
  directory_->write(summary_file, text_of(summary));
  if (spec_.predicted)
    std::fputs(plan_report(*spec_.predicted, result.total.median, spec_.step_samples()).c_str(),
               stdout);
  std::printf("run      %s\n", directory_->path().c_str());
  return accuracy;
}

/// Saves the network that the first worker has trained before anything else, which may fail.
void Rank::keep_trained(std::uint64_t steps) {
  if (!network_) return;
  for (std::size_t i = 0; i < host_.spans().size(); ++i)
    device_->upload(network_->parameters()[i].weights, host_.spans()[i].weights);
  if (steps == 0) return;
  if (spoilt_.empty()) spoilt_ = network_->not_finite();
  if (!spoilt_.empty()) return;
  save(state_of(*network_), std::to_string(steps));
  if (average_)
    average_->replace(*network_, steps, [&] {
      troubles_.attempt([&] {
        save_state(directory_->file(ema_file), state_of(*network_),
                   metadata(std::to_string(steps)));
      });
    });
}

std::map<std::string, std::string> Rank::metadata(const std::string& steps) const {
  const std::int64_t batch =
      trains() ? spec_.share_of(spec_.rank(), 0).count : spec_.training.batch;
  return weights_metadata(spec_.training, setup_, batch, steps, spec_.settings());
}

/// Saves the weights in each of their places. Returns whether all of it could be.
bool Rank::save(const std::vector<StateArray>& arrays, const std::string& steps) {
  bool saved = true;
  for (const std::string& path : {directory_->file(checkpoint_file), spec_.training.save})
    if (!path.empty())
      saved = troubles_.attempt([&] { save_state(path, arrays, metadata(steps)); }) && saved;
  return saved;
}

void Rank::note_ledger(const net::ParameterExchange& wire) {
  if (!wire.ledger_trouble().empty()) troubles_.add(wire.ledger_trouble());
}

/// Every rank checks the last weights that it holds: all of them, so that all ranks end alike, or
/// those of its part where the network is cut.
void Rank::require_sound_weights(const std::optional<Accuracy>& accuracy) const {
  const bool trained = spec_.training.trains();
  if (trained && !spoilt_.empty()) throw diverged("after the last step", spoilt_);
  if (accuracy) require_finite(*accuracy, *network_);
  if (!spoilt_.empty()) throw Error(spec_.training.weights + ": " + spoilt_ + " is not finite");
}

}  // namespace duplex::tools
