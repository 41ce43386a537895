#include "layers/checkpoint.h"

namespace duplex {
namespace {

StateArray array_of(Device& device, Parameter& parameter) {
  return {parameter.name, parameter.spec.shape,
          [&](float* to) { device.download(to, parameter.weights); },
          [&](const float* from) { device.upload(parameter.weights, from); }};
}

}  // namespace

std::vector<StateArray> state_of(Network& network) {
  std::vector<StateArray> arrays;
  for (Parameter* parameter : network.state())
    arrays.push_back(array_of(network.device(), *parameter));
  return arrays;
}

std::vector<StateArray> statistics_of(Network& network) {
  std::vector<StateArray> arrays;
  for (Parameter& parameter : network.statistics())
    arrays.push_back(array_of(network.device(), parameter));
  return arrays;
}

void save_checkpoint(const std::string& path, Network& network,
                     const std::map<std::string, std::string>& metadata) {
  save_state(path, state_of(network), metadata);
}

void read_checkpoint(
    const std::string& path, const Model& model,
    const std::function<void(const ParameterSpec& spec, const float* values)>& take) {
  std::vector<StateArray> arrays;
  for (const Model::Entry& layer : model.nodes())
    for (const ParameterSpec& spec : model.parameters(layer))
      arrays.push_back({spec.name, spec.shape, nullptr,
                        [&take, spec](const float* values) { take(spec, values); }});
  load_state(path, arrays, model.title(), optimiser_prefix);
}

void load_checkpoint(const std::string& path, Network& network) {
  load_state(path, state_of(network), network.model().title(), optimiser_prefix);
}

}  // namespace duplex
