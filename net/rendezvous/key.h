// The cluster key, and the files that hold it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "net/crypto/digest.h"

namespace duplex::net {

/// A secret that every rank of a cluster has a copy of; empty: there is no key.
class Key {
 public:
  static constexpr std::size_t bytes = 32;

  Key() = default;
  explicit Key(const Digest& secret) : secret_(secret), empty_(false) {}

  bool empty() const { return empty_; }
  /// The HMAC-SHA256 (RFC 2104); an empty key counts as 32 zero bytes.
  Digest hmac(std::string_view message) const { return net::hmac(secret_, message); }
  std::string text() const;  ///< The content of a key file.
  /// Tells keys apart without giving them away: "ab12cd34".
  std::string fingerprint() const { return short_hex(hmac("fingerprint")); }

 private:
  Digest secret_{};
  bool empty_ = true;
};

/// Makes a new key and writes it to a file that its owner alone can read. Throws Error if the file
/// exists already.
Key create_key(const std::string& path);
/// Returns whether a user may trust a key file that belongs to `owner`: the user's own, or root's.
inline bool trusted_owner(unsigned owner, unsigned user) {
  return owner == user || owner == 0;
}
/// Throws Error for a file that holds no key, or that others than its owner can read or write.
Key read_key(const std::string& path);

}  // namespace duplex::net
