#include "tools/run_directory/json_file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "tools/run_directory/json_fields.h"

namespace duplex::tools {

nlohmann::json parse_json_file(const std::string& path) {
  // Opening a pipe would wait for somebody who writes to it.
  if (std::error_code absent;
      std::filesystem::exists(path, absent) && !std::filesystem::is_regular_file(path, absent))
    throw Error(path + " cannot be read: it is no regular file");
  std::ifstream file(path);
  if (!file)
    throw Error(path + " cannot be read: " + std::generic_category().message(errno) +
                "; has the command that writes it ended?");
  if (file.peek() == std::ifstream::traits_type::eof())
    throw Error(path + " is damaged: it is empty, as where a run never began");
  try {
    return nlohmann::json::parse(file);
  } catch (const nlohmann::json::exception&) {
    throw Error(path + " is damaged: it is no JSON");
  }
}

nlohmann::json read_json_file(const std::string& path) {
  nlohmann::json json = parse_json_file(path);
  try {
    JsonReader(json).version();
  } catch (const Error& error) {
    throw Error(path + " " + error.what());
  }
  return json;
}

}  // namespace duplex::tools
