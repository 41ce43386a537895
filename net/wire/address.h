// Where a rank listens, as users write it.
#pragma once
#include <cstdint>
#include <string>

namespace duplex::net {

/// "host:port"; IPv6 addresses in brackets.
struct Address {
  std::string host;
  std::uint16_t port = 0;

  /// Throws Error(Exit::usage). Without ":port", `default_port`.
  static Address parse(const std::string& text, std::uint16_t default_port);
  std::string str() const;
};

}  // namespace duplex::net
