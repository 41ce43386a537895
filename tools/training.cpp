#include "tools/training.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/device.h"
#include "core/error.h"
#include "layers/timed_exchange.h"
#include "tools/finite.h"
#include "tools/host_name.h"
#include "tools/progress.h"
#include "tools/replay.h"
#include "tools/table.h"

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

Task open_task(const TrainingFlags& flags) {
  const Model defaults =
      flags.model.build();  // Fails for an unknown network before anything is read.
  if (!replay_source(flags.computing.device).empty()) return {nullptr, {}, defaults};
  const Shape sample = defaults.entry(0).shape;
  auto data = datasets::open_dataset(flags.datadir, flags.dataset_options(sample));
  list_left_out(data->catalogue().skipped, "pictures skipped");
  list_left_out(data->catalogue().ignored, "files ignored, as they are no pictures");
  if (data->shape() != sample) {
    throw Error(data->description() + ": " + defaults.title() + " wants pictures of " +
                    sample.str() + "; choose --input, or pack the pictures with that size",
                Exit::usage);
  }
  const auto classes = static_cast<std::int64_t>(data->classes().size());
  models::ModelOptions options = flags.model.options;
  if (options.classes == 0) options.classes = classes;
  if (options.classes < classes) {
    throw Error("--classes " + std::to_string(options.classes) + " is less than the " +
                    std::to_string(classes) + " classes of " + data->source(),
                Exit::usage);
  }
  datasets::Split split = datasets::split(data, flags.test_fraction);
  if (flags.accuracy && split.test.size() == 0) {
    throw Error(data->source() + " leaves nothing to test with --test-fraction " +
                    fixed(flags.test_fraction, 2) +
                    ": --accuracy and --test-every need a greater one",
                Exit::usage);
  }
  return {std::move(data), std::move(split), models::build(flags.model.net, options)};
}

int loader_threads() {
  return std::clamp(usable_cores(), 1, 8);
}

double Length::epochs(std::uint64_t steps) const {
  return static_cast<double>(steps * step_samples) / static_cast<double>(epoch_samples);
}

bool Length::test_due(std::uint64_t steps, std::uint64_t every) const {
  if (every == 0 || steps == 0 || steps % steps_per_round != 0) return false;
  const std::uint64_t period = every * epoch_samples;
  return steps * step_samples / period > (steps - steps_per_round) * step_samples / period;
}

Length length_of(const TrainingFlags& flags, const datasets::BatchLoader& loader) {
  Length length;
  length.step_samples = loader.samples(1);
  length.epoch_samples = loader.size();
  length.steps = loader.steps(flags.epochs);
  if (flags.batches != 0) {
    length.steps = flags.epochs == 0 ? 0 : std::min(length.steps, flags.batches);
  }
  return length;
}

std::uint64_t warm_up_steps(std::uint64_t steps) {
  return std::min<std::uint64_t>(steps / 10, 10);
}

TrainingResult train(const StepRunner& run, std::int64_t batch, Exchange& inner,
                     const TrainingFlags& flags, const Length& length,
                     const RunDirectory* directory, bool show, const TestRunner& test) {
  std::unique_ptr<MetricsFile> metrics;
  if (directory != nullptr) metrics = std::make_unique<MetricsFile>(directory->file("metrics.csv"));
  TimedExchange exchange(inner);
  const LearningRate rate = flags.learning_rate();
  const std::uint64_t warm_up = warm_up_steps(length.steps);
  const std::uint64_t tail = std::max<std::uint64_t>(length.steps / 10, 1);
  std::vector<double> gradient, total, await, push, data;
  TrainingResult result;
  Progress progress;

  std::int64_t start = clock_ns();  // Later by what tests take.
  std::int64_t step_begin = start;
  for (std::uint64_t step = 0; step < length.steps; ++step) {
    const auto [loss, have_data, waits] = run(step, exchange);
    const std::int64_t end = clock_ns();

    StepMetrics row;
    row.step = step;
    row.epoch = length.epoch_of(step);
    row.loss = loss;
    row.rate = rate.at(step / length.steps_per_update);
    row.total = seconds(end - step_begin);
    row.data = seconds(have_data - step_begin);
    row.await = seconds(exchange.await_ns());
    row.push = seconds(exchange.push_ns());
    if (waits) {
      row.data += waits->input;
      row.await = waits->weights;
      row.push = seconds(exchange.end_ns());
      result.update_apart = false;
    }
    row.gradient = row.total - row.data - row.await - row.push;
    step_begin = end;
    if (metrics) metrics->write(row);
    if (loss && !std::isfinite(*loss)) {
      throw diverged("step " + std::to_string(step), "the loss");
    }
    // A look for NaN takes time of its own.
    if (step >= warm_up && (!looks_for_nan(step) || length.steps < 3)) {
      gradient.push_back(row.gradient);
      total.push_back(row.total);
      await.push_back(row.await);
      push.push_back(row.push);
      data.push_back(row.data);
    }
    if (loss && step + tail >= length.steps) {
      result.loss = result.loss.value_or(0.0) + *loss / static_cast<double>(tail);
    }
    if (show && progress.due()) {
      const double gone = seconds(end - start);
      const double left =
          gone / static_cast<double>(step + 1) * static_cast<double>(length.steps - step - 1);
      progress.show(
          "epoch " + std::to_string(row.epoch + 1) + ", batch " + std::to_string(step + 1) + "/" +
          std::to_string(length.steps) + (loss ? ", loss " + fixed(*loss, 4) : "") + ", " +
          fixed(static_cast<double>((step + 1) * static_cast<std::uint64_t>(batch)) / gone, 1) +
          " pictures/s, " + clock_text(left) + " left");
    }
    if (test && step + 1 < length.steps && length.test_due(step + 1, flags.test_every)) {
      exchange.await_all();
      test(step + 1);
      step_begin = clock_ns();
      start += step_begin - end;
    }
  }
  result.steps = length.steps;
  result.seconds = seconds(clock_ns() - start);
  result.gradient = spread_of(std::move(gradient));
  result.await = spread_of(std::move(await));
  result.push = spread_of(std::move(push));
  double of_steps = 0.0, of_data = 0.0;
  for (std::size_t i = 0; i < total.size(); ++i) {
    of_steps += total[i];
    of_data += data[i];
    result.data_steps += data[i] > 0.01 * total[i] ? 1U : 0U;
  }
  result.data_share = of_steps > 0.0 ? of_data / of_steps : 0.0;
  result.total = spread_of(std::move(total));
  result.data = spread_of(std::move(data));
  return result;
}

nlohmann::ordered_json config_of(const TrainingFlags& flags, const Task& task,
                                 const Device* device) {
  nlohmann::ordered_json config = flags.model.describe(task.model);
  config["host"] = host_name();
  if (task.data) {
    config["data"] = {{"path", flags.datadir},
                      {"description", task.data->description()},
                      {"train", task.split.train.size()},
                      {"test", task.split.test.size()}};
  }
  config["settings"] = flags.settings();
  config["batch"] = flags.batch;
  config["epochs"] = flags.epochs;
  config["seed"] = flags.seed;
  config["device"] = device != nullptr ? device->description() : flags.computing.device;
  config["replayed"] = device == nullptr;
  return config;
}

nlohmann::ordered_json json_of(const Spread& spread) {
  return {{"median", spread.median},
          {"low", spread.low},
          {"high", spread.high},
          {"count", spread.count}};
}

nlohmann::ordered_json json_of(const TrainingResult& result) {
  return {{"steps", result.steps},
          {"seconds", result.seconds},
          {"loss", result.loss ? nlohmann::ordered_json(*result.loss) : nlohmann::ordered_json()},
          {"t_grad_s", json_of(result.gradient)},
          {"step_s", json_of(result.total)},
          {"await_s", json_of(result.await)},
          {"push_s", json_of(result.push)},
          {"data_s", json_of(result.data)},
          {"data_share", result.data_share},
          {"data_steps", result.data_steps}};
}

nlohmann::ordered_json json_of(const Accuracy& accuracy) {
  return {{"samples", accuracy.samples},
          {"not_finite", accuracy.not_finite},
          {"unreadable", accuracy.unreadable.size()},
          {"top1", accuracy.top1},
          {"top5", accuracy.top5},
          {"loss", accuracy.loss}};
}

std::string report_of(const TrainingResult& result, std::int64_t batch, bool alone) {
  if (result.steps == 0) return "";
  std::string text;
  text += "t_grad   " + spread_text(result.gradient) + " a batch of " + std::to_string(batch) +
          "; median (quartiles) of " + grouped(static_cast<std::int64_t>(result.gradient.count)) +
          "\n";
  text += "step     " + spread_text(result.total) + "\n         data " +
          duration_text(result.data.median) +
          (alone ? (result.update_apart ? ", update " + duration_text(result.push.median)
                                        : ", update with the gradient")
                 : ", awaiting weights " + duration_text(result.await.median) +
                       ", pushing gradients " + duration_text(result.push.median)) +
          "\n";
  const std::string steps = grouped(static_cast<std::int64_t>(result.steps)) + " steps, " +
                            clock_text(result.seconds) + " in all\n";
  text += result.loss ? "loss     " + fixed(*result.loss, 4) +
                            (alone ? "" : " of the first worker's samples,") +
                            " over the last tenth of " + steps
                      : "replay   nothing was computed; " + steps;
  return text;
}

std::string data_report_of(const TrainingResult& result) {
  return "data     computing waited for pictures during " + fixed(100.0 * result.data_share, 1) +
         "% of the time; for more than 1% of a step in " +
         grouped(static_cast<std::int64_t>(result.data_steps)) + " of " +
         grouped(static_cast<std::int64_t>(result.data.count)) + "\n";
}

void report_unreadable(const Accuracy& accuracy) {
  list_left_out(accuracy.unreadable, "test pictures left out, as they cannot be read");
}

void report_replaced(const datasets::BatchLoader& loader) {
  list_left_out(loader.replaced(),
                "pictures could not be decoded and were replaced by the next ones");
}

}  // namespace duplex::tools
