#include "tools/checkpoint/statistics_report.h"

#include <algorithm>
#include <cstring>

namespace duplex::tools {

std::size_t statistics_count(const Model& model) {
  std::size_t count = 0;
  for (const Model::Entry& layer : model.nodes())
    for (const ParameterSpec& spec : model.parameters(layer))
      if (!spec.trained) count += static_cast<std::size_t>(spec.shape.elements());
  return count;
}

std::string statistics_text(Network& network) {
  std::string text;
  for (const Parameter& statistic : network.statistics()) {
    std::vector<float> values(static_cast<std::size_t>(statistic.spec.shape.elements()));
    network.device().download(values.data(), statistic.weights);
    text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  }
  return text;
}

std::vector<float> take_statistics(std::string& report, std::size_t count) {
  if (count == 0 || report.size() < count * sizeof(float)) return {};
  std::vector<float> values(count);
  std::memcpy(values.data(), report.data(), count * sizeof(float));
  report.erase(0, count * sizeof(float));
  return values;
}

std::vector<StateArray> checkpoint_arrays(const Model& model,
                                          const std::vector<const float*>& weights,
                                          const std::vector<float>& statistics) {
  std::vector<StateArray> arrays;
  std::size_t trained = 0, offset = 0;
  for (const Model::Entry& layer : model.nodes())
    for (const ParameterSpec& spec : model.parameters(layer)) {
      const auto count = static_cast<std::size_t>(spec.shape.elements());
      const float* from = spec.trained ? weights[trained++] : statistics.data() + offset;
      if (!spec.trained) offset += count;
      arrays.push_back(
          {spec.name, spec.shape, [from, count](float* to) { std::copy_n(from, count, to); }, {}});
    }
  return arrays;
}

}  // namespace duplex::tools
