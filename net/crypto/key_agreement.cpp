#include "net/crypto/key_agreement.h"

#include <openssl/evp.h>

#include "core/error.h"

namespace duplex::net {
namespace {

using Context = std::unique_ptr<EVP_PKEY_CTX, void (*)(EVP_PKEY_CTX*)>;

void require(bool done, const char* what) {
  if (!done) throw Error(std::string("OpenSSL cannot ") + what + " (X25519)");
}

EVP_PKEY* new_key() {
  const Context context(EVP_PKEY_CTX_new_id(EVP_PKEY_X25519, nullptr), EVP_PKEY_CTX_free);
  EVP_PKEY* key = nullptr;
  require(context != nullptr && EVP_PKEY_keygen_init(context.get()) == 1 &&
              EVP_PKEY_keygen(context.get(), &key) == 1,
          "make a key");
  return key;
}

}  // namespace

KeyAgreement::KeyAgreement() : key_(new_key(), EVP_PKEY_free) {}

KeyAgreement::KeyAgreement(const Digest& private_key)
    : key_(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, private_key.data(),
                                        private_key.size()),
           EVP_PKEY_free) {
  require(key_ != nullptr, "take a private key");
}

Digest KeyAgreement::public_key() const {
  Digest key;
  std::size_t size = key.size();
  require(EVP_PKEY_get_raw_public_key(key_.get(), key.data(), &size) == 1 && size == key.size(),
          "tell a public key");
  return key;
}

Digest KeyAgreement::shared_secret(const Digest& their_public_key) const {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> theirs(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, their_public_key.data(),
                                  their_public_key.size()),
      EVP_PKEY_free);
  const Context context(EVP_PKEY_CTX_new(key_.get(), nullptr), EVP_PKEY_CTX_free);
  Digest secret;
  std::size_t size = secret.size();
  require(theirs != nullptr && context != nullptr && EVP_PKEY_derive_init(context.get()) == 1 &&
              EVP_PKEY_derive_set_peer(context.get(), theirs.get()) == 1 &&
              EVP_PKEY_derive(context.get(), secret.data(), &size) == 1 && size == secret.size(),
          "agree on a secret with the peer's public key");
  return secret;
}

}  // namespace duplex::net
