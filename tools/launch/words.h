// The words of a command line, as a list: flags and their values.
#pragma once
#include <string>
#include <vector>

namespace duplex::tools {

/// The value of a flag; "" if it is not there.
std::string value_of(const std::vector<std::string>& words, const std::string& flag);

/// Gives a flag that is there another value; does nothing if it is not there.
void replace_value(std::vector<std::string>& words, const std::string& flag,
                   const std::string& value);

/// Removes a flag with its value.
void remove_flag(std::vector<std::string>& words, const std::string& flag);

}  // namespace duplex::tools
