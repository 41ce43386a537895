#include "models/registry.h"

#include <cctype>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "core/error.h"
#include "models/file/reader.h"
#include "models/file/words.h"

namespace duplex::models {

Shape ModelOptions::sample(std::int64_t default_channels, std::int64_t default_input) const {
  const std::int64_t side = input != 0 ? input : default_input;
  return {1, channels != 0 ? channels : default_channels, side, side};
}

namespace {

/// Returns whether three letters and more at the front agree, capitals or not: "VGG19" and
/// "vgg16e".
bool begins_alike(const std::string& network, const std::string& name) {
  constexpr std::size_t enough = 3;
  std::size_t same = 0;
  while (same < name.size() && same < network.size() &&
         std::tolower(static_cast<unsigned char>(name[same])) == network[same])
    ++same;
  return same >= enough;
}

/// Throws Error(Exit::usage) where the options ask for more than can be counted: they may come from
/// a file, too.
void check(const ModelOptions& options) {
  const std::tuple<const char*, std::int64_t, std::int64_t> bounds[] = {
      {"classes", options.classes, file::largest_number},
      {"rows and columns of the input", options.input, file::largest_window},
      {"channels of the input", options.channels, file::largest_number}};
  for (const auto& [what, value, most] : bounds)
    if (value < 0 || value > most)
      throw Error("a network has from 1 to " + std::to_string(most) + " " + what + ", not " +
                      std::to_string(value),
                  Exit::usage);
}

}  // namespace

bool names_file(const std::string& name) {
  for (const auto& [network, builder] : all())
    if (network == name) return false;
  std::error_code ignored;
  return name.find_first_of("/.") != std::string::npos ||
         std::filesystem::is_regular_file(name, ignored);
}

Model build(const std::string& name, const ModelOptions& options) {
  check(options);
  if (!options.file.empty()) return file::read_network(options.file, name, options);
  if (names_file(name)) return file::read_network(file::text_of_file(name), name, options);
  std::string known, meant;
  for (const auto& [network, builder] : all()) {
    if (network == name) return builder(options);
    known += (known.empty() ? "" : ", ") + network;
    if (!begins_alike(network, name)) continue;
    const std::string other = builder({}).known_as();
    meant = " (did you mean " + network + (other.empty() ? "" : ", which is " + other) + "?)";
  }
  throw Error("unknown network '" + name + "'" + meant + "; known: " + known +
                  "; or give the path of a network's file, such as ./" + name,
              Exit::usage);
}

}  // namespace duplex::models
