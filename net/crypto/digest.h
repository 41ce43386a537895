// SHA-256 digests, HMAC-SHA256 and random bytes, all by OpenSSL.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

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

/// The HMAC-SHA256 (RFC 2104) of a message under a secret. With `secret` as the salt and key
/// material as the message it is HKDF's extract step; with the result as the secret and a label
/// followed by the byte 1 as the message it is the first block of its expand step (RFC 5869).
Digest hmac(const Digest& secret, std::string_view message);

std::string hex(const std::uint8_t* bytes, std::size_t size);
std::string short_hex(const Digest& digest);  ///< The first four bytes, "ab12cd34".
Digest random_digest();                       ///< 32 bytes that nobody can foresee.
/// Takes the same time wherever the digests differ.
bool equal(const Digest& a, const Digest& b);

}  // namespace duplex::net
