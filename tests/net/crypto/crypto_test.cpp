// Digests, key agreement and sealing against published vectors, and what sealing must refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "net/crypto/digest.h"
#include "net/crypto/key_agreement.h"
#include "net/crypto/sealing.h"

namespace duplex::net {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::string text_of(const Digest& digest) {
  return hex(digest.data(), digest.size());
}

/// HMAC pads a short key with zeros, so the key with zeros behind it is the same.
Digest padded(const Bytes& key) {
  Digest digest{};
  std::copy(key.begin(), key.end(), digest.begin());
  return digest;
}

TEST(Digest, Sha256IsThatOfFips180) {
  EXPECT_EQ(text_of(sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(short_hex(sha256("abc")), "ba7816bf");
}

TEST(Digest, HmacIsThatOfRfc4231) {
  EXPECT_EQ(text_of(hmac(padded(Bytes(20, 0x0b)), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
}

TEST(Digest, HmacMakesTheHkdfOfRfc5869) {
  // Test case 1.
  Bytes salt(13);
  for (std::size_t i = 0; i < salt.size(); ++i) salt[i] = static_cast<std::uint8_t>(i);
  const Digest secret = hmac(padded(salt), std::string(22, '\x0b'));
  EXPECT_EQ(text_of(secret), "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5");
  std::string info;
  for (int i = 0xf0; i <= 0xf9; ++i) info += static_cast<char>(i);
  EXPECT_EQ(text_of(hmac(secret, info + '\x01')),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
}

TEST(KeyAgreement, IsTheX25519OfRfc7748) {
  // Section 5.2: the result becomes the next private key, the private key the next point.
  Digest k{9}, u{9};
  for (int i = 0; i < 1000; ++i) {
    const Digest result = KeyAgreement(k).shared_secret(u);
    u = k;
    k = result;
    if (i == 0) {
      EXPECT_EQ(text_of(k), "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079");
    }
  }
  EXPECT_EQ(text_of(k), "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51");
}

TEST(KeyAgreement, GivesBothSidesOneSecretAndNobodyAnother) {
  const KeyAgreement a, b;
  EXPECT_EQ(a.shared_secret(b.public_key()), b.shared_secret(a.public_key()));
  EXPECT_NE(a.public_key(), b.public_key());
  EXPECT_THROW(a.shared_secret(Digest{}), Error) << "a point that forces the secret to 0";
}

Digest counted() {
  Digest digest;
  for (std::size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<std::uint8_t>(i);
  return digest;
}

/// The message and its tag.
Bytes sealed(Sealing& seals, const std::string& message) {
  Bytes bytes(message.size());
  seals.begin();
  const std::size_t half = message.size() / 2;
  seals.update(message.data(), half, bytes.data());
  seals.update(message.data() + half, message.size() - half, bytes.data() + half);
  const Tag tag = seals.end();
  bytes.insert(bytes.end(), tag.begin(), tag.end());
  return bytes;
}

/// "" if it does not open.
std::string opened(Sealing& opens, const Bytes& bytes) {
  std::string message(bytes.size() - tag_bytes, '\0');
  Tag tag;
  std::copy(bytes.end() - tag_bytes, bytes.end(), tag.begin());
  opens.begin();
  opens.update(bytes.data(), message.size(), message.data());
  return opens.opens(tag) ? message : "";
}

TEST(Sealing, IsAesGcmWithKeysThatFollowEachOther) {
  // By hmac, hashlib and cryptography's AESGCM in Python. The second message ends the first key.
  Sealing seals(counted(), Sealing::Does::seal, 15), opens(counted(), Sealing::Does::open, 15);
  const std::string messages[] = {"weights", "gradient", "weights"};
  const char* expected[] = {"b4dad60a514ee185e73b3def1c892beee9e70e151645dc",
                            "52a75aae22488e4cf60912c5e64bd45334f3e9e1e3e65641",
                            "f7fefb5c50b9a9dd03f6cf3e0a49822644a6c65cbdbbb6"};
  for (int i = 0; i < 3; ++i) {
    const Bytes bytes = sealed(seals, messages[i]);
    EXPECT_EQ(hex(bytes.data(), bytes.size()), expected[i]);
    EXPECT_EQ(opened(opens, bytes), messages[i]);
  }
}

TEST(Sealing, RefusesWhatTheSenderDidNotSendNow) {
  const auto seal_three = [] {
    Sealing seals(counted(), Sealing::Does::seal);
    std::vector<Bytes> all;
    for (const char* text : {"first", "second", "third"}) all.push_back(sealed(seals, text));
    return all;
  };
  const std::vector<Bytes> all = seal_three();
  const auto first = [&](const Bytes& bytes) {
    Sealing opens(counted(), Sealing::Does::open);
    return opened(opens, bytes);
  };
  EXPECT_EQ(first(all[0]), "first");
  EXPECT_EQ(first(all[1]), "") << "the first was left out";
  for (std::size_t bit = 0; bit < 8 * all[0].size(); ++bit) {
    Bytes flipped = all[0];
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1 << (bit % 8));
    EXPECT_EQ(first(flipped), "") << "bit " << bit;
  }
  Sealing opens(counted(), Sealing::Does::open);
  EXPECT_EQ(opened(opens, all[0]), "first");
  EXPECT_EQ(opened(opens, all[0]), "") << "repeated";
  Digest other = counted();
  other[31] ^= 1;
  Sealing stranger(other, Sealing::Does::open);
  EXPECT_EQ(opened(stranger, all[0]), "");
}

TEST(Sealing, PeeksWithoutTakingAnything) {
  Sealing seals(counted(), Sealing::Does::seal), opens(counted(), Sealing::Does::open);
  const Bytes first = sealed(seals, "first"), second = sealed(seals, "second");
  const auto peeked = [&](std::uint64_t ahead, const Bytes& bytes) {
    std::string message(bytes.size() - tag_bytes, '\0');
    Tag tag;
    std::copy(bytes.end() - tag_bytes, bytes.end(), tag.begin());
    return opens.peek(ahead, bytes.data(), message.size(), message.data(), tag) ? message : "";
  };
  EXPECT_EQ(peeked(1, second), "second");
  EXPECT_EQ(peeked(0, first), "first");
  EXPECT_EQ(peeked(0, second), "");
  EXPECT_EQ(opened(opens, first), "first");
  EXPECT_EQ(peeked(0, second), "second");
  EXPECT_EQ(opened(opens, second), "second");
}

}  // namespace
}  // namespace duplex::net
