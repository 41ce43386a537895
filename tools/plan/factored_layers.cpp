#include "tools/plan/factored_layers.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace duplex::tools {
namespace {

/// Returns whether all workers' factors, which every worker receives, are fewer values than the
/// gradient and the weights, which its owners receive and send.
bool saves(const Model::Linear& layer, std::size_t samples) {
  return samples * (layer.outputs + layer.inputs) < 2 * layer.outputs * layer.inputs;
}

}  // namespace

std::vector<Model::Linear> factored_layers(const Model& model, const ParallelSpec& parallel,
                                           const std::vector<std::size_t>& samples,
                                           const std::string& command) {
  if (parallel.factors == Factors::off || !parallel.takes_factors()) return {};
  std::vector<Model::Linear> layers = model.linear_layers();
  if (parallel.factors == Factors::on) {
    if (layers.empty())
      throw Error(command + ": --factors on, but " + model.title() +
                      " has no linear layer, whose gradient would have factors: leave it out",
                  Exit::usage);
    return layers;
  }
  const std::size_t all = std::accumulate(samples.begin(), samples.end(), std::size_t{0});
  layers.erase(std::remove_if(layers.begin(), layers.end(),
                              [&](const Model::Linear& layer) { return !saves(layer, all); }),
               layers.end());
  return layers;
}

std::vector<net::FactoredLayer> of_exchange(const std::vector<Model::Linear>& layers) {
  std::vector<net::FactoredLayer> factored;
  for (const Model::Linear& layer : layers)
    factored.push_back({layer.weights, layer.bias, layer.outputs, layer.inputs});
  return factored;
}

}  // namespace duplex::tools
