// duplex local trains on one machine (Appendix C.1).
#include <cstdio>

#include "core/error.h"
#include "core/files/output_file.h"
#include "layers/checkpoint.h"
#include "layers/exchange/accumulating_exchange.h"
#include "layers/exchange/local_exchange.h"
#include "layers/exchange/moving_average.h"
#include "tools/checkpoint/checkpoints.h"
#include "tools/checkpoint/signal_thread.h"
#include "tools/checkpoint/stop_signals.h"
#include "tools/commands.h"
#include "tools/display/learning_curves.h"
#include "tools/flags/command_line.h"
#include "tools/flags/device_flags.h"
#include "tools/flags/training_flags.h"
#include "tools/run_directory/run_files.h"
#include "tools/setup/setup.h"
#include "tools/setup/weights_file.h"
#include "tools/tensorboard/training_events.h"
#include "tools/text/peak_memory.h"
#include "tools/text/table.h"
#include "tools/training/divergence.h"
#include "tools/training/loop.h"
#include "tools/training/network_computation.h"
#include "tools/training/profile.h"
#include "tools/training/staging.h"
#include "tools/training/tester.h"

namespace duplex::tools {
namespace {

const std::string command = "local";

/// The weights to start from. A run that only tests also takes weights that are not finite.
void fill(Network& network, const TrainingSpec& spec) {
  if (spec.weights.empty()) {
    network.initialise(spec.seed);
    return;
  }
  load_checkpoint(spec.weights, network);
  const std::string name = network.not_finite();
  if (!name.empty() && (spec.trains() || !spec.accuracy))
    throw Error(spec.weights + ": " + name + " is not finite; train from another checkpoint");
}

/// A schedule in which every update has all of its batches.
Schedule schedule_of(const TrainingSpec& spec, const datasets::BatchLoader& loader,
                     std::uint64_t accumulate) {
  Schedule schedule = schedule_of(spec, loader);
  schedule.steps_per_update = schedule.steps_per_round = accumulate;
  if (schedule.steps < accumulate && schedule.steps > 0) {
    throw Error("local: --accumulate " + std::to_string(accumulate) + ": the run has only " +
                    std::to_string(schedule.steps) + " batches",
                Exit::usage);
  }
  schedule.steps -= schedule.steps % accumulate;
  return schedule;
}

void print_start(const TrainingSetup& setup, const Device& device, const std::string& layout) {
  std::printf(
      "%s, %s parameters, %lld classes; %s\n%s: %s for training, %s for testing,\nfrom %s\n",
      setup.model.title().c_str(), grouped(setup.model.trained_parameters()).c_str(),
      static_cast<long long>(setup.model.classes()), device.description().c_str(),
      setup.data->contents().c_str(),
      grouped(static_cast<std::int64_t>(setup.split.train.size())).c_str(),
      grouped(static_cast<std::int64_t>(setup.split.test.size())).c_str(),
      setup.data->source().c_str());
  if (!layout.empty()) std::printf("%s\n", layout.c_str());
  std::fflush(stdout);
}

/// Saves what can be saved: the weights may have two places. `average` may be null. `updates`:
/// those that the steps are.
void save(const TrainingSpec& spec, const TrainingSetup& setup, const RunDirectory& directory,
          Network& network, const MovingAverage* average, std::uint64_t steps,
          std::uint64_t updates, Troubles& troubles) {
  const std::map<std::string, std::string> metadata =
      weights_metadata(spec, setup, spec.batch, std::to_string(steps), spec.settings());
  const auto save_to = [&](const std::string& path) {
    troubles.attempt([&] { save_checkpoint(path, network, metadata); });
  };
  save_to(directory.file(checkpoint_file));
  if (!spec.save.empty()) save_to(spec.save);
  if (average != nullptr)
    average->replace(network, updates, [&] { save_to(directory.file(ema_file)); });
}

/// The checkpoint to go on from; none: the training begins.
std::optional<Checkpoint> resumed(const TrainingSpec& spec, const std::string& settings) {
  if (!spec.resume) return std::nullopt;
  const CheckpointFiles files(spec.logdir, 0, 1, settings);
  const std::vector<Checkpoint> whole = files.whole();
  if (whole.empty() && files.any())
    throw Error("--resume: none of the checkpoints in " + spec.logdir +
                " can be used; remove them to begin anew");
  if (whole.empty()) {
    if (!spec.quiet)
      std::fprintf(stderr, "there is no checkpoint in %s yet: the training begins\n",
                   spec.logdir.c_str());
    return std::nullopt;
  }
  if (!spec.quiet)
    std::fprintf(stderr, "goes on after %s steps, from %s\n",
                 grouped(static_cast<std::int64_t>(whole.front().steps)).c_str(),
                 whole.front().path().c_str());
  return whole.front();
}

/// Says how to go on with a training that a signal has ended. Returns the exit code.
int stopped(const RunDirectory& directory, std::uint64_t steps) {
  const int signal = StopSignals::stop();
  std::printf("stopped  by %s after %s steps; the same command with --resume --logdir %s goes on\n",
              signal_name(signal), grouped(static_cast<std::int64_t>(steps)).c_str(),
              directory.path().c_str());
  return 128 + signal;
}

/// Trains, tests and writes the run's files. Returns the program's exit code.
int run(TrainingSpec spec, std::uint64_t accumulate) {
  Troubles troubles;
  std::optional<TrainingEvents> events;
  if (!spec.tensorboard.empty()) events.emplace(spec.tensorboard, spec.resume, troubles);
  const TrainingSetup setup = open_training(spec);
  set_updates(spec.rate,
              steps_of(spec, setup, static_cast<std::uint64_t>(spec.batch)) / accumulate);
  const std::string settings = resumable_settings(
      spec, setup, accumulate > 1 ? ", accumulate " + std::to_string(accumulate) : "");
  const std::optional<Checkpoint> from = resumed(spec, settings);
  const std::uint64_t first = from ? from->steps : 0;
  const auto device = spec.computing.make();
  datasets::LoaderOptions reading = loader_options(spec, datasets::join_share(spec.batch));
  reading.first_step = first;
  datasets::BatchLoader loader(setup.split.train, reading);
  const Schedule schedule = schedule_of(spec, loader, accumulate);
  if (first > schedule.steps)
    throw Error("local: " + from->path() + " is further than the " +
                    std::to_string(schedule.steps) +
                    " batches of this run: give more --batches or --epochs",
                Exit::usage);
  std::string layout;
  const auto built = spec.computing.build(setup.model, *device, spec.batch, spec.trains(), &layout);
  Network& network = *built;
  if (!from) fill(network, spec);
  LocalExchange updating(network, spec.optimiser, spec.rate);
  std::vector<StateArray> arrays = state_of(network);
  for (StateArray& array : updating.state()) arrays.push_back(std::move(array));
  std::optional<MovingAverage> average;
  if (spec.ema > 0.0) {
    average.emplace(setup.model.trained(), spec.ema);
    for (StateArray& array : average->state()) arrays.push_back(std::move(array));
  }
  if (from) load_state(from->path(), arrays, setup.model.title());
  const RunDirectory directory(spec.logdir, command, spec.model.net, {config_file}, {},
                               spec.resume);
  RunConfig config = config_of(spec, command, setup, device.get());
  config.accumulate = accumulate;
  directory.write(config_file, text_of(config));
  const CheckpointFiles files(directory.path(), 0, 1, settings);
  if (spec.resume) {
    files.remove_after(first);       // They cannot be used.
    directory.remove(summary_file);  // The run has not ended any more.
  }
  if (spec.resume && !from)
    for (const char* file : files_of_the_first_worker) directory.set_aside(file);
  print_start(setup, *device, layout);

  std::unique_ptr<Profile> profile;
  if (spec.profile) profile = std::make_unique<Profile>(network, schedule.warm_up_after(first));
  std::vector<float> awaited;
  std::optional<MovingAverageExchange> averaging;
  if (average)
    averaging.emplace(updating, *average, network.parameters().size(), [&](std::size_t parameter) {
      const Tensor& weights = network.parameters()[parameter].weights;
      awaited.resize(static_cast<std::size_t>(weights.desc.shape.elements()));
      network.named({}, [&] { device->download(awaited.data(), weights); });
      return awaited.data();
    });
  Exchange& updates = averaging ? static_cast<Exchange&>(*averaging) : updating;
  AccumulatingExchange exchange(network, updates, accumulate);
  Tester tester(network, setup.split.test, directory, schedule, test_options(spec), first, troubles,
                spec.display);
  if (average) tester.average(*average);
  NetworkComputation computation(
      network, batches_of(loader), spec.seed,
      [steps = schedule.steps](std::uint64_t step) { return looks_for_nan(step, steps); });
  if (spec.display.rewrites()) computation.count_hits();
  LoopSpec loop;
  loop.schedule = schedule;
  loop.first = first;
  loop.rate = spec.rate;
  loop.batch = spec.batch;
  loop.metrics_path = directory.file(metrics_file);
  loop.display = spec.display;
  if (events) {
    events->begin(first, spec.batch);
    loop.after_step = [&](const StepMetrics& row) { events->step(row); };
    tester.tell([&](const AccuracyRow& row) { events->test(row); });
  }
  bool reached = spec.until && tester.has_reached(*spec.until);
  if (reached) loop.end = first;  // It goes on from there, and has nothing more to train.
  loop.test = [&](std::uint64_t steps) { return !(reached = tester.reaches(steps, spec.until)); };
  CheckpointWriter checkpoints(files, spec.checkpoints, first, std::move(arrays), troubles,
                               weights_metadata(spec, setup, spec.batch, "", ""));
  loop.checkpoint = [&](std::uint64_t steps, const std::function<void()>& await_weights) {
    return checkpoints.after(steps, await_weights);
  };
  TrainingResult result;
  {
    const StopSignals signals;
    result = train(computation, exchange, loop, troubles);
    if (result.steps < schedule.steps && !reached) return stopped(directory, result.steps);
  }
  const std::string spoilt = schedule.steps > 0 ? network.not_finite() : "";
  if (schedule.steps > 0) report_replaced(loader.replaced());

  if (schedule.steps > 0 && spoilt.empty()) {
    save(spec, setup, directory, network, average ? &*average : nullptr, result.steps,
         result.steps / accumulate, troubles);
    if (spec.checkpoints.any() || spec.resume) checkpoints.finish(result.steps);
  }
  RunSummary summary;
  summary.training = result;
  summary.command = command;
  summary.workers = 1;
  summary.peak_memory_bytes = peak_memory_bytes();
  if (!device->asynchronous() && spec.trains()) {
    const StagingTimes staging = measure_staging(network);
    summary.gradients_down = staging.download;
    summary.weights_up = staging.upload;
    summary.sample_processor = loader.processor_seconds_a_sample();
  }
  std::fputs(report_of(result, spec.batch, true).c_str(), stdout);
  std::fputs(learning_report_of(result, setup.model).c_str(), spec.quiet ? stderr : stdout);
  if (profile && result.steps > first) {
    directory.write(profile_file, text_of(profile->file()));
    std::fputs((data_report_of(result) + profile->report()).c_str(), stdout);
  }
  std::optional<Accuracy> accuracy;
  if (spec.accuracy) {
    accuracy = tester.test(result.steps);
    summary.accuracy = summary_of(*accuracy);
  }
  if (spec.until) {
    summary.reached = time_to_accuracy(directory.path(), *spec.until, std::nullopt, {});
    std::fputs(reached_report(*spec.until, summary.reached).c_str(), stdout);
  }
  show_learning_curves(directory.path(), spec.display);
  directory.write(summary_file, text_of(summary));
  std::printf("run      %s\n", directory.path().c_str());
  if (!spoilt.empty()) throw diverged("after the last step", spoilt);
  if (accuracy) require_finite(*accuracy, network);
  troubles.raise();
  return 0;
}

}  // namespace

int local(int argc, const char* const* argv) {
  CommandLine app{"Trains a network on this machine; measures t_grad, layer by layer if asked.",
                  "duplex local"};
  TrainingFlags flags;
  flags.add_to(app);
  add_graphs_flag(app, flags.spec.computing);
  std::uint64_t accumulate = 1;
  app.add_option(
         "--accumulate", accumulate,
         "batches whose mean gradient makes one update, as with as many workers (default 1)")
      .check(between(1, 1 << 20));
  if (const auto done = parse(app, argc, argv)) return *done;
  const SignalThread signal_thread;
  StopSignals::catch_checkpoint_requests();
  flags.resolve();
  if (flags.spec.replays()) {
    throw Error("local: --device replay has nothing to wait for alone; it is for dist",
                Exit::usage);
  }
  if (flags.spec.quiet) silence_standard_output();
  if (!flags.spec.save.empty()) const OutputFile writable(flags.spec.save);
  return run(flags.spec, accumulate);
}

}  // namespace duplex::tools
