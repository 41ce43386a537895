// This machine's name, for people.
#pragma once
#include <string>

namespace duplex::tools {

std::string host_name();

}  // namespace duplex::tools
