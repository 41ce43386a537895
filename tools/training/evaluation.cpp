#include "tools/training/evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "tools/display/progress.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

/// -log softmax(logits)[label] (2.13), computed by the logarithm of the sum, so that it stays right
/// if the probability is too small for a number.
double cross_entropy(const float* logits, std::size_t classes, std::size_t label) {
  const double greatest = double{*std::max_element(logits, logits + classes)};
  double sum = 0.0;
  for (std::size_t i = 0; i < classes; ++i) sum += std::exp(double{logits[i]} - greatest);
  return std::log(sum) - (double{logits[label]} - greatest);
}

/// 1/2 * sum (y - onehot(label))^2 (3.1).
double squared_error(const float* y, std::size_t classes, std::size_t label) {
  double sum = 0.0;
  for (std::size_t i = 0; i < classes; ++i) {
    const double error = double{y[i]} - (i == label ? 1.0 : 0.0);
    sum += 0.5 * error * error;
  }
  return sum;
}

}  // namespace

std::string Accuracy::str() const {
  const auto count = [](std::uint64_t number) {
    return grouped(static_cast<std::int64_t>(number));
  };
  return "top-1 " + fixed(100.0 * top1, 2) + "%, top-5 " + fixed(100.0 * top5, 2) + "% of " +
         count(samples) + " test images" +
         (not_finite > 0 ? " (the outputs for " + count(not_finite) + " are not finite)" : "");
}

Judgement judge(LossKind kind, const float* logits, std::size_t classes, std::int32_t label) {
  Judgement judgement;
  judgement.finite =
      std::all_of(logits, logits + classes, [](float logit) { return std::isfinite(logit); });
  if (!judgement.finite) {
    judgement.rank = classes;
    judgement.loss = std::numeric_limits<double>::quiet_NaN();
    return judgement;
  }
  const auto own = static_cast<std::size_t>(label);
  for (std::size_t i = 0; i < classes; ++i) {
    const bool before = logits[i] > logits[own] || (logits[i] == logits[own] && i < own);
    judgement.rank += before ? 1U : 0U;
  }
  judgement.loss = kind == LossKind::softmax_cross_entropy ? cross_entropy(logits, classes, own)
                                                           : squared_error(logits, classes, own);
  return judgement;
}

std::vector<double> probabilities(LossKind kind, const float* logits, std::size_t classes) {
  std::vector<double> values(logits, logits + classes);
  if (kind != LossKind::softmax_cross_entropy) return values;
  const double greatest = *std::max_element(values.begin(), values.end());
  double sum = 0.0;
  for (double& value : values) sum += value = std::exp(value - greatest);
  for (double& value : values) value /= sum;
  return values;
}

LossKind loss_of(const Model& model) {
  const auto kind = model.entry(model.output()).layer->loss_kind();
  if (!kind) throw Error(model.title() + " does not end in a loss, so it has no accuracy");
  return *kind;
}

std::vector<datasets::LeftOut> run_over(Network& network, const datasets::Subset& images,
                                        const PassOptions& options,
                                        const std::function<void(const Output&)>& take) {
  datasets::LoaderOptions reading = options.reading;
  reading.pass = datasets::Pass::evaluation;
  reading.share = datasets::join_share(network.batch());
  datasets::BatchLoader loader(images, reading);
  const auto classes = static_cast<std::size_t>(network.model().classes());
  std::vector<float> logits(static_cast<std::size_t>(network.batch()) * classes);

  const KeepingNan keeping_nan(network.device());
  LayerObserver observer = network.observe(nullptr);
  Progress progress(options.display);
  std::uint64_t taken = 0;
  while (true) {
    const datasets::Batch& batch = loader.next();
    if (batch.count == 0) break;
    ForwardContext context;
    context.training = false;
    network.forward(batch.pixels, context);
    network.logits(logits.data());
    for (std::int64_t i = 0; i < batch.count; ++i) {
      if (batch.labels[i] == datasets::no_label) continue;
      take({static_cast<std::size_t>(batch.first_sample) + static_cast<std::size_t>(i),
            batch.labels[i], logits.data() + static_cast<std::size_t>(i) * classes});
      ++taken;
    }
    if (options.after_batch) options.after_batch();
    if (progress.due()) {
      progress.show(options.doing + " " + grouped(static_cast<std::int64_t>(taken)) + " of " +
                    grouped(static_cast<std::int64_t>(images.size())));
    }
  }
  network.observe(std::move(observer));
  network.synchronize();
  network.device().copy_waits();  // These waits belong to no step.
  return loader.replaced();
}

Accuracy evaluate(Network& network, const datasets::Subset& test, const PassOptions& options,
                  const std::function<void(const Output&, const Judgement&)>& each) {
  const LossKind kind = loss_of(network.model());
  const auto classes = static_cast<std::size_t>(network.model().classes());
  Accuracy accuracy;
  double loss = 0.0;
  std::uint64_t first = 0, fifth = 0;
  accuracy.unreadable = run_over(network, test, options, [&](const Output& output) {
    const Judgement judgement = judge(kind, output.logits, classes, output.label);
    ++accuracy.samples;
    accuracy.not_finite += judgement.finite ? 0U : 1U;
    first += judgement.rank < std::min<std::size_t>(1, classes) ? 1U : 0U;
    fifth += judgement.rank < std::min<std::size_t>(5, classes) ? 1U : 0U;
    loss += judgement.loss;
    if (each) each(output, judgement);
  });
  if (accuracy.samples == 0) {
    throw Error("none of the test images of " + test.data->source() + " can be read; the first: " +
                accuracy.unreadable.at(0).name + ": " + accuracy.unreadable.at(0).reason);
  }
  const auto count = static_cast<double>(accuracy.samples);
  accuracy.top1 = static_cast<double>(first) / count;
  accuracy.top5 = static_cast<double>(fifth) / count;
  accuracy.loss = loss / count;
  return accuracy;
}

AccuracySummary summary_of(const Accuracy& accuracy) {
  AccuracySummary summary;
  summary.samples = accuracy.samples;
  summary.not_finite = accuracy.not_finite;
  summary.unreadable = accuracy.unreadable.size();
  summary.top1 = accuracy.top1;
  summary.top5 = accuracy.top5;
  summary.loss = accuracy.loss;
  return summary;
}

}  // namespace duplex::tools
