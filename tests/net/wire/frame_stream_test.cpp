// Frames over a stream in every protection, and streams that somebody tampers with.
#include "net/wire/frame_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/mapped_memory.h"
#include "tests/net/wire/socket_pair.h"

namespace duplex::net {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr Protection all_protections[] = {Protection::none, Protection::checksum,
                                          Protection::sealed};

/// Two streams that have agreed.
struct StreamPair {
  explicit StreamPair(Protection protection) {
    const DirectionSecrets secrets{sha256("there"), sha256("back")};
    near = FrameStream(std::move(pair.near));
    far = FrameStream(std::move(pair.far));
    near.protect(protection, secrets);
    far.protect(protection, {secrets.in, secrets.out});
  }
  SocketPair pair;
  FrameStream near, far;
};

FrameHeader header_of(FrameKind kind, std::uint64_t length, std::uint64_t step = 0) {
  FrameHeader header;
  header.kind = kind;
  header.step = step;
  header.length = length;
  return header;
}

Deadline soon() {
  return SocketPair::in(20000);
}

TEST(FrameStream, PlainBytesAreTheHeadersGoldenOnesAndThePayload) {
  StreamPair streams(Protection::none);
  FrameHeader header = header_of(FrameKind::weights, 3, 0x1112131415161718);
  header.parameter = 0x01020304;
  header.chunk = 0x05060708;
  streams.near.write(header, "abc", soon(), "testing");
  std::array<std::uint8_t, header_bytes + 3> wire;
  streams.far.socket().read_exact(wire.data(), wire.size(), soon(), "testing");
  const decltype(wire) golden{'D',  'X',  'P',  'L',  0x06, 0x00, 0x10, 0x00, 0x04,
                              0x03, 0x02, 0x01, 0x08, 0x07, 0x06, 0x05, 0x18, 0x17,
                              0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0x03, 0,    0,
                              0,    0,    0,    0,    0,    'a',  'b',  'c'};
  EXPECT_EQ(wire, golden);
}

class Streams : public testing::TestWithParam<Protection> {};
INSTANTIATE_TEST_SUITE_P(Protections, Streams, testing::ValuesIn(all_protections),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Streams, CarryFramesOfEverySizeAndCountTheirBytes) {
  const std::size_t sizes[] = {0, 1, 4, 1000, 256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 1500000};
  StreamPair streams(GetParam());
  const Buffer memory = map_memory(1500000);  // Borrowed bytes are not used again.
  auto* const body = static_cast<std::uint8_t*>(memory.data());
  std::iota(body, body + 1500000, std::uint8_t{1});
  std::uint64_t expected = 0;
  std::thread writer([&] {
    const WithoutSigpipe quiet;
    for (const std::size_t size : sizes) {
      streams.near.write(header_of(FrameKind::weights, size), body, soon(), "testing");
      streams.near.write(header_of(FrameKind::gradient, size), body, soon(), "testing",
                         Payload::borrowed);
    }
  });
  for (const std::size_t size : sizes)
    for (const FrameKind kind : {FrameKind::weights, FrameKind::gradient}) {
      const FrameHeader header = streams.far.read_header(soon(), "testing");
      EXPECT_EQ(header.kind, kind);
      ASSERT_EQ(header.length, size);
      Bytes payload(size);
      streams.far.read_payload(payload.data(), size, soon(), "testing");
      EXPECT_TRUE(std::equal(payload.begin(), payload.end(), body)) << size;
      expected += streams.near.bytes_of(size);
    }
  writer.join();
  const KernelCounters near = streams.near.socket().counters();
  if (near.known) {
    EXPECT_EQ(near.sent, expected) << "the ledger's figures are the kernel's";
    EXPECT_EQ(streams.far.socket().counters().received, expected);
  }
}

TEST_P(Streams, GoBothWaysAtOnce) {
  StreamPair streams(GetParam());
  const Bytes body(300000, 7);
  const auto write = [&](FrameStream& stream) {
    for (std::uint64_t i = 0; i < 50; ++i)
      stream.write(header_of(FrameKind::weights, body.size(), i), body.data(), soon(), "testing");
  };
  const auto read = [&](FrameStream& stream) {
    for (std::uint64_t i = 0; i < 50; ++i) {
      EXPECT_EQ(stream.read_header(soon(), "testing").step, i);
      Bytes payload(body.size());
      stream.read_payload(payload.data(), payload.size(), soon(), "testing");
      EXPECT_EQ(payload, body);
    }
  };
  std::thread threads[] = {
      std::thread([&] { write(streams.near); }), std::thread([&] { write(streams.far); }),
      std::thread([&] { read(streams.near); }), std::thread([&] { read(streams.far); })};
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Streams, PeekAtWholeFramesOnly) {
  StreamPair streams(GetParam());
  const Bytes body(100, 3);
  EXPECT_TRUE(streams.far.peek(1000).empty());
  streams.near.write(header_of(FrameKind::offer, body.size()), body.data(), soon(), "testing");
  streams.near.write(header_of(FrameKind::goodbye, 0), nullptr, soon(), "testing");
  while (streams.far.peek(1000).size() < 2) std::this_thread::yield();
  for (int turn = 0; turn < 2; ++turn) {
    const auto frames = streams.far.peek(1000);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[0].header.kind, FrameKind::offer);
    EXPECT_EQ(frames[0].payload, body);
    EXPECT_EQ(frames[1].header.kind, FrameKind::goodbye);
  }
  EXPECT_EQ(streams.far.peek(streams.far.bytes_of(100) - 1).size(), 0U);
  EXPECT_EQ(streams.far.peek(streams.far.bytes_of(100)).size(), 1U);
  Bytes payload(100);
  EXPECT_EQ(streams.far.read_header(soon(), "testing").kind, FrameKind::offer);
  streams.far.read_payload(payload.data(), payload.size(), soon(), "testing");
  EXPECT_EQ(streams.far.read_header(soon(), "testing").kind, FrameKind::goodbye);
}

/// The bytes on the wire of two frames: one of 8 bytes and one of none.
Bytes two_frames(Protection protection) {
  StreamPair streams(protection);
  const Bytes body{1, 2, 3, 4, 5, 6, 7, 8};
  streams.near.write(header_of(FrameKind::report, body.size()), body.data(), soon(), "testing");
  streams.near.write(header_of(FrameKind::goodbye, 0), nullptr, soon(), "testing");
  Bytes bytes(frame_bytes(protection, 8) + frame_bytes(protection, 0));
  streams.far.socket().read_exact(bytes.data(), bytes.size(), soon(), "testing");
  return bytes;
}

/// Reads both frames of a stream with these bytes. Returns what went wrong, "" if nothing did.
std::string reads(Protection protection, const Bytes& bytes) {
  StreamPair streams(protection);
  streams.near.socket().write_all(bytes.data(), bytes.size(), nullptr, 0, soon(), "testing");
  streams.near.socket().end_sending();
  streams.far.socket().name_peer("rank 7 (there)");
  try {
    for (int i = 0; i < 2; ++i) {
      const FrameHeader header = streams.far.read_header(soon(), "testing");
      if (header.length > 8) return "a wrong length";
      Bytes payload(header.length);
      streams.far.read_payload(payload.data(), payload.size(), soon(), "testing");
    }
  } catch (const NetworkError& error) {
    EXPECT_EQ(error.code, Exit::peer_lost);
    return error.what();
  }
  return "";
}

TEST(Tampering, EveryBitThatIsFlippedEndsAProtectedStream) {
  for (const Protection protection : {Protection::checksum, Protection::sealed}) {
    const Bytes bytes = two_frames(protection);
    EXPECT_EQ(reads(protection, bytes), "");
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      Bytes flipped = bytes;
      flipped[bit / 8] ^= static_cast<std::uint8_t>(1 << (bit % 8));
      const std::string message = reads(protection, flipped);
      EXPECT_NE(message.find("rank 7 (there): bytes have come that it did not send so"),
                std::string::npos)
          << name_of(protection) << ", bit " << bit << ": " << message;
    }
  }
}

TEST(Tampering, EveryCutEndsAStream) {
  for (const Protection protection : all_protections) {
    const Bytes bytes = two_frames(protection);
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_NE(
          reads(protection, Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)))
              .find("rank 7 (there)"),
          std::string::npos)
          << name_of(protection) << ", " << size << " bytes";
  }
}

TEST(Tampering, FramesThatAreLeftOutRepeatedOrSwappedEndASealedStream) {
  const Bytes bytes = two_frames(Protection::sealed);
  const auto first =
      bytes.begin() + static_cast<std::ptrdiff_t>(frame_bytes(Protection::sealed, 8));
  const Bytes one(bytes.begin(), first), two(first, bytes.end());
  const auto together = [](const Bytes& a, const Bytes& b) {
    Bytes all = a;
    all.insert(all.end(), b.begin(), b.end());
    return all;
  };
  EXPECT_EQ(reads(Protection::sealed, together(one, two)), "");
  for (const Bytes& wrong : {two, together(one, one), together(two, one)})
    EXPECT_NE(reads(Protection::sealed, wrong).find("did not send so"), std::string::npos);
}

TEST(Sealed, BytesTellNothing) {
  const Bytes plain = two_frames(Protection::none), sealed = two_frames(Protection::sealed);
  const std::string magic = "DXPL";
  const auto tells = [&](const Bytes& bytes) {
    return std::search(bytes.begin(), bytes.end(), magic.begin(), magic.end()) != bytes.end();
  };
  EXPECT_TRUE(tells(plain));
  EXPECT_FALSE(tells(sealed));
}

}  // namespace
}  // namespace duplex::net
