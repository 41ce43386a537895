#include "net/wire/address.h"

#include <algorithm>
#include <cctype>

#include "core/error.h"

namespace duplex::net {

Address Address::parse(const std::string& text, std::uint16_t default_port) {
  const auto bad = [&](const char* why) {
    return Error("'" + text + "' is no address (" + why + "); write host, host:port or [ipv6]:port",
                 Exit::usage);
  };
  Address address;
  address.port = default_port;
  std::string port;
  if (!text.empty() && text[0] == '[') {
    const auto end = text.find(']');
    if (end == std::string::npos) throw bad("']' is missing");
    address.host = text.substr(1, end - 1);
    const std::string rest = text.substr(end + 1);
    if (!rest.empty() && rest[0] != ':') throw bad("text after ']'");
    if (!rest.empty()) port = rest.substr(1);
    if (!rest.empty() && port.empty()) throw bad("the port is empty");
  } else {
    const auto colon = text.find(':');
    address.host = text.substr(0, colon);
    if (colon != std::string::npos) {
      port = text.substr(colon + 1);
      if (port.empty()) throw bad("the port is empty");
    }
  }
  if (address.host.empty()) throw bad("the host is empty");
  if (address.host[0] == '-') throw bad("no host begins with '-'");
  const bool plain = std::all_of(address.host.begin(), address.host.end(), [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
           std::string("-._:%").find(letter) != std::string::npos;
  });
  if (!plain) throw bad("a host has letters, digits and -._:% alone");
  if (!port.empty()) {
    if (port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos ||
        std::stoul(port) > 65535)
      throw bad("the port is no number up to 65535");
    address.port = static_cast<std::uint16_t>(std::stoul(port));
  }
  return address;
}

std::string Address::str() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace duplex::net
