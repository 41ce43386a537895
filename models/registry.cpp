#include "models/registry.h"

#include "core/error.h"

namespace duplex::models {

Shape ModelOptions::sample(std::int64_t default_channels, std::int64_t default_input) const {
  const std::int64_t side = input != 0 ? input : default_input;
  return {1, channels != 0 ? channels : default_channels, side, side};
}

Model build(const std::string& name, const ModelOptions& options) {
  std::string known;
  for (const auto& [network, builder] : all()) {
    if (network == name) return builder(options);
    known += (known.empty() ? "" : ", ") + network;
  }
  throw Error("unknown network '" + name + "'; known: " + known, Exit::usage);
}

}  // namespace duplex::models
