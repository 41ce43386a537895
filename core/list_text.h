// Texts that list items, such as settings: "sync join, batch 32".
#pragma once
#include <string>

namespace duplex {

/// Returns the items of `text`, separated by ", ", that `other` lacks.
std::string only_in(const std::string& text, const std::string& other);

}  // namespace duplex
