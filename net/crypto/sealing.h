// Sealing is authenticated encryption (AES-256-GCM, NIST SP 800-38D) of a sequence of messages that
// go in one direction. The number of a message is its nonce and is not sent: a message that was
// changed, left out, repeated, moved or put in does not open.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "net/crypto/digest.h"

struct evp_cipher_ctx_st;  // OpenSSL's EVP_CIPHER_CTX.

namespace duplex::net {

/// Bytes of GCM's tag, which a sealed message has behind its text.
constexpr std::size_t tag_bytes = 16;
using Tag = std::array<std::uint8_t, tag_bytes>;

/// One side of one direction. The sender's and the receiver's begin with the same secret.
///
/// A key serves for `key_limit` bytes; then the secret makes a new one, and is replaced itself. RFC
/// 8446 (5.5) asks TLS for less than 2^-57 as the advantage of an attacker who sees as many blocks
/// as a key may encrypt; 2^36 bytes under one key keep it below 2^-64.
class Sealing {
 public:
  enum class Does { seal, open };
  static constexpr std::uint64_t key_limit = std::uint64_t{1} << 36;

  Sealing(const Digest& secret, Does does, std::uint64_t limit = key_limit);

  /// Begins the next message.
  void begin();
  /// Encrypts or decrypts the next piece of it; `to` may be `from`. Nobody may
  /// believe decrypted bytes before opens().
  void update(const void* from, std::size_t size, void* to);
  Tag end();                   ///< Ends a message that was sealed.
  bool opens(const Tag& tag);  ///< Ends a message that was opened; false: it is not the sender's.

  /// Opens a whole message that comes `ahead` messages behind the next one, which stays the next.
  /// Call it between messages, while the first key serves. Returns false as opens() does.
  bool peek(std::uint64_t ahead, const void* from, std::size_t size, void* to,
            const Tag& tag) const;

 private:
  void take_key();
  void start(std::uint64_t number) const;
  bool matches(Tag tag) const;

  Digest secret_;
  Does does_;
  std::uint64_t limit_;
  std::array<std::uint8_t, 12> iv_{};
  std::uint64_t next_ = 0;   ///< Number of the next message under this key.
  std::uint64_t bytes_ = 0;  ///< Bytes under this key.
  std::unique_ptr<evp_cipher_ctx_st, void (*)(evp_cipher_ctx_st*)> context_;
};

}  // namespace duplex::net
