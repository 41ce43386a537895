// JSON files that say of which version they are.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace duplex::tools {

/// Throws Error where it is no regular file, cannot be read or is no JSON. It says nothing of the
/// version.
nlohmann::json parse_json_file(const std::string& path);

/// The same, for a file that has its version beside its other keys: throws Error where that is
/// another, too.
nlohmann::json read_json_file(const std::string& path);

}  // namespace duplex::tools
