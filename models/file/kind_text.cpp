#include "models/file/kind_text.h"

#include <cstdio>
#include <cstdlib>

#include "core/error.h"
#include "layers/kinds/activation.h"
#include "layers/kinds/conv.h"
#include "layers/kinds/join.h"
#include "layers/kinds/linear.h"
#include "layers/kinds/loss.h"
#include "layers/kinds/normalisation.h"
#include "layers/kinds/pool.h"
#include "models/file/words.h"

namespace duplex::models::file {
namespace {

/// The shortest text that reads as a value; `read` makes a value of a text's number.
template <class Read>
std::string shortest(double value, float wanted, const Read& read) {
  // All decimals of 6 digits come back from a float, and %g writes 100 as such and not as 1e+02.
  constexpr int fewest_digits = 6, most_digits = 17;
  char text[40];
  for (int digits = fewest_digits; digits <= most_digits; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (read(decimal_number(text)) == wanted) break;
  }
  return text;
}

std::string decimal_text(float value) {
  return shortest(value, value, [](double read) { return static_cast<float>(read); });
}

std::string percent_text(float rate) {
  const auto read = [](double percent) { return static_cast<float>(percent / 100.0); };
  return shortest(static_cast<double>(rate) * 100.0, rate, read) + "%";
}

std::string window_text(const Geometry& geometry) {
  if (geometry.mode == Geometry::Mode::whole) return "whole map";
  const std::string side = std::to_string(geometry.kernel);
  const std::string window = side + "x" + side + "/" + std::to_string(geometry.stride);
  if (geometry.mode == Geometry::Mode::same) return window + " same";
  if (geometry.padding == 0) return window + " valid";
  return window + " pad " + std::to_string(geometry.padding);
}

std::string conv_text(const ConvLayer& conv, const std::string& filters) {
  const ConvLayer::Options& options = conv.options();
  return "conv " + window_text(conv.geometry_as_given()) + ", " + filters + " filters" +
         (options.groups != 1 ? ", groups " + std::to_string(options.groups) : "") +
         (options.bias ? "" : ", no bias") + (options.relu ? ", relu" : "");
}

std::string lrn_text(const LrnSpec& spec) {
  return "lrn size " + std::to_string(spec.size) + ", alpha " + decimal_text(spec.alpha) +
         ", beta " + decimal_text(spec.beta) + ", k " + decimal_text(spec.k);
}

std::string batch_norm_text(const BatchNormSpec& spec) {
  const BatchNormSpec usual;
  std::string text = "batch norm";
  if (spec.epsilon != usual.epsilon) text += " epsilon " + decimal_text(spec.epsilon);
  if (spec.momentum != usual.momentum) text += " momentum " + decimal_text(spec.momentum);
  return text + (spec.relu ? " relu" : "");
}

}  // namespace

std::int64_t own_outputs(const Layer& layer) {
  if (const auto* conv = dynamic_cast<const ConvLayer*>(&layer)) return conv->filters();
  if (const auto* linear = dynamic_cast<const LinearLayer*>(&layer)) return linear->spec().outputs;
  return 0;
}

std::string kind_text(const Layer& layer, bool of_classes) {
  const std::string count = of_classes ? "classes" : std::to_string(own_outputs(layer));
  const std::string type = layer.type();
  if (const auto* conv = dynamic_cast<const ConvLayer*>(&layer)) return conv_text(*conv, count);
  if (const auto* linear = dynamic_cast<const LinearLayer*>(&layer))
    return "linear " + count + " outputs" + (linear->spec().relu ? ", relu" : "");
  if (const auto* pool = dynamic_cast<const PoolLayer*>(&layer))
    return type + " " + window_text(pool->geometry_as_given());
  if (const auto* lrn = dynamic_cast<const LrnLayer*>(&layer)) return lrn_text(lrn->spec());
  if (const auto* norm = dynamic_cast<const BatchNormLayer*>(&layer))
    return batch_norm_text(norm->spec());
  if (const auto* dropout = dynamic_cast<const DropoutLayer*>(&layer))
    return type + " " + percent_text(dropout->rate());
  if (const auto* add = dynamic_cast<const AddLayer*>(&layer))
    return type + (add->relu() ? " relu" : "");
  if (const auto* pad = dynamic_cast<const PadChannelsLayer*>(&layer))
    return type + " to " + std::to_string(pad->channels());
  if (const auto* loss = dynamic_cast<const LossLayer*>(&layer))
    return type + (loss->loss_weight() != 1.0F ? " weight " + decimal_text(loss->loss_weight())
                                               : std::string());
  if (dynamic_cast<const ActivationLayer*>(&layer) != nullptr ||
      dynamic_cast<const ConcatLayer*>(&layer) != nullptr)
    return type;
  throw Error("a network's file has no layer '" + type + "'");
}

}  // namespace duplex::models::file
