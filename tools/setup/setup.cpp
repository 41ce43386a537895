#include "tools/training/setup.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "core/error.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

constexpr std::size_t named_at_most = 10;

void list_left_out(const std::vector<datasets::LeftOut>& files, const char* what) {
  if (files.empty()) return;
  std::fprintf(stderr, "%s: %zu\n", what, files.size());
  for (std::size_t i = 0; i < std::min(files.size(), named_at_most); ++i) {
    std::fprintf(stderr, "  %s: %s\n", files[i].name.c_str(), files[i].reason.c_str());
  }
  if (files.size() > named_at_most) {
    std::fprintf(stderr, "  and %zu more\n", files.size() - named_at_most);
  }
}

}  // namespace

TrainingSetup open_training(const SetupSpec& spec) {
  // This fails for an unknown network before anything is read.
  const Model defaults = models::build(spec.net, spec.model);
  if (spec.datadir.empty()) return {nullptr, {}, defaults};
  const Shape sample = defaults.entry(0).shape;
  auto data = datasets::open_dataset(spec.datadir, spec.dataset_options(sample));
  list_left_out(data->catalogue().skipped, "images skipped");
  list_left_out(data->catalogue().ignored, "files ignored, as they are no images");
  if (data->shape() != sample) {
    throw Error(data->description() + ": " + defaults.title() + " wants images of " + sample.str() +
                    "; choose --input, or pack the images with that size",
                Exit::usage);
  }
  const auto classes = static_cast<std::int64_t>(data->classes().size());
  models::ModelOptions options = spec.model;
  if (options.classes == 0) options.classes = classes;
  if (options.classes < classes) {
    throw Error("--classes " + std::to_string(options.classes) + " is less than the " +
                    std::to_string(classes) + " classes of " + data->source(),
                Exit::usage);
  }
  datasets::Split split = datasets::split(data, spec.test_fraction);
  if (spec.tests && split.test.size() == 0) {
    throw Error(data->source() + " leaves nothing to test with --test-fraction " +
                    fixed(spec.test_fraction, 2) +
                    ": --accuracy and --test-every need a greater one",
                Exit::usage);
  }
  return {std::move(data), std::move(split), models::build(spec.net, options)};
}

int loader_threads() {
  return std::clamp(usable_cores(), 1, 8);
}

Schedule schedule_of(const datasets::BatchLoader& loader, std::optional<std::uint64_t> epochs,
                     std::uint64_t batches, std::uint64_t test_every) {
  Schedule schedule;
  schedule.step_samples = loader.samples(1);
  schedule.epoch_samples = loader.size();
  schedule.test_every = test_every;
  schedule.steps = epochs ? loader.steps(*epochs) : batches;
  if (epochs && batches != 0) schedule.steps = std::min(schedule.steps, batches);
  return schedule;
}

void report_unreadable(const Accuracy& accuracy) {
  list_left_out(accuracy.unreadable, "test images left out, as they cannot be read");
}

void report_replaced(const datasets::BatchLoader& loader) {
  list_left_out(loader.replaced(),
                "images could not be decoded and were replaced by the next ones");
}

}  // namespace duplex::tools
