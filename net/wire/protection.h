// The ways to protect a connection's frames on the wire (docs/security.md).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "net/wire/frame.h"

namespace duplex::net {

/// The numbers are the protocol's.
enum class Protection : std::uint8_t {
  none = 0,      ///< Plain bytes, as TCP's own checksum of 16 bits lets them through.
  checksum = 1,  ///< A CRC32C behind each header and each payload finds damage by accident.
  sealed = 2,    ///< Encrypted and authenticated: nobody else can read or change them.
};

std::string name_of(Protection protection);  ///< "plain", "checksum" or "sealed".

/// Bytes that follow a header, and that follow a payload which is not empty.
constexpr std::size_t trailer_bytes(Protection protection) {
  return protection == Protection::sealed ? 16 : protection == Protection::checksum ? 4 : 0;
}

/// Bytes on the wire of a frame with so many bytes of payload.
constexpr std::uint64_t frame_bytes(Protection protection, std::uint64_t length) {
  const std::uint64_t trailer = trailer_bytes(protection);
  return header_bytes + trailer + (length > 0 ? length + trailer : 0);
}

/// The protection that the user asks for.
struct ProtectionSpec {
  enum class Seal { beyond_loopback, always, never };

  Seal seal = Seal::beyond_loopback;
  bool checksum = false;  ///< Frames that are not sealed have checksums.

  /// Returns what a connection gets. Both of its ends come to the same answer, since both or
  /// neither have a loopback address.
  Protection of(bool loopback) const {
    if (seal == Seal::always || (seal == Seal::beyond_loopback && !loopback))
      return Protection::sealed;
    return checksum ? Protection::checksum : Protection::none;
  }
};

}  // namespace duplex::net
