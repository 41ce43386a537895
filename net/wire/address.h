// The address at which a rank listens, as users write it.
#pragma once
#include <cstdint>
#include <string>

#include "core/error.h"

namespace duplex::net {

/// A host's name has no address: it is wrong, or name servers do not know it yet.
class UnknownHost : public Error {
 public:
  using Error::Error;
};

/// "host:port", with IPv6 addresses in brackets.
struct Address {
  std::string host;
  std::uint16_t port = 0;

  /// Throws Error(Exit::usage) for text that is no address. Without ":port" the port is
  /// `default_port`.
  static Address parse(const std::string& text, std::uint16_t default_port);
  std::string str() const;
};

}  // namespace duplex::net
