#include "core/files/state_file.h"

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

void save_state(const std::string& path, const std::vector<StateArray>& arrays,
                const std::map<std::string, std::string>& metadata) {
  std::vector<SafetensorsEntry> entries;
  for (const StateArray& array : arrays) entries.push_back({array.name, array.shape});
  save_safetensors(path, entries, metadata,
                   [&](std::size_t index, float* values) { arrays[index].get(values); });
}

std::map<std::string, std::string> load_state(const std::string& path,
                                              const std::vector<StateArray>& arrays,
                                              const std::string& what, const std::string& ignored) {
  const SafetensorsFile file(path);
  std::map<std::string, const SafetensorsEntry*> unused;
  for (const SafetensorsEntry& entry : file.entries()) unused.emplace(entry.name, &entry);

  std::vector<const SafetensorsEntry*> found;
  std::vector<std::string> missing, misshapen, unknown;
  for (const StateArray& array : arrays) {
    const auto entry = unused.find(array.name);
    if (entry == unused.end()) {
      missing.push_back(array.name);
      continue;
    }
    if (entry->second->shape != array.shape) {
      misshapen.push_back(array.name + " (" + entry->second->shape.str() + " in the file, " +
                          array.shape.str() + " in the network)");
    }
    found.push_back(entry->second);
    unused.erase(entry);
  }
  for (const auto& [name, entry] : unused)
    if (ignored.empty() || name.rfind(ignored, 0) != 0) unknown.push_back(name);
  if (!missing.empty() || !misshapen.empty() || !unknown.empty()) {
    throw Error(path + " does not fit " + what + listed("missing", missing) +
                listed("of another shape", misshapen) + listed("unknown", unknown));
  }
  file.verify();
  std::vector<float> values;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    values.resize(static_cast<std::size_t>(arrays[i].shape.elements()));
    file.read(*found[i], values.data());
    arrays[i].set(values.data());
  }
  return file.metadata();
}

}  // namespace duplex
