// The reason of a failure of the network, for whoever tells the rest in words of its own.
#pragma once
#include <string>

#include "net/wire/socket.h"

namespace duplex::net {

/// Returns the reason alone of an error that a Socket has thrown: "Connection refused", or
/// "deadline passed".
std::string bare_reason(const NetworkError& error);

}  // namespace duplex::net
