// Sizes of memory, as people write them.
#pragma once
#include <cstddef>
#include <string>

namespace duplex::tools {

/// The bytes of "8GiB", "512 MiB" or "24GB": Ki, Mi, Gi and Ti count in 1024s, k, M, G and T in
/// thousands; a number alone is bytes. Throws Error(Exit::usage).
std::size_t parse_size(const std::string& text);
/// "1,234.5": mebibytes.
std::string mebibytes(std::size_t bytes);

}  // namespace duplex::tools
