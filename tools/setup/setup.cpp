#include "tools/setup/setup.h"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <utility>
#include <vector>

#include "core/error.h"
#include "net/wire/frame.h"
#include "tools/text/host_name.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

constexpr std::size_t named_at_most = 10;

void list_left_out(const std::vector<datasets::LeftOut>& files, const char* what) {
  if (files.empty()) return;
  std::fprintf(stderr, "%s: %zu\n", what, files.size());
  for (std::size_t i = 0; i < std::min(files.size(), named_at_most); ++i) {
    const std::string line = files[i].name + ": " + files[i].reason;
    std::fprintf(stderr, "  %s\n", net::printable(line).c_str());
  }
  if (files.size() > named_at_most) {
    std::fprintf(stderr, "  and %zu more\n", files.size() - named_at_most);
  }
}

/// Throws Error(Exit::usage) if images of this shape cannot be read as the flags say.
void check_reading(const TrainingSpec& spec, const Shape& sample) {
  const auto refuse = [](const std::string& why) { throw Error(why, Exit::usage); };
  const std::int64_t shorter = std::min(sample.h(), sample.w());
  const std::int64_t longer = std::max(sample.h(), sample.w());
  for (const auto& [flag, values] :
       {std::pair("--pixel-mean", &spec.pixel_mean), {"--pixel-stddev", &spec.pixel_stddev}})
    if (!values->empty() && static_cast<std::int64_t>(values->size()) != sample.c())
      refuse(std::string(flag) + " has " + std::to_string(values->size()) +
             " values, and images of " + sample.str() + " have " + std::to_string(sample.c()) +
             " channels: give a value for each");
  if (spec.pad >= shorter)
    refuse("--pad " + std::to_string(spec.pad) + " could move an image of " + sample.str() +
           " out of sight: give fewer pixels than " + std::to_string(shorter));
  if (spec.test_side != 0 && spec.test_side < longer)
    refuse("--test-crop " + std::to_string(spec.test_side) + " is smaller than the input of " +
           sample.str() + ": give " + std::to_string(longer) + " pixels or more");
}

}  // namespace

TrainingSetup open_training(const TrainingSpec& spec) {
  // This fails for an unknown network before anything is read.
  const Model defaults = spec.model.build();
  if (spec.replays()) return {nullptr, {}, defaults};
  const Shape sample = defaults.entry(0).shape;
  check_reading(spec, sample);
  datasets::DatasetOptions reading;
  reading.channels = static_cast<int>(sample.c());
  reading.height = static_cast<int>(sample.h());
  reading.width = static_cast<int>(sample.w());
  reading.strict = spec.strict;
  auto data = datasets::open_dataset(spec.datadir, reading);
  list_left_out(data->catalogue().skipped, "images skipped");
  list_left_out(data->catalogue().ignored, "files ignored, as they are no images");
  if (data->shape() != sample) {
    throw Error(data->description() + ": " + defaults.title() + " wants images of " + sample.str() +
                    "; choose --input, or pack the images with that size",
                Exit::usage);
  }
  const auto classes = static_cast<std::int64_t>(data->classes().size());
  ModelSpec model = spec.model;
  if (model.options.classes == 0) model.options.classes = classes;
  if (model.options.classes < classes) {
    throw Error("--classes " + std::to_string(model.options.classes) + " is less than the " +
                    std::to_string(classes) + " classes of " + data->source(),
                Exit::usage);
  }
  datasets::Split split = datasets::split(data, spec.test_fraction);
  if (spec.accuracy && split.test.size() == 0) {
    std::ostringstream fraction;
    fraction << spec.test_fraction;
    throw Error(data->source() + " leaves nothing to test with --test-fraction " + fraction.str() +
                    ": --accuracy and --test-every need a greater one",
                Exit::usage);
  }
  TrainingSetup setup{std::move(data), std::move(split), model.build()};
  setup.model.smooth_labels(spec.label_smoothing);
  return setup;
}

RunConfig config_of(const TrainingSpec& spec, const std::string& command,
                    const TrainingSetup& setup, const Device* device) {
  RunConfig config = spec.model.config(setup.model);
  config.command = command;
  config.host = host_name();
  if (setup.data) {
    config.data = DataConfig{spec.datadir, setup.data->description(), setup.split.train.size(),
                             setup.split.test.size()};
  }
  config.settings = spec.settings();
  config.batch = spec.batch;
  config.epochs = spec.epochs;
  if (spec.until) config.until = spec.until->str();
  config.seed = spec.seed;
  config.device = device != nullptr ? device->description() : spec.computing.device;
  config.replayed = device == nullptr;
  if (device != nullptr && !device->asynchronous()) {
    config.cores = usable_cores();
    config.threads = spec.computing.threads > 0 ? spec.computing.threads : usable_cores();
  }
  return config;
}

std::uint64_t steps_of(const TrainingSpec& spec, const TrainingSetup& setup,
                       std::uint64_t step_samples) {
  if (!spec.epochs || spec.replays()) return spec.batches.value();
  const std::uint64_t steps = *spec.epochs * setup.split.train.size() / step_samples;
  return std::min(steps, spec.batches.value_or(steps));
}

void set_updates(LearningRate& rate, std::uint64_t updates) {
  if (!rate.cosine) return;
  if (updates > 0 && updates <= rate.warmup)
    throw Error("--warmup " + std::to_string(rate.warmup) + " leaves nothing of the " +
                    std::to_string(updates) + " updates of this run to --lr-schedule cosine",
                Exit::usage);
  rate.steps = updates;
}

std::string resumable_settings(const TrainingSpec& spec, const TrainingSetup& setup,
                               const std::string& more) {
  std::string text = setup.model.title() + " of " + setup.model.entry(0).shape.str() +
                     spec.model.file_digest(setup.model);
  if (setup.data)
    text +=
        ", " + setup.data->contents() + " (digest " + std::to_string(setup.data->digest()) + ")";
  return text + ", " + spec.settings(false) + ", precision " + spec.computing.precision + more;
}

int loader_threads() {
  return std::clamp(usable_cores(), 1, 8);
}

datasets::LoaderOptions loader_options(const TrainingSpec& spec, const datasets::Share& share) {
  datasets::LoaderOptions options = test_options(spec);
  options.share = share;
  options.seed = spec.seed;
  options.mirror = spec.mirror;
  options.crop = spec.crop;
  options.pad = spec.pad;
  return options;
}

datasets::LoaderOptions test_options(const TrainingSpec& spec) {
  datasets::LoaderOptions options;
  options.test_side = spec.test_side;
  options.strict = spec.strict;
  options.threads = loader_threads();
  const std::size_t channels = std::max(spec.pixel_mean.size(), spec.pixel_stddev.size());
  if (channels == 0) return options;
  datasets::Normalisation& given = options.normalisation;
  given = datasets::Normalisation::standard(static_cast<std::int64_t>(channels));
  for (std::size_t c = 0; c < channels; ++c) {
    if (!spec.pixel_mean.empty()) given.mean[c] = static_cast<float>(spec.pixel_mean[c]);
    if (!spec.pixel_stddev.empty()) given.stddev[c] = static_cast<float>(spec.pixel_stddev[c]);
  }
  return options;
}

Schedule schedule_of(const TrainingSpec& spec, const datasets::BatchLoader& loader) {
  Schedule schedule;
  schedule.step_samples = loader.step_samples();
  schedule.first_step = loader.first_step();
  schedule.first_sample = loader.samples(loader.first_step());
  schedule.epoch_samples = loader.size();
  schedule.test_every = spec.test_every;
  schedule.steps = spec.epochs ? loader.steps(*spec.epochs) : spec.batches.value();
  if (spec.epochs && spec.batches) schedule.steps = std::min(schedule.steps, *spec.batches);
  return schedule;
}

void report_unreadable(const std::vector<datasets::LeftOut>& images) {
  list_left_out(images, "test images left out, as they cannot be read");
}

void report_replaced(const std::vector<datasets::LeftOut>& replaced) {
  list_left_out(replaced, "images could not be decoded and were replaced by the next ones");
}

}  // namespace duplex::tools
