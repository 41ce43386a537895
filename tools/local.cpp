// duplex local: training on one machine (Appendix C.1).
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/output_file.h"
#include "layers/accumulating_exchange.h"
#include "layers/checkpoint.h"
#include "layers/local_exchange.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/finite.h"
#include "tools/network_steps.h"
#include "tools/peak_memory.h"
#include "tools/profile.h"
#include "tools/replay.h"
#include "tools/table.h"
#include "tools/tester.h"
#include "tools/training.h"

namespace duplex::tools {

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
  flags.settle();

  if (!replay_source(flags.computing.device).empty()) {
    throw Error("local: --device replay has nothing to wait for alone; it is for dist",
                Exit::usage);
  }
  if (!flags.save.empty()) const OutputFile writable(flags.save);
  Task task = open_task(flags);
  const auto device = flags.computing.make();
  datasets::LoaderOptions loading;
  loading.share = datasets::join_share(flags.batch);
  loading.seed = flags.seed;
  loading.mirror = flags.mirror;
  loading.strict = flags.strict;
  loading.threads = loader_threads();
  datasets::BatchLoader loader(task.split.train, loading);
  std::string layout;
  const auto built =
      flags.computing.build(task.model, *device, flags.batch, flags.epochs > 0, &layout);
  Network& network = *built;
  if (flags.weights.empty()) {
    network.initialise(flags.seed);
  } else {
    load_checkpoint(flags.weights, network);
    const std::string name = network.not_finite();
    if (!name.empty() && !(flags.epochs == 0 && flags.accuracy)) {
      throw Error(flags.weights + ": " + name + " is not finite; train from another checkpoint");
    }
  }
  const RunDirectory directory(flags.logdir, "local", flags.model.net);
  nlohmann::ordered_json config = config_of(flags, task, device.get());
  config["command"] = "local";
  config["accumulate"] = accumulate;
  directory.write("config.json", config.dump(1) + "\n");
  std::printf(
      "%s, %s parameters, %lld classes; %s\n%s: %s for training, %s for testing,\nfrom %s\n",
      task.model.title().c_str(), grouped(task.model.trained_parameters()).c_str(),
      static_cast<long long>(task.model.classes()), device->description().c_str(),
      task.data->contents().c_str(),
      grouped(static_cast<std::int64_t>(task.split.train.size())).c_str(),
      grouped(static_cast<std::int64_t>(task.split.test.size())).c_str(),
      task.data->source().c_str());
  if (!layout.empty()) std::printf("%s\n", layout.c_str());
  std::fflush(stdout);

  Length length = length_of(flags, loader);
  length.steps_per_update = accumulate;
  if (length.steps < accumulate && length.steps > 0) {
    throw Error("local: --accumulate " + std::to_string(accumulate) + ": the run has only " +
                    std::to_string(length.steps) + " batches",
                Exit::usage);
  }
  length.steps_per_round = accumulate;
  length.steps -= length.steps % accumulate;
  std::unique_ptr<Profile> profile;
  if (flags.profile) profile = std::make_unique<Profile>(network, warm_up_steps(length.steps));
  LocalExchange updating(network, flags.spec, flags.learning_rate());
  AccumulatingExchange exchange(network, updating, accumulate);
  Tester tester(network, task.split.test, directory, length, flags.strict);
  const TrainingResult result =
      train(network_steps(network, loader, flags.seed), flags.batch, exchange, flags, length,
            &directory, true, [&](std::uint64_t steps) { tester.test_between(steps); });
  const std::string spoilt = length.steps > 0 ? network.not_finite() : "";
  report_replaced(loader);

  nlohmann::ordered_json summary = json_of(result);
  summary["version"] = 1;
  summary["command"] = "local";
  summary["workers"] = 1;
  summary["peak_memory_bytes"] = peak_memory_bytes();
  if (length.steps > 0 && spoilt.empty()) {
    const std::map<std::string, std::string> metadata{{"network", flags.model.net},
                                                      {"steps", std::to_string(length.steps)},
                                                      {"settings", flags.settings()}};
    save_checkpoint(directory.file("checkpoint.safetensors"), network, metadata);
    if (!flags.save.empty()) save_checkpoint(flags.save, network, metadata);
  }
  std::fputs(report_of(result, flags.batch, true).c_str(), stdout);
  if (profile && length.steps > 0) {
    directory.write("profile.json", profile->json());
    std::printf("%s\n%s\n", data_report_of(result).c_str(), profile->table().c_str());
  }
  std::optional<Accuracy> accuracy;
  if (flags.accuracy) {
    accuracy = tester.test(length.steps);
    summary["accuracy"] = json_of(*accuracy);
  }
  directory.write("summary.json", summary.dump(1) + "\n");
  std::printf("run      %s\n", directory.path().c_str());
  if (!spoilt.empty()) throw diverged("after the last step", spoilt);
  if (accuracy) require_finite(*accuracy, network);
  return 0;
}

}  // namespace duplex::tools
