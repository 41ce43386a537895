#include "net/crypto/sealing.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>

#include "core/error.h"

namespace duplex::net {
namespace {

/// OpenSSL counts in int.
constexpr std::size_t most_at_once = std::size_t{1} << 30;

void require(bool done) {
  if (!done) throw Error("OpenSSL cannot encrypt with AES-256-GCM");
}

}  // namespace

Sealing::Sealing(const Digest& secret, Does does, std::uint64_t limit)
    : secret_(secret),
      does_(does),
      limit_(limit),
      context_(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free) {
  require(context_ != nullptr);
  take_key();
}

void Sealing::take_key() {
  Digest key = hmac(secret_, "duplex key\x01");
  const Digest iv = hmac(secret_, "duplex iv\x01");
  std::copy_n(iv.begin(), iv_.size(), iv_.begin());
  secret_ = hmac(secret_, "duplex next\x01");
  const int seals = does_ == Does::seal ? 1 : 0;
  require(EVP_CipherInit_ex(context_.get(), EVP_aes_256_gcm(), nullptr, key.data(), nullptr,
                            seals) == 1);
  OPENSSL_cleanse(key.data(), key.size());
  next_ = bytes_ = 0;
}

/// The nonce is the key's initialisation vector with the message's number, big-endian, added to its
/// last bytes by XOR, as in TLS 1.3.
void Sealing::start(std::uint64_t number) const {
  std::array<std::uint8_t, 12> nonce = iv_;
  for (std::size_t i = 0; i < sizeof number; ++i)
    nonce[nonce.size() - 1 - i] ^= static_cast<std::uint8_t>(number >> (8 * i));
  require(EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr, nonce.data(), -1) == 1);
}

void Sealing::begin() {
  if (bytes_ >= limit_) take_key();
  start(next_++);
}

void Sealing::update(const void* from, std::size_t size, void* to) {
  bytes_ += size;
  const auto* in = static_cast<const unsigned char*>(from);
  auto* out = static_cast<unsigned char*>(to);
  while (size > 0) {
    const std::size_t piece = std::min(size, most_at_once);
    int done = 0;
    require(EVP_CipherUpdate(context_.get(), out, &done, in, static_cast<int>(piece)) == 1 &&
            static_cast<std::size_t>(done) == piece);
    in += piece;
    out += piece;
    size -= piece;
  }
}

Tag Sealing::end() {
  Tag tag;
  int more = 0;
  require(EVP_CipherFinal_ex(context_.get(), tag.data(), &more) == 1 && more == 0 &&
          EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_GCM_GET_TAG, static_cast<int>(tag.size()),
                              tag.data()) == 1);
  return tag;
}

bool Sealing::matches(Tag tag) const {
  int more = 0;
  unsigned char nothing[tag_bytes];
  require(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_GCM_SET_TAG, static_cast<int>(tag.size()),
                              tag.data()) == 1);
  return EVP_CipherFinal_ex(context_.get(), nothing, &more) == 1;
}

bool Sealing::opens(const Tag& tag) {
  return matches(tag);
}

bool Sealing::peek(std::uint64_t ahead, const void* from, std::size_t size, void* to,
                   const Tag& tag) const {
  start(next_ + ahead);
  int done = 0;
  require(EVP_CipherUpdate(context_.get(), static_cast<unsigned char*>(to), &done,
                           static_cast<const unsigned char*>(from), static_cast<int>(size)) == 1);
  return matches(tag);
}

}  // namespace duplex::net
