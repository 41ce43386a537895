#include "tools/setup/model_spec.h"

#include "net/exchange/exchange.h"

namespace duplex::tools {

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
