// Text within HTML and SVG.
#pragma once
#include <string>

namespace duplex::tools {

/// Returns the text as HTML and SVG have it, fit for attributes in double quotes, too.
inline std::string escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace duplex::tools
