#include "tools/setup/model_spec.h"

#include <cstdio>
#include <filesystem>

#include "net/exchange/exchange.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools {

void ModelSpec::fill_from(const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    const std::string path = directory + "/" + config_file;
    if (!std::filesystem::exists(path)) continue;  // transport trains no network.
    const RunConfig run = read_config(path);
    if (net.empty()) net = run.network;
    if (net != run.network) continue;
    if (options.classes == 0) options.classes = run.classes;
    set_input(run.input);
    options.auxiliary = options.auxiliary || run.auxiliary;
    options.zero_padded_shortcuts = options.zero_padded_shortcuts || run.pad_shortcuts;
    return;
  }
}

void ModelSpec::set_input(const std::string& sample) {
  long long channels = 0, height = 0;
  if (std::sscanf(sample.c_str(), "1x%lldx%lld", &channels, &height) != 2) return;
  if (options.input == 0) options.input = height;
  if (options.channels == 0) options.channels = channels;
}

RunConfig ModelSpec::config(const Model& model) const {
  RunConfig config;
  config.network = net;
  config.title = model.title();
  config.input = model.entry(0).shape.str();
  config.classes = model.classes();
  config.parameters = model.trained_parameters();
  config.auxiliary = options.auxiliary;
  config.pad_shortcuts = options.zero_padded_shortcuts;
  return config;
}

net::Fingerprint fingerprint_of(const Model& model) {
  std::vector<Span> spans;
  for (const ParameterSpec& spec : model.trained())
    spans.push_back({spec.name, static_cast<std::size_t>(spec.shape.elements()), nullptr, nullptr});
  return net::fingerprint_of(model.title() + ", " + std::to_string(model.classes()) + " classes",
                             spans);
}

}  // namespace duplex::tools
