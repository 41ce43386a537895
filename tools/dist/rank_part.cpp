// The steps of a rank that has a part of a network which is cut.
#include <algorithm>
#include <memory>
#include <utility>

#include "core/error.h"
#include "layers/checkpoint.h"
#include "layers/exchange/host_staging.h"
#include "layers/exchange/mean_gradients.h"
#include "tools/check/machine/host_facts.h"
#include "tools/checkpoint/statistics_report.h"
#include "tools/dist/rank.h"
#include "tools/memory/network_memory.h"
#include "tools/parts/part_replay.h"
#include "tools/parts/part_times.h"
#include "tools/run_directory/run_files.h"
#include "tools/text/table.h"
#include "tools/training/divergence.h"

namespace duplex::tools {
namespace {

/// Returns the name of the first running statistic that is not finite, or "". `statistics` are all
/// of the model's, in the order of its layers.
std::string not_finite(const Model& model, const std::vector<float>& statistics) {
  const float* next = statistics.data();
  for (const Model::Entry& entry : model.nodes())
    for (const ParameterSpec& spec : model.parameters(entry)) {
      if (spec.trained) continue;
      const auto count = static_cast<std::size_t>(spec.shape.elements());
      if (!all_finite(next, count)) return spec.name;
      next += count;
    }
  return "";
}

}  // namespace

/// Throws Error(usage) for what a run of a network that is cut does not do.
void Rank::require_cuttable() const {
  const TrainingSpec& training = spec_.training;
  const ParallelSpec& parallel = spec_.parallel;
  parallel.check_cut("dist");
  const auto refuse = [&](bool given, const std::string& what) {
    if (given)
      throw Error("dist: " + what + " does not go with --strategy " + parallel.strategy,
                  Exit::usage);
  };
  refuse(training.ema > 0.0, "--ema");
  refuse(training.profile, "--profile");
}

/// Cuts the network, where it is to be cut.
std::unique_ptr<CutPart> Rank::cut_part() const {
  if (!spec_.parallel.cuts()) return nullptr;
  require_cuttable();
  const std::uint64_t images = setup_.split.train.size();
  if (!replays() && spec_.training.trains() && spec_.step_samples() > images)
    throw Error("dist: a step takes " + std::to_string(spec_.step_samples()) +
                    " images, and there are " + std::to_string(images) +
                    " to train with: take a smaller --batch",
                Exit::usage);
  CutPartSpec spec =
      CutPartSpec::of(spec_.parallel, spec_.training.batch, spec_.mesh.topology.size);
  spec.rank = spec_.rank();
  return std::make_unique<CutPart>(spec, setup_.model);
}

/// Throws where the networks of this rank's part do not fit into the memory that is left: the
/// kernel would end the rank in the middle of a step, without a word. A GPU says itself what it
/// lacks.
void Rank::require_memory() const {
  const DeviceSpec& computing = spec_.training.computing;
  const std::uint64_t left = available_memory();
  if (is_gpu(computing) || left == 0) return;
  const NetworkPart& part = cut_->part();
  const std::uint64_t networks = cut_->in_flight(spec_.rank());
  const NetworkMemory needed = network_memory(part.model, computing, {part.images, networks, true});
  const std::size_t bytes =
      needed.weights + needed.gradients + needed.statistics + needed.arena + needed.operations.kept;
  if (bytes <= left) return;
  const auto gib = [](std::uint64_t count) {
    return fixed(static_cast<double>(count) / (1U << 30), 1) + " GiB";
  };
  throw Error("dist: the part of rank " + std::to_string(spec_.rank()) + " takes " + gib(bytes) +
              " at least, and this machine has " + gib(left) +
              " left: ask duplex plan --fits for a cut that fits, or take a smaller --batch or "
              "--in-flight, or more machines");
}

/// Makes the networks of the micro-batches that are here at a time.
void Rank::prepare_part() {
  const TrainingSpec& training = spec_.training;
  const Model& whole = setup_.model;
  if (replays()) {
    LayerTimes times = layer_times(replay_source(training.computing.device), whole, training.batch);
    times.scale(static_cast<double>(cut_->samples()) / static_cast<double>(training.batch));
    times_ = part_times(cut_->part(), whole, cut_->samples(), times);
    return;
  }
  require_memory();
  device_ = training.computing.make();
  const std::string& layout = training.computing.layout;
  if (layout != "measured") device_->choose_channels_last(layout == "nhwc");
  try {
    part_networks_ = networks_of(cut_->part(), *device_, cut_->in_flight(spec_.rank()));
  } catch (const Error& error) {
    throw Error("this rank's part, " + std::to_string(cut_->in_flight(spec_.rank())) +
                    " micro-batches of " + std::to_string(cut_->samples()) +
                    " images at a time (--micro-batches, --in-flight): " + error.what(),
                error.code);
  }
  cut_->load(host_, *part_networks_.front());
  if (tests_parts()) part_states_.emplace(*cut_, spec_.rank(), spec_.mesh.topology.size);
}

/// Events of the part's layers count as those of the whole network's.
LayerObserver Rank::part_observer() {
  LayerObserver inner = tracing_.observer();
  if (!inner) return inner;
  std::vector<std::optional<std::size_t>> nodes;
  for (const Model::Entry& entry : cut_->part().model.nodes()) {
    std::optional<std::size_t>& node = nodes.emplace_back();
    const std::string& name = entry.part.layer.empty() ? entry.name : entry.part.layer;
    for (std::size_t i = 1; i < setup_.model.nodes().size(); ++i)
      if (setup_.model.nodes()[i].name == name) node = i;
  }
  return [inner, nodes](std::size_t node, Phase phase, std::int64_t begin, std::int64_t end) {
    if (nodes[node]) inner(*nodes[node], phase, begin, end);
  };
}

TrainingResult Rank::train_part(net::ParameterExchange& wire) {
  const TrainingSpec& training = spec_.training;
  const std::uint64_t micro_batches = spec_.parallel.micro_batches;
  const auto samples = static_cast<std::uint64_t>(cut_->samples());
  PartExchange& parts = cut_->exchange(host_);
  parts.use(wire);
  Schedule schedule;
  std::vector<std::unique_ptr<PartLayers>> slots;
  std::optional<MeanGradients> means;
  std::optional<HostStaging> staging;
  std::optional<datasets::BatchLoader> loader;
  PartRunner::Source source;
  PartRunner::Add add = [micro_batches](std::size_t, std::uint64_t number) {
    return number + 1 == micro_batches;
  };
  if (replays()) {
    schedule.steps = schedule.epoch_samples = training.batches.value();
    slots = replayed_layers(cut_->part(), times_, cut_->in_flight(spec_.rank()), part_observer());
    source = [] { return MicroBatch(); };
  } else {
    // A rank that computes a loss needs the labels of all samples. An image that cannot be decoded
    // changes its label, too.
    const bool all = cut_->has_loss();
    const NetworkPart& part = cut_->part();
    const datasets::Share share{samples, static_cast<std::uint64_t>(all ? 0 : part.first_image),
                                all ? cut_->samples() : part.images};
    datasets::LoaderOptions options = loader_options(training, share);
    options.first_step = from_.steps * micro_batches;
    if (from_.steps > 0) options.first_sample = from_.samples;
    loader.emplace(setup_.split.train, options);
    schedule = schedule_of(training, *loader);
    schedule.step_samples = samples * micro_batches;
    schedule.first_step = from_.steps;
    if (training.epochs) {
      schedule.steps = loader->steps(*training.epochs) / micro_batches;
      if (training.batches) schedule.steps = std::min(schedule.steps, *training.batches);
    }
    if (from_.steps > schedule.steps) throw further_than(schedule.steps);
    for (const auto& network : part_networks_) {
      network->observe(part_observer());
      slots.push_back(std::make_unique<NetworkLayers>(*network));
    }
    means.emplace(*part_networks_.front(), micro_batches);
    staging.emplace(*part_networks_.front(), host_, parts, Pushes::gradients, 0,
                    static_cast<int>(micro_batches));
    for (const Model::Linear& layer : host_.factored())
      for (const auto& network : part_networks_) network->leave_gradients(layer.node);
    add = [&](std::size_t p, std::uint64_t number) {
      const Network& computed = *part_networks_[number % part_networks_.size()];
      const bool factors = staging->computed_by(computed, p, static_cast<std::int64_t>(number));
      return factors ? number + 1 == micro_batches : means->add(p, number);
    };
    source = [&loader, &part, share, image = setup_.model.shape(0).elements()] {
      const datasets::Batch& batch = loader->next();
      const std::int64_t first = part.first_image - static_cast<std::int64_t>(share.offset);
      return MicroBatch{part.reads ? batch.pixels + first * image : nullptr, batch.labels,
                        share.count, batch.first_sample - share.offset};
    };
  }
  PartRunner runner(cut_->part().model, std::move(slots), micro_batches, training.seed, add);
  PartComputation computation(
      runner, source, wire.maps(), replays() ? LossRoutes() : cut_->loss_routes(),
      replays() ? nullptr : part_networks_.front().get(),
      [steps = schedule.steps](std::uint64_t step) { return looks_for_nan(step, steps); });
  Exchange& exchange = staging ? static_cast<Exchange&>(*staging) : parts;
  LoopSpec loop = loop_spec(schedule, wire);
  if (checkpoints_)
    loop.checkpoint = [this](std::uint64_t steps, const std::function<void()>& await_weights) {
      return checkpoints_->after(steps, await_weights);
    };
  if (part_states_) {
    if (leads()) make_whole_tester(schedule, [&wire] { wire.progress_made(); });
    loop.test = [&](std::uint64_t steps) {
      if (wire.ends_at(steps)) return true;  // The last weights are tested in the end.
      Network& own = *part_networks_.front();
      if (!leads()) {
        part_states_->send(wire, steps, own);
        return true;
      }
      const PartStates::Whole whole = part_states_->take(wire, steps, host_, own);
      load_whole(whole.weights, whole.statistics);
      if (tester_->reaches(steps, training.until)) checkpoints_->end_training();
      return true;
    };
  }
  const TrainingResult result = train(computation, exchange, loop, troubles_);
  if (loader && result.steps > 0) report_replaced(loader->replaced());
  part_schedule_ = schedule;
  return result;
}

/// On the first rank: puts the network together that all of them have trained, saves it, and makes
/// it ready for tests if there are to be any.
void Rank::keep_whole(std::vector<std::string>& reports, std::uint64_t steps) {
  part_networks_.clear();  // Both would not fit where one did.
  const HostParameters& host = cut_->whole_weights(host_);
  std::vector<const float*> weights;
  for (const Span& span : host.spans()) weights.push_back(span.weights);
  const std::vector<float> statistics =
      cut_->whole_statistics([&reports](int rank, std::size_t count) {
        return tools::take_statistics(reports[static_cast<std::size_t>(rank)], count);
      });
  if (spoilt_.empty()) spoilt_ = host.not_finite();
  if (spoilt_.empty()) spoilt_ = not_finite(setup_.model, statistics);
  if (steps > 0 && spoilt_.empty())
    save(checkpoint_arrays(setup_.model, weights, statistics), std::to_string(steps));
  if (!spec_.training.accuracy) return;
  if (!tester_) make_whole_tester(part_schedule_);
  load_whole(host, statistics);
}

/// On the first rank: makes the whole network, to test it.
void Rank::make_whole_tester(const Schedule& schedule, std::function<void()> after_batch) {
  const std::int64_t batch = std::min<std::int64_t>(cut_->samples(), spec_.training.batch);
  network_ = spec_.training.computing.build(setup_.model, *device_, batch, false);
  make_tester(schedule, std::move(after_batch));
}

void Rank::load_whole(const HostParameters& weights, const std::vector<float>& statistics) {
  for (std::size_t p = 0; p < weights.spans().size(); ++p)
    device_->upload(network_->parameters()[p].weights, weights.spans()[p].weights);
  const float* next = statistics.data();
  for (Parameter& statistic : network_->statistics()) {
    device_->upload(statistic.weights, next);
    next += statistic.spec.shape.elements();
  }
}

}  // namespace duplex::tools
