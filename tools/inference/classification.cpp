#include "tools/inference/classification.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "datasets/image_files.h"
#include "net/wire/frame.h"
#include "tools/inference/trained_network.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

std::vector<Guess> likeliest(const std::vector<double>& values, std::size_t top) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t count = std::min(top, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      return values[a] > values[b] || (values[a] == values[b] && a < b);
                    });
  std::vector<Guess> guesses;
  for (std::size_t i = 0; i < count; ++i) guesses.push_back({order[i], values[order[i]]});
  return guesses;
}

bool is_softmax(const Model& model) {
  return loss_of(model) == LossKind::softmax_cross_entropy;
}

}  // namespace

Classification classify_images(Network& network, const std::vector<std::string>& paths,
                               std::size_t top, const PassOptions& options) {
  const LossKind kind = loss_of(network.model());
  const auto classes = static_cast<std::size_t>(network.model().classes());
  const auto data = std::make_shared<datasets::ImageFiles>(paths, network.model().entry(0).shape);
  datasets::Subset all{data, std::vector<std::uint32_t>(paths.size())};
  std::iota(all.samples.begin(), all.samples.end(), 0U);
  Classification found;
  std::vector<datasets::LeftOut> spoilt;
  found.failed = run_over(network, all, options, [&](const Output& output) {
    const std::string& path = paths[output.position];
    if (std::all_of(output.logits, output.logits + classes,
                    [](float logit) { return std::isfinite(logit); }))
      found.images.push_back({path, likeliest(probabilities(kind, output.logits, classes), top)});
    else
      spoilt.push_back({path, "the network's outputs for it are not finite"});
  });
  found.failed.insert(found.failed.end(), spoilt.begin(), spoilt.end());
  return found;
}

std::string text_of(const Classification& found, const Model& model,
                    const std::vector<std::string>& names) {
  const bool softmax = is_softmax(model);
  std::string text =
      softmax ? "" : "The figures are outputs, which squared error brings towards probabilities.\n";
  for (const ClassifiedImage& image : found.images) {
    text += net::printable(image.path) + "\n";
    for (const Guess& guess : image.guesses) {
      char value[32];
      std::snprintf(value, sizeof value, softmax ? "%9.2f%%" : "%10.4f",
                    (softmax ? 100.0 : 1.0) * guess.probability);
      text += value + ("  " + name_of_class(names, guess.number)) + "\n";
    }
  }
  return text;
}

std::string json_of(const Classification& found, const Model& model,
                    const std::vector<std::string>& names) {
  using Json = nlohmann::ordered_json;
  Json images = Json::array();
  for (const ClassifiedImage& image : found.images) {
    Json guesses = Json::array();
    for (const Guess& guess : image.guesses)
      guesses.push_back({{"class", guess.number},
                         {"name", name_of_class(names, guess.number)},
                         {"probability", guess.probability}});
    images.push_back({{"image", image.path}, {"guesses", std::move(guesses)}});
  }
  const Json json{{"network", model.title()},
                  {"classes", model.classes()},
                  {"outputs", is_softmax(model) ? "softmax" : "squared error"},
                  {"images", std::move(images)}};
  // A path may have bytes that are no UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string csv_of(const Classification& found, const std::vector<std::string>& names) {
  std::string text = "image,place,class,name,probability\n";
  for (const ClassifiedImage& image : found.images)
    for (std::size_t i = 0; i < image.guesses.size(); ++i) {
      const Guess& guess = image.guesses[i];
      char value[32];
      std::snprintf(value, sizeof value, "%.17g", guess.probability);
      text += csv_cell(image.path) + "," + std::to_string(i + 1) + "," +
              std::to_string(guess.number) + "," + csv_cell(name_of_class(names, guess.number)) +
              "," + value + "\n";
    }
  return text;
}

}  // namespace duplex::tools
