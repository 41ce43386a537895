#include "net/wire/frame_stream.h"

#include <algorithm>
#include <cstring>

#include "core/clock.h"
#include "core/files/crc32c.h"

namespace duplex::net {
namespace {

/// A payload is sealed, and opened, in pieces of so many bytes, which a processor's own cache
/// holds.
constexpr std::size_t piece_bytes = 256 * 1024;

std::array<std::uint8_t, 4> checksum_of(const void* bytes, std::size_t size) {
  const std::uint32_t sum = crc32c(0, bytes, size);
  std::array<std::uint8_t, 4> stored;
  for (std::size_t i = 0; i < stored.size(); ++i)
    stored[i] = static_cast<std::uint8_t>(sum >> (8 * i));
  return stored;
}

}  // namespace

void FrameStream::protect(Protection protection, const DirectionSecrets& secrets) {
  protection_ = protection;
  seals_.reset();
  opens_.reset();
  if (protection != Protection::sealed) return;
  seals_ = std::make_unique<Sealing>(secrets.out, Sealing::Does::seal);
  opens_ = std::make_unique<Sealing>(secrets.in, Sealing::Does::open);
}

void FrameStream::write(const FrameHeader& header, const void* payload, Deadline deadline,
                        const char* phase, Payload kind) {
  if (protection_ == Protection::sealed) return write_sealed(header, payload, deadline, phase);
  std::array<std::uint8_t, header_bytes + 4> head;
  std::memcpy(head.data(), &header, header_bytes);
  std::size_t head_size = header_bytes;
  if (protection_ == Protection::checksum) {
    const auto sum = checksum_of(&header, header_bytes);
    std::copy(sum.begin(), sum.end(), head.begin() + header_bytes);
    head_size += sum.size();
  }
  const auto write = kind == Payload::borrowed ? &Socket::write_borrowed : &Socket::write_all;
  (socket_.*write)(head.data(), head_size, payload, header.length, deadline, phase);
  if (protection_ == Protection::none || header.length == 0) return;
  const auto sum = checksum_of(payload, header.length);
  socket_.write_all(sum.data(), sum.size(), nullptr, 0, deadline, phase);
}

void FrameStream::write_sealed(const FrameHeader& header, const void* payload, Deadline deadline,
                               const char* phase) {
  const auto* from = static_cast<const std::uint8_t*>(payload);
  std::size_t left = header.length;
  sealed_.resize(
      std::max(sealed_.size(), header_bytes + tag_bytes + std::min(left, piece_bytes) + tag_bytes));
  std::uint8_t* at = sealed_.data();
  const auto put = [&at](const Tag& tag) { at = std::copy(tag.begin(), tag.end(), at); };
  seals_->begin();
  seals_->update(&header, header_bytes, at);
  at += header_bytes;
  put(seals_->end());
  if (left > 0) seals_->begin();
  do {
    const std::size_t piece = std::min(left, piece_bytes);
    if (piece > 0) seals_->update(from, piece, at);
    from += piece;
    at += piece;
    left -= piece;
    if (left == 0 && header.length > 0) put(seals_->end());
    socket_.write_all(sealed_.data(), static_cast<std::size_t>(at - sealed_.data()), nullptr, 0,
                      deadline, phase);
    at = sealed_.data();
  } while (left > 0);
}

/// A header is protected as a payload is.
FrameHeader FrameStream::read_header(Deadline deadline, const char* phase) {
  FrameHeader header;
  read_payload(&header, header_bytes, deadline, phase);
  return header;
}

void FrameStream::read_payload(void* to, std::size_t size, Deadline deadline, const char* phase) {
  if (size == 0) return;
  if (protection_ == Protection::sealed) return read_sealed(to, size, deadline, phase);
  socket_.read_exact(to, size, deadline, phase);
  if (protection_ == Protection::none) return;
  std::array<std::uint8_t, 4> sum;
  socket_.read_exact(sum.data(), sum.size(), deadline, phase);
  if (sum != checksum_of(to, size)) fail_to_open(phase);
}

void FrameStream::read_sealed(void* to, std::size_t size, Deadline deadline, const char* phase) {
  auto* at = static_cast<std::uint8_t*>(to);
  opens_->begin();
  while (size > 0) {
    const std::size_t piece = std::min(size, piece_bytes);
    socket_.read_exact(at, piece, deadline, phase);
    opens_->update(at, piece, at);
    at += piece;
    size -= piece;
  }
  Tag tag;
  socket_.read_exact(tag.data(), tag.size(), deadline, phase);
  if (!opens_->opens(tag)) fail_to_open(phase);
}

void FrameStream::fail_to_open(const char* phase) const {
  throw NetworkError("recv", socket_.peer(), phase,
                     "bytes have come that it did not send so: they were changed on the way, or "
                     "somebody else sent them",
                     0, Exit::peer_lost);
}

std::vector<PeekedFrame> FrameStream::peek(std::size_t most_bytes) const {
  std::vector<std::uint8_t> bytes(most_bytes);
  const std::ptrdiff_t got = socket_.peek(bytes.data(), bytes.size());
  bytes.resize(static_cast<std::size_t>(std::max<std::ptrdiff_t>(got, 0)));
  const std::size_t trailer = trailer_bytes(protection_);
  std::vector<PeekedFrame> frames;
  std::uint64_t number = 0;  // Messages from the next one on.
  for (std::size_t at = 0; bytes.size() - at >= header_bytes + trailer;) {
    PeekedFrame frame;
    if (!peek_part(bytes.data() + at, header_bytes, number++, &frame.header))
      fail_to_open("waiting for other ranks");
    at += header_bytes + trailer;
    if (frame.header.length > 0) {
      const std::size_t left = bytes.size() - at;
      if (left < trailer || frame.header.length > left - trailer) break;
      frame.payload.resize(frame.header.length);
      if (!peek_part(bytes.data() + at, frame.payload.size(), number++, frame.payload.data()))
        fail_to_open("waiting for other ranks");
      at += frame.payload.size() + trailer;
    }
    frames.push_back(std::move(frame));
  }
  return frames;
}

/// Copies a header or a payload to `to`. Returns false if what follows it shows that it is not the
/// peer's. `number`: messages from the next one on.
bool FrameStream::peek_part(const std::uint8_t* from, std::size_t size, std::uint64_t number,
                            void* to) const {
  if (protection_ == Protection::sealed) {
    Tag tag;
    std::copy_n(from + size, tag.size(), tag.begin());
    return opens_->peek(number, from, size, to, tag);
  }
  std::copy_n(from, size, static_cast<std::uint8_t*>(to));
  if (protection_ == Protection::none) return true;
  const auto sum = checksum_of(from, size);
  return std::equal(sum.begin(), sum.end(), from + size);
}

}  // namespace duplex::net
