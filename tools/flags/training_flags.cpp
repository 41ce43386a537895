#include "tools/flags/training_flags.h"

#include "core/error.h"
#include "core/files/own_files.h"
#include "tools/flags/command_line.h"
#include "tools/flags/device_flags.h"
#include "tools/flags/model_flags.h"

namespace duplex::tools {
namespace {

/// "100" batches, or "90s", "15m", "2h". Throws Error(Exit::usage) for anything else.
CheckpointPlan parse_checkpoint_every(const std::string& text) {
  const std::pair<char, double> units[] = {{'s', 1.0}, {'m', 60.0}, {'h', 3600.0}};
  CheckpointPlan plan;
  if (read_number(text, plan.steps) && plan.steps > 0 && text[0] != '-') return plan;
  plan.steps = 0;
  for (const auto& [unit, factor] : units) {
    double value = 0.0;
    if (text.size() < 2 || text.back() != unit ||
        !read_number(text.substr(0, text.size() - 1), value) ||
        !(value * factor >= 1.0 && value * factor <= 1e8))
      continue;
    plan.seconds = value * factor;
    return plan;
  }
  throw Error("--checkpoint-every '" + text +
                  "' is neither a number of batches nor a time such as "
                  "90s, 15m or 2h",
              Exit::usage);
}

/// "0.08:1". Throws Error(Exit::usage) for anything else.
datasets::CropRange parse_crop(const std::string& text) {
  datasets::CropRange range;
  const std::size_t colon = text.find(':');
  const auto refuse = [&text](const std::string& why) {
    throw Error("--crop '" + text + "' " + why, Exit::usage);
  };
  if (colon == std::string::npos || !read_number(text.substr(0, colon), range.least) ||
      !read_number(text.substr(colon + 1), range.most))
    refuse("is no range of parts of an image's area, such as 0.08:1");
  if (!(range.least > 0.0 && range.least <= 1.0 && range.most > 0.0 && range.most <= 1.0))
    refuse("leaves the range of parts of an image's area, which are above 0 and at most 1");
  if (range.least > range.most) refuse("is reversed: the least part comes first, as in 0.08:1");
  return range;
}

}  // namespace

void TrainingFlags::add_to(CommandLine& app) {
  app_ = &app;
  const Rule count = between(0, 1 << 30);
  add_model_flags(app, spec.model);
  app.footer(
      "A pixel is (value / 255 - mean) / stddev. Unless told otherwise they are, for\n"
      "colour, mean 0.485, 0.456, 0.406 and stddev 0.229, 0.224, 0.225; for grey,\n"
      "0.2860 and 0.3530. Batch normalisation has epsilon 1e-5 and momentum 0.1.\n"
      "GoogLeNet's training loss includes its auxiliary classifiers if they are asked\n"
      "for; the loss of dist is over the first worker's samples, and over all where\n"
      "--strategy cuts the network.");
  app.add_option(
      "--datadir", spec.datadir,
      "folder of images (a folder a class), packed file, or folder of IDX files; images are "
      "squashed to the input's size unless cropped, whatever EXIF says of their orientation, "
      "without alpha");
  app.add_option("--logdir", spec.logdir,
                 "run directory (default: runs/, named by command, net and time)");
  app.add_option("--weights", spec.weights, "safetensors file to start from");
  app.add_option("--save", spec.save, "safetensors file to write the trained weights to");
  app.add_flag("--accuracy", spec.accuracy, "test top-1 and top-5 accuracy after training");
  app.add_flag("--profile", spec.profile,
               "seconds a layer, forward and backward, as a table and profile.json; of dist, the "
               "first worker's");
  app.add_option("--test-every", spec.test_every,
                 "test every so many epochs too, such as 1 or 0.25, for accuracy.csv; no step's "
                 "time counts it (with --sync none the other workers go on meanwhile, with "
                 "--average the test is of the next mean)")
      .check(between(0.001, 1 << 30));
  app.add_option("--until", until,
                 "end the training when a test reaches an accuracy, such as top1:0.88 or "
                 "top5:0.98, and say what that took; tests every epoch, unless --test-every says "
                 "otherwise");
  app.add_option(
         "--epochs", spec.epochs,
         "times through the training part (default 1, unless --batches are given); the run ends "
         "with the last whole batch")
      .check(count);
  app.add_option("--batches", spec.batches,
                 "how many batches, however many epochs that is; with --epochs, whichever ends "
                 "first")
      .check(count);
  app.add_option("--batch", spec.batch, "images a batch (default 32)")
      .check(between(1, most_images));
  app.add_option("--optimizer", optimiser, "sgd or adam (default sgd)")
      .check(one_of({"sgd", "adam"}));
  app.add_option("--lr", spec.rate.base, "learning rate (default 0.01; adam 0.001)")
      .check(at_least(0));
  app.add_option("--lr-steps", spec.rate.boundaries,
                 "updates (with --sync none: of each worker) after which the learning rate drops")
      .delimiter(',')
      .check(count);
  app.add_option("--lr-factor", spec.rate.factor, "factor by which it drops (default 0.1)")
      .check(at_least(0));
  app.add_option(
         "--lr-schedule", schedule,
         "steps: the learning rate drops at --lr-steps (default); cosine: behind --warmup it falls "
         "to --lr-min along half a cosine, over all updates of the run")
      .check(one_of({"steps", "cosine"}));
  app.add_option("--lr-min", spec.rate.least,
                 "cosine: the learning rate behind the run's last update (default 0)")
      .check(at_least(0));
  app.add_option("--warmup", spec.rate.warmup,
                 "updates over which the learning rate rises to its value")
      .check(count);
  app.add_option("--momentum", spec.optimiser.momentum, "sgd (default 0)").check(between(0.0, 1.0));
  app.add_flag("--nesterov", spec.optimiser.nesterov, "sgd: Nesterov's momentum");
  app.add_option("--weight-decay", spec.optimiser.weight_decay, "L2 (default 0)")
      .check(at_least(0));
  const Flag clipped = app.add_option(
      "--clip-value", spec.optimiser.clip_value,
      "clip every element of the gradient that an update takes to -V .. V, in dist that of all "
      "workers' mean (with --sync none, and with --average: of each worker)");
  clipped.check(positive());
  app.add_option("--clip-norm", spec.optimiser.clip_norm,
                 "local: scale the gradient of all weights together to this norm, where it is "
                 "greater")
      .check(positive())
      .excludes(clipped);
  app.add_option("--ema", spec.ema,
                 "keep an exponential moving average of the weights with this decay, as in 0.999, "
                 "for ema.safetensors; tests are of it, not of the weights")
      .check(positive());
  app.add_option("--label-smoothing", spec.label_smoothing,
                 "part of each label that is shared out among all classes, in the training's loss "
                 "alone (default 0)")
      .check(between(0.0, 1.0));
  app.add_flag("--mirror", spec.mirror, "mirror half of the training images");
  const Flag cropped = app.add_option(
      "--crop", crop,
      "train on a random part of each image, scaled to the input: LEAST:MOST of its area, as in "
      "0.08:1, with a width of 3/4 to 4/3 of its height; of packed images, a part of what was "
      "packed");
  app.add_option("--pad", spec.pad,
                 "move training images by up to so many pixels in each direction at random; what "
                 "comes into sight is black")
      .check(between(0, 1 << 14))
      .excludes(cropped);
  app.add_option("--test-crop", spec.test_side,
                 "in tests scale an image's shorter side to so many pixels and take the middle "
                 "(default: squash it to the input)")
      .check(between(1, 1 << 14));
  app.add_option("--pixel-mean", spec.pixel_mean,
                 "mean of each channel, as in 0.5,0.5,0.5 (default: see below)")
      .delimiter(',')
      .check(between(0.0, 1.0));
  app.add_option("--pixel-stddev", spec.pixel_stddev, "standard deviation of each channel")
      .delimiter(',')
      .check(between(1e-3, 1.0));
  app.add_option(
         "--test-fraction", spec.test_fraction,
         "part of each class kept for testing, where the data set does not say (default 0.2)")
      .check(between(0.0, 0.9));
  app.add_flag("--strict", spec.strict, "an image that cannot be read ends the run, in tests too");
  app.add_option("--seed", spec.seed,
                 "seed of weights, shuffling, dropout, mirroring, crops (default 1)")
      .check(at_least(0));
  add_device_flags(app, spec.computing,
                   "; or replay:PROFILE, which waits as long as each layer of profile.json took, "
                   "or replay:SECONDS, a t_grad shared out by multiply-adds");
  app.add_option("--checkpoint-every", checkpoint_every,
                 "write a checkpoint every so many batches, or every 90s, 15m or 2h, and at the "
                 "end; the last two are kept in the run directory. SIGUSR1 asks for one, and "
                 "SIGINT and SIGTERM end the training with one");
  app.add_flag("--resume", spec.resume,
               "go on from the newest checkpoint in --logdir, or begin where there is none");
  app.add_flag("--quiet", spec.quiet,
               "show no progress and no results, only what is wrong; the files of the run are "
               "written all the same");
  app.add_option("--tensorboard", spec.tensorboard,
                 "folder to write event files to, which TensorBoard shows while the training goes "
                 "on: loss, learning rate, images a second, accuracy of tests; of dist, bytes on "
                 "the wire, by the first worker");
  app.when_parsed([&app, this] {
    if (optimiser == "adam" && app.count("--lr") == 0) spec.rate.base = 0.001;
  });
}

void TrainingFlags::resolve_rate() {
  LearningRate& rate = spec.rate;
  rate.cosine = schedule == "cosine";
  if (rate.cosine && (app_->count("--lr-steps") > 0 || app_->count("--lr-factor") > 0))
    throw Error("--lr-steps and --lr-factor do not go with --lr-schedule cosine", Exit::usage);
  if (!rate.cosine && app_->count("--lr-min") > 0)
    throw Error("--lr-min needs --lr-schedule cosine", Exit::usage);
  if (rate.cosine && rate.least > rate.base)
    throw Error("--lr-min is above the learning rate, from which it is to fall", Exit::usage);
}

void TrainingFlags::resolve() {
  spec.display = spec.quiet ? Display::quiet() : Display::here();
  if (!checkpoint_every.empty()) spec.checkpoints = parse_checkpoint_every(checkpoint_every);
  if (!until.empty()) spec.until = parse_accuracy_target(until);
  if (spec.until && spec.test_every <= 0.0) spec.test_every = 1.0;
  if (spec.resume && spec.logdir.empty())
    throw Error("--resume: say which run by --logdir", Exit::usage);
  if (spec.resume) spec.model.take_resumed(spec.logdir);
  spec.accuracy = spec.accuracy || spec.test_every > 0.0;
  if (spec.datadir.empty() && !spec.replays()) throw Error("--datadir is required", Exit::usage);
  if (spec.replays()) {
    if (!spec.batches || spec.batches == 0)
      throw Error("--device replay: say how many --batches", Exit::usage);
    if (spec.accuracy || !spec.save.empty() || spec.profile || spec.checkpoints.any() ||
        spec.resume || spec.ema > 0.0)
      throw Error(
          "--device replay computes nothing: no --accuracy, --test-every, --until, --save, "
          "--profile, --checkpoint-every, --resume or --ema",
          Exit::usage);
  }
  if (!spec.epochs && !spec.batches) spec.epochs = 1;
  // A training may go on with the weights of a file, and leave there what they have become.
  require_own_files("", {{"--net", spec.model.path()}, {"--datadir", spec.datadir}},
                    {{"--save", spec.save}});
  resolve_rate();
  if (spec.ema >= 1.0)
    throw Error("--ema is a decay below 1, such as 0.999: what it leaves is of the new weights",
                Exit::usage);
  if (!crop.empty()) spec.crop = parse_crop(crop);
  OptimiserSpec& update = spec.optimiser;
  if (optimiser == "adam") update.kind = OptimiserKind::adam;
  if (update.kind == OptimiserKind::adam && (update.momentum != 0.0F || update.nesterov)) {
    throw Error("--momentum and --nesterov belong to sgd; adam has its own", Exit::usage);
  }
  if (update.nesterov && update.momentum == 0.0F) {
    throw Error("--nesterov needs --momentum", Exit::usage);
  }
}

}  // namespace duplex::tools
