// duplex local trains on one machine (Appendix C.1).
#include <cstdio>

#include "core/error.h"
#include "core/files/output_file.h"
#include "layers/checkpoint.h"
#include "layers/exchange/accumulating_exchange.h"
#include "layers/exchange/local_exchange.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/flags/training_flags.h"
#include "tools/run_directory/run_files.h"
#include "tools/text/peak_memory.h"
#include "tools/text/table.h"
#include "tools/training/divergence.h"
#include "tools/training/loop.h"
#include "tools/training/network_computation.h"
#include "tools/training/profile.h"
#include "tools/training/setup.h"
#include "tools/training/tester.h"

namespace duplex::tools {
namespace {

const std::string command = "local";

}  // namespace

int local(int argc, const char* const* argv) {
  CLI::App app{"Trains a network on this machine; measures t_grad, layer by layer if asked.",
               "duplex local"};
  TrainingFlags flags;
  flags.add_to(app);
  std::uint64_t accumulate = 1;
  app.add_option(
         "--accumulate", accumulate,
         "batches whose mean gradient makes one update, as with as many workers (default 1)")
      ->check(between(1, 1 << 20));
  if (const auto done = parse(app, argc, argv)) return *done;
  flags.resolve();

  if (flags.replays()) {
    throw Error("local: --device replay has nothing to wait for alone; it is for dist",
                Exit::usage);
  }
  if (!flags.save.empty()) const OutputFile writable(flags.save);
  TrainingSetup setup = open_training(flags.setup());
  const auto device = flags.computing.make();
  datasets::LoaderOptions loading;
  loading.share = datasets::join_share(flags.batch);
  loading.seed = flags.seed;
  loading.mirror = flags.mirror;
  loading.strict = flags.strict;
  loading.threads = loader_threads();
  datasets::BatchLoader loader(setup.split.train, loading);
  std::string layout;
  const auto built =
      flags.computing.build(setup.model, *device, flags.batch, flags.trains(), &layout);
  Network& network = *built;
  if (flags.weights.empty()) {
    network.initialise(flags.seed);
  } else {
    load_checkpoint(flags.weights, network);
    const std::string name = network.not_finite();
    if (!name.empty() && !(!flags.trains() && flags.accuracy)) {
      throw Error(flags.weights + ": " + name + " is not finite; train from another checkpoint");
    }
  }
  const RunDirectory directory(flags.logdir, command, flags.model.net, config_file);
  RunConfig config = flags.config(command, setup, device.get());
  config.accumulate = accumulate;
  directory.write(config_file, text_of(config));
  std::printf(
      "%s, %s parameters, %lld classes; %s\n%s: %s for training, %s for testing,\nfrom %s\n",
      setup.model.title().c_str(), grouped(setup.model.trained_parameters()).c_str(),
      static_cast<long long>(setup.model.classes()), device->description().c_str(),
      setup.data->contents().c_str(),
      grouped(static_cast<std::int64_t>(setup.split.train.size())).c_str(),
      grouped(static_cast<std::int64_t>(setup.split.test.size())).c_str(),
      setup.data->source().c_str());
  if (!layout.empty()) std::printf("%s\n", layout.c_str());
  std::fflush(stdout);

  Schedule schedule = schedule_of(loader, flags.epochs, flags.batches, flags.test_every);
  schedule.steps_per_update = accumulate;
  if (schedule.steps < accumulate && schedule.steps > 0) {
    throw Error("local: --accumulate " + std::to_string(accumulate) + ": the run has only " +
                    std::to_string(schedule.steps) + " batches",
                Exit::usage);
  }
  schedule.steps_per_round = accumulate;
  schedule.steps -= schedule.steps % accumulate;
  std::unique_ptr<Profile> profile;
  if (flags.profile) profile = std::make_unique<Profile>(network, schedule.warm_up());
  LocalExchange updating(network, flags.spec, flags.learning_rate());
  AccumulatingExchange exchange(network, updating, accumulate);
  Tester tester(network, setup.split.test, directory, schedule, flags.strict);
  NetworkComputation computation(network, batches_of(loader), flags.seed, looks_for_nan);
  LoopSpec loop;
  loop.schedule = schedule;
  loop.rate = flags.learning_rate();
  loop.batch = flags.batch;
  loop.metrics_path = directory.file(metrics_file);
  loop.show = true;
  loop.test = [&](std::uint64_t steps) { tester.test_between(steps); };
  const TrainingResult result = train(computation, exchange, loop);
  const std::string spoilt = schedule.steps > 0 ? network.not_finite() : "";
  report_replaced(loader);

  RunSummary summary;
  summary.training = result;
  summary.command = command;
  summary.workers = 1;
  summary.peak_memory_bytes = peak_memory_bytes();
  if (schedule.steps > 0 && spoilt.empty()) {
    const std::map<std::string, std::string> metadata{{"network", flags.model.net},
                                                      {"steps", std::to_string(schedule.steps)},
                                                      {"settings", flags.settings()}};
    save_checkpoint(directory.file(checkpoint_file), network, metadata);
    if (!flags.save.empty()) save_checkpoint(flags.save, network, metadata);
  }
  std::fputs(report_of(result, flags.batch, true).c_str(), stdout);
  std::fputs(learning_report_of(result, setup.model).c_str(), stdout);
  if (profile && schedule.steps > 0) {
    directory.write(profile_file, text_of(profile->file()));
    std::printf("%s\n%s\n", data_report_of(result).c_str(), profile->table().c_str());
  }
  std::optional<Accuracy> accuracy;
  if (flags.accuracy) {
    accuracy = tester.test(schedule.steps);
    summary.accuracy = summary_of(*accuracy);
  }
  directory.write(summary_file, text_of(summary));
  std::printf("run      %s\n", directory.path().c_str());
  if (!spoilt.empty()) throw diverged("after the last step", spoilt);
  if (accuracy) require_finite(*accuracy, network);
  return 0;
}

}  // namespace duplex::tools
