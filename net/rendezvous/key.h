// The cluster key, and SHA-256 digests, HMAC-SHA256 and random bytes, all by OpenSSL.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX.

namespace duplex::net {

using Digest = std::array<std::uint8_t, 32>;

Digest sha256(std::string_view bytes);

/// The SHA-256 of data that comes piece by piece.
class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  Digest digest();  ///< The digest of all pieces; call it once, at the end.

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

std::string short_hex(const Digest& digest);  ///< The first four bytes, "ab12cd34".
Digest random_digest();                       ///< 32 bytes that nobody can foresee.
/// Takes the same time wherever the digests differ.
bool equal(const Digest& a, const Digest& b);

/// A secret that every rank of a cluster has a copy of; empty: there is no key.
class Key {
 public:
  static constexpr std::size_t bytes = 32;

  Key() = default;
  explicit Key(const Digest& secret) : secret_(secret), empty_(false) {}

  bool empty() const { return empty_; }
  /// The HMAC-SHA256 (RFC 2104); an empty key counts as 32 zero bytes.
  Digest hmac(std::string_view message) const;
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
