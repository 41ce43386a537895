#include "core/cudnn/cache.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace duplex::cudnn {
namespace {

/// Returns a file's name for `name`, of which letters, digits and dots stay.
std::string file_name(const std::string& name) {
  std::string text;
  for (const char letter : name) {
    const bool stays = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                       (letter >= '0' && letter <= '9') || letter == '.';
    if (stays)
      text += letter;
    else if (!text.empty() && text.back() != '-')
      text += '-';
  }
  return text;
}

std::string value_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

/// Makes the folder, and returns whether it is there.
bool make_folder(const std::string& folder) {
  std::error_code none;
  std::filesystem::create_directories(folder, none);
  return std::filesystem::is_directory(folder, none);
}

}  // namespace

std::string cache_folder() {
  const std::string own = value_of("DUPLEX_CACHE"), cache = value_of("XDG_CACHE_HOME"),
                    home = value_of("HOME");
  if (!own.empty()) return own == "off" ? "" : own;
  if (!cache.empty() && cache.front() == '/') return cache + "/duplex";
  return home.empty() ? "" : home + "/.cache/duplex";
}

std::string cache_file(const std::string& folder, const std::string& name) {
  return folder.empty() || !make_folder(folder) ? "" : folder + "/" + file_name(name);
}

}  // namespace duplex::cudnn
