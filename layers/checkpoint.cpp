#include "layers/checkpoint.h"

#include <vector>

#include "core/error.h"
#include "core/files/safetensors.h"

namespace duplex {
namespace {

constexpr std::size_t named_at_most = 8;

/// Returns "; missing: a, b and 3 more", or "" for no names.
std::string listed(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::string text = std::string("; ") + what + ": ";
  for (std::size_t i = 0; i < names.size() && i < named_at_most; ++i) {
    text += (i > 0 ? ", " : "") + names[i];
  }
  if (names.size() > named_at_most) {
    text += " and " + std::to_string(names.size() - named_at_most) + " more";
  }
  return text;
}

}  // namespace

void save_checkpoint(const std::string& path, Network& network,
                     const std::map<std::string, std::string>& metadata) {
  const std::vector<Parameter*> state = network.state();
  std::vector<SafetensorsEntry> entries;
  for (const Parameter* parameter : state)
    entries.push_back({parameter->name, parameter->spec.shape});
  save_safetensors(path, entries, metadata, [&](std::size_t index, float* values) {
    network.device().download(values, state[index]->weights);
  });
}

void read_checkpoint(
    const std::string& path, const Model& model,
    const std::function<void(const ParameterSpec& spec, const float* values)>& take) {
  const SafetensorsFile file(path);
  std::map<std::string, const SafetensorsEntry*> unused;
  for (const SafetensorsEntry& entry : file.entries()) unused.emplace(entry.name, &entry);

  std::vector<ParameterSpec> specs;
  std::vector<const SafetensorsEntry*> found;
  std::vector<std::string> missing, misshapen, unknown;
  for (const Model::Entry& layer : model.nodes()) {
    for (ParameterSpec& spec : model.parameters(layer)) {
      const auto entry = unused.find(spec.name);
      if (entry == unused.end()) {
        missing.push_back(spec.name);
        continue;
      }
      if (entry->second->shape != spec.shape) {
        misshapen.push_back(spec.name + " (" + entry->second->shape.str() + " in the file, " +
                            spec.shape.str() + " in the network)");
      }
      found.push_back(entry->second);
      specs.push_back(std::move(spec));
      unused.erase(entry);
    }
  }
  for (const auto& [name, entry] : unused) unknown.push_back(name);
  if (!missing.empty() || !misshapen.empty() || !unknown.empty()) {
    throw Error(path + " does not fit " + model.title() + listed("missing", missing) +
                listed("of another shape", misshapen) + listed("unknown", unknown));
  }
  std::vector<float> values;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    values.resize(static_cast<std::size_t>(specs[i].shape.elements()));
    file.read(*found[i], values.data());
    take(specs[i], values.data());
  }
}

void load_checkpoint(const std::string& path, Network& network) {
  const std::vector<Parameter*> state = network.state();
  auto next = state.begin();
  read_checkpoint(path, network.model(), [&](const ParameterSpec& spec, const float* values) {
    Parameter& parameter = **next++;
    if (parameter.name != spec.name) throw Error("checkpoint: " + spec.name + " is out of order");
    network.device().upload(parameter.weights, values);
  });
}

}  // namespace duplex
