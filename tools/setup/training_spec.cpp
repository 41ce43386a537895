#include "tools/setup/training_spec.h"

#include <sstream>

#include "tools/prediction/layer_times.h"

namespace duplex::tools {

bool TrainingSpec::replays() const {
  return !replay_source(computing.device).empty();
}

std::string TrainingSpec::settings(bool with_length) const {
  std::ostringstream text;
  text.precision(7);  // A float has so many digits: 0.9 prints as 0.9.
  text << "optimizer " << (optimiser.kind == OptimiserKind::adam ? "adam" : "sgd") << ", lr "
       << rate.base;
  if (optimiser.momentum != 0.0F)
    text << ", momentum " << optimiser.momentum << (optimiser.nesterov ? " (nesterov)" : "");
  if (optimiser.weight_decay != 0.0F) text << ", weight decay " << optimiser.weight_decay;
  if (optimiser.clip_value != 0.0F) text << ", clip value " << optimiser.clip_value;
  if (optimiser.clip_norm != 0.0F) text << ", clip norm " << optimiser.clip_norm;
  if (rate.warmup != 0) text << ", warmup " << rate.warmup;
  if (!rate.boundaries.empty()) {
    text << ", lr factor " << rate.factor << ", lr steps";
    for (const std::uint64_t step : rate.boundaries) text << ' ' << step;
  }
  if (rate.cosine) {
    text << ", lr schedule cosine to " << rate.least;
    if (rate.steps != 0) text << " over " << rate.steps << " updates";
  }
  if (ema != 0.0) text << ", ema " << ema;
  if (label_smoothing != 0.0F) text << ", label smoothing " << label_smoothing;
  text << ", batch " << batch;
  if (with_length && epochs) text << ", epochs " << *epochs;
  if (with_length && batches) text << ", batches " << *batches;
  text << ", seed " << seed << ", test fraction " << test_fraction << (mirror ? ", mirror" : "");
  if (crop.any()) text << ", crop " << crop.least << ':' << crop.most;
  if (pad != 0) text << ", pad " << pad;
  if (test_side != 0) text << ", test crop " << test_side;
  const auto list = [&text](const char* name, const std::vector<double>& values) {
    if (!values.empty()) text << ", " << name;
    for (const double value : values) text << ' ' << value;
  };
  list("pixel mean", pixel_mean);
  list("pixel stddev", pixel_stddev);
  return text.str();
}

}  // namespace duplex::tools
