// Rates of links, as people write them.
#pragma once
#include <string>

namespace duplex::tools {

/// The bytes a second of "1Gbit/s", "100 Mbit" or "12.5MB/s": k, M and G are thousands; "/s" may be
/// left out, and bits may be written without capitals ("1gbit"). Throws Error(Exit::usage).
double parse_rate(const std::string& text);
/// "1 Gbit/s", "941.5 Mbit/s".
std::string rate_text(double bytes_per_second);

}  // namespace duplex::tools
