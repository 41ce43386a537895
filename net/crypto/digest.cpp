#include "net/crypto/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "core/error.h"

namespace duplex::net {
namespace {

void require_sha256(bool done) {
  if (!done) throw Error("OpenSSL cannot compute SHA-256");
}

}  // namespace

Digest sha256(std::string_view bytes) {
  Sha256 sum;
  sum.add(bytes);
  return sum.digest();
}

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  require_sha256(context_ != nullptr &&
                 EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::add(std::string_view bytes) {
  require_sha256(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

Digest Sha256::digest() {
  Digest digest;
  unsigned int size = 0;
  require_sha256(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1 &&
                 size == digest.size());
  return digest;
}

Digest hmac(const Digest& secret, std::string_view message) {
  Digest mac;
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(), mac.data(),
           &size) == nullptr ||
      size != mac.size())
    throw Error("OpenSSL cannot compute HMAC-SHA256");
  return mac;
}

std::string hex(const std::uint8_t* bytes, std::size_t size) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

std::string short_hex(const Digest& digest) {
  return hex(digest.data(), 4);
}

Digest random_digest() {
  Digest bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    throw Error("OpenSSL has no random numbers");
  return bytes;
}

bool equal(const Digest& a, const Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace duplex::net
