#include "tools/plan/factored_layers.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace duplex::tools {

bool factors_save(std::size_t outputs, std::size_t inputs, std::size_t samples) {
  return samples * (outputs + inputs) < 2 * outputs * inputs;
}

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
                              [&](const Model::Linear& layer) {
                                return !factors_save(layer.outputs, layer.inputs, all);
                              }),
               layers.end());
  return layers;
}

std::vector<net::FactoredLayer> of_exchange(const std::vector<Model::Linear>& layers,
                                            const std::vector<std::size_t>& samples) {
  std::vector<net::FactoredLayer> factored;
  for (const Model::Linear& layer : layers)
    factored.push_back({layer.weights, layer.bias, layer.outputs, layer.inputs, samples});
  return factored;
}

}  // namespace duplex::tools
