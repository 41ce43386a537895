// Breaks lines for a terminal of 80 columns.
#pragma once
#include <string>

namespace duplex::tools {

/// Returns the text with lines of at most `width` characters, broken at spaces where they are
/// longer; a word that is longer stays whole.
std::string wrap(const std::string& text, std::size_t width = 80);

}  // namespace duplex::tools
