#include "net/wire/protection.h"

#include "net/crypto/sealing.h"

namespace duplex::net {

static_assert(trailer_bytes(Protection::sealed) == tag_bytes);

std::string name_of(Protection protection) {
  switch (protection) {
    case Protection::none:
      return "plain";
    case Protection::checksum:
      return "checksum";
    case Protection::sealed:
      return "sealed";
  }
  return "protection " + std::to_string(static_cast<int>(protection));
}

}  // namespace duplex::net
