#include "tools/flags/training_flags.h"

#include <sstream>

#include "core/error.h"
#include "tools/flags/command_line.h"
#include "tools/prediction/layer_times.h"
#include "tools/text/host_name.h"

namespace duplex::tools {

void TrainingFlags::add_to(CLI::App& app) {
  const CLI::Validator count = between(0, 1 << 30);
  model.add_to(app);
  app.footer(
      "A pixel is (value / 255 - mean) / stddev: for colour, mean 0.485, 0.456, 0.406 and\n"
      "stddev 0.229, 0.224, 0.225; for grey, 0.2860 and 0.3530. Batch normalisation has epsilon\n"
      "1e-5 and momentum 0.1. GoogLeNet's training loss includes its auxiliary classifiers if "
      "they\n"
      "are asked for; the loss of dist is over the first worker's samples.");
  app.add_option(
      "--datadir", datadir,
      "folder of images (a folder a class), packed file, or folder of IDX files; images are "
      "squashed to the input's size, whatever EXIF says of their orientation, without alpha");
  app.add_option("--logdir", logdir,
                 "run directory (default: runs/, named by command, net and time)");
  app.add_option("--weights", weights, "safetensors file to start from");
  app.add_option("--save", save, "safetensors file to write the trained weights to");
  app.add_flag("--accuracy", accuracy, "test top-1 and top-5 accuracy after training");
  app.add_option("--test-every", test_every,
                 "test every so many epochs too, for accuracy.csv; no step's time counts it (with "
                 "--sync none the other workers go on meanwhile)")
      ->check(between(1, 1 << 30));
  app.add_flag("--profile", profile,
               "seconds a layer, forward and backward, as a table and profile.json");
  app.add_option(
         "--epochs", epochs,
         "times through the training part (default 1, unless --batches are given); the run ends "
         "with the last whole batch")
      ->check(count);
  app.add_option("--batches", batches,
                 "how many batches, however many epochs that is; with --epochs, whichever ends "
                 "first")
      ->check(count);
  app.add_option("--batch", batch, "images a batch (default 32)")->check(positive());
  app.add_option("--optimizer", optimiser, "sgd or adam (default sgd)")
      ->check(CLI::IsMember({"sgd", "adam"}));
  app.add_option("--lr", rate, "learning rate (default 0.01; adam 0.001)")->check(at_least(0));
  app.add_option("--lr-steps", rate_steps,
                 "updates (with --sync none: of each worker) after which the learning rate drops")
      ->delimiter(',')
      ->check(count);
  app.add_option("--lr-factor", rate_factor, "factor by which it drops (default 0.1)")
      ->check(at_least(0));
  app.add_option("--warmup", warmup, "updates over which the learning rate rises to its value")
      ->check(count);
  app.add_option("--momentum", spec.momentum, "sgd (default 0)")->check(between(0.0, 1.0));
  app.add_flag("--nesterov", spec.nesterov, "sgd: Nesterov's momentum");
  app.add_option("--weight-decay", spec.weight_decay, "L2 (default 0)")->check(at_least(0));
  app.add_flag("--mirror", mirror, "mirror half of the training images");
  app.add_option(
         "--test-fraction", test_fraction,
         "part of each class kept for testing, where the data set does not say (default 0.2)")
      ->check(between(0.0, 0.9));
  app.add_flag("--strict", strict, "an image that cannot be read ends the run, in tests too");
  app.add_option("--seed", seed, "seed of weights, shuffling, dropout, mirroring (default 1)")
      ->check(at_least(0));
  computing.add_to(app,
                   "; or replay:PROFILE, which waits as long as each layer of profile.json took, "
                   "or replay:SECONDS, a t_grad shared out by multiply-adds");
  app.parse_complete_callback([&app, this] {
    if (optimiser == "adam" && app.count("--lr") == 0) rate = 0.001;
  });
}

void TrainingFlags::resolve() {
  accuracy = accuracy || test_every != 0;
  if (datadir.empty() && !replays()) throw Error("--datadir is required", Exit::usage);
  if (replays()) {
    if (batches == 0) throw Error("--device replay: say how many --batches", Exit::usage);
    if (accuracy || !save.empty() || profile) {
      throw Error(
          "--device replay computes nothing: no --accuracy, --test-every, --save or --profile",
          Exit::usage);
    }
  }
  if (!epochs && batches == 0) epochs = 1;
  spec.kind = optimiser == "adam" ? OptimiserKind::adam : OptimiserKind::sgd;
  if (spec.kind == OptimiserKind::adam && (spec.momentum != 0.0F || spec.nesterov)) {
    throw Error("--momentum and --nesterov belong to sgd; adam has its own", Exit::usage);
  }
  if (spec.nesterov && spec.momentum == 0.0F) {
    throw Error("--nesterov needs --momentum", Exit::usage);
  }
}

LearningRate TrainingFlags::learning_rate() const {
  return {rate, rate_steps, rate_factor, warmup};
}

SetupSpec TrainingFlags::setup() const {
  SetupSpec spec;
  spec.net = model.net;
  spec.model = model.options;
  spec.datadir = replays() ? "" : datadir;
  spec.test_fraction = test_fraction;
  spec.tests = accuracy;
  spec.dataset_options = [strict = strict](const Shape& sample) {
    datasets::DatasetOptions options;
    options.channels = static_cast<int>(sample.c());
    options.height = static_cast<int>(sample.h());
    options.width = static_cast<int>(sample.w());
    options.strict = strict;
    return options;
  };
  return spec;
}

bool TrainingFlags::replays() const {
  return !replay_source(computing.device).empty();
}

RunConfig TrainingFlags::config(const std::string& command, const TrainingSetup& setup,
                                const Device* device) const {
  RunConfig config = model.config(setup.model);
  config.command = command;
  config.host = host_name();
  if (setup.data) {
    config.data = DataConfig{datadir, setup.data->description(), setup.split.train.size(),
                             setup.split.test.size()};
  }
  config.settings = settings();
  config.batch = batch;
  config.epochs = epochs;
  config.seed = seed;
  config.device = device != nullptr ? device->description() : computing.device;
  config.replayed = device == nullptr;
  return config;
}

std::string TrainingFlags::settings() const {
  std::ostringstream text;
  text.precision(7);  // A float has so many digits: 0.9 prints as 0.9.
  text << "optimizer " << optimiser << ", lr " << rate;
  if (spec.momentum != 0.0F)
    text << ", momentum " << spec.momentum << (spec.nesterov ? " (nesterov)" : "");
  if (spec.weight_decay != 0.0F) text << ", weight decay " << spec.weight_decay;
  if (warmup != 0) text << ", warmup " << warmup;
  if (!rate_steps.empty()) {
    text << ", lr factor " << rate_factor << ", lr steps";
    for (const std::uint64_t step : rate_steps) text << ' ' << step;
  }
  text << ", batch " << batch;
  if (epochs) text << ", epochs " << *epochs;
  if (batches != 0) text << ", batches " << batches;
  text << ", seed " << seed << ", test fraction " << test_fraction << (mirror ? ", mirror" : "");
  return text.str();
}

}  // namespace duplex::tools
