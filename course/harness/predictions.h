// The figures that a student wrote down before they were measured.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace duplex::course {

/// Reads lines "name = number" from a file; lines that begin with # and empty ones are for the
/// reader, and "name = ?" is a figure that is not predicted yet (no value). Every one of `names`
/// has to be there, and nothing else. Throws Error with the line where the file says something
/// else.
std::map<std::string, std::optional<double>> read_predictions(
    const std::string& path, const std::vector<std::string>& names);

}  // namespace duplex::course
