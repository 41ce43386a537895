#include "tools/evaluation.h"

#include <algorithm>
#include <cmath>

#include "tools/progress.h"
#include "tools/table.h"

namespace duplex::tools {

std::string Accuracy::str() const {
  return "top-1 " + fixed(100.0 * top1, 2) + "%, top-5 " + fixed(100.0 * top5, 2) + "% of " +
         grouped(static_cast<std::int64_t>(samples)) + " test pictures";
}

std::size_t rank_of_label(const float* outputs, std::size_t classes, std::int32_t label) {
  const auto own = static_cast<std::size_t>(label);
  std::size_t rank = 0;
  for (std::size_t i = 0; i < classes; ++i) {
    rank += outputs[i] > outputs[own] || (outputs[i] == outputs[own] && i < own) ? 1U : 0U;
  }
  return rank;
}

Accuracy evaluate(Network& network, const datasets::Subset& test, int loader_threads) {
  datasets::LoaderOptions options;
  options.pass = datasets::Pass::evaluation;
  options.share = datasets::join_share(network.batch());
  options.threads = loader_threads;
  datasets::BatchLoader loader(test, options);
  const auto classes = static_cast<std::size_t>(network.model().classes());
  std::vector<float> outputs(static_cast<std::size_t>(network.batch()) * classes);

  LayerObserver observer = network.observe(nullptr);
  Accuracy accuracy;
  double loss = 0.0;
  std::uint64_t first = 0, fifth = 0;
  Progress progress;
  while (true) {
    const datasets::Batch& batch = loader.next();
    if (batch.count == 0) break;
    Pass pass;
    pass.training = false;
    network.forward(batch.pixels, pass);
    network.outputs(outputs.data());
    for (std::int64_t i = 0; i < batch.count; ++i) {
      const float* values = outputs.data() + static_cast<std::size_t>(i) * classes;
      const std::int32_t label = batch.labels[i];
      const std::size_t rank = rank_of_label(values, classes, label);
      first += rank < 1 ? 1U : 0U;
      fifth += rank < 5 ? 1U : 0U;
      loss -= std::log(std::max(double{values[label]}, 1e-30));
    }
    accuracy.samples += static_cast<std::uint64_t>(batch.count);
    if (progress.due()) {
      progress.show("testing " + grouped(static_cast<std::int64_t>(accuracy.samples)) + " of " +
                    grouped(static_cast<std::int64_t>(test.size())));
    }
  }
  if (accuracy.samples > 0) {
    const auto count = static_cast<double>(accuracy.samples);
    accuracy.top1 = static_cast<double>(first) / count;
    accuracy.top5 = static_cast<double>(fifth) / count;
    accuracy.loss = loss / count;
  }
  network.observe(std::move(observer));
  return accuracy;
}

}  // namespace duplex::tools
