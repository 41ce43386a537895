// X25519 (RFC 7748): two sides that exchange public keys come to a secret that nobody who listens
// knows. A private key lives for one handshake, so that whoever learns the cluster key later still
// cannot read what was recorded before (forward secrecy).
#pragma once
#include <memory>

#include "net/crypto/digest.h"

struct evp_pkey_st;  // OpenSSL's EVP_PKEY.

namespace duplex::net {

class KeyAgreement {
 public:
  KeyAgreement();  ///< Makes a new private key. Throws Error if OpenSSL has no X25519.
  /// Takes a private key of 32 bytes, for tests with known answers.
  explicit KeyAgreement(const Digest& private_key);

  Digest public_key() const;
  /// Throws Error for a public key that gives no secret (one of few points that force it to 0).
  Digest shared_secret(const Digest& their_public_key) const;

 private:
  std::unique_ptr<evp_pkey_st, void (*)(evp_pkey_st*)> key_;
};

}  // namespace duplex::net
