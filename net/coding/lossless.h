// Weights and gradients in fewer bytes, exact to the bit for every pattern of 32 bits. New weights
// are packed as differences to the old ones, which both ends hold; gradients by what their
// exponents have in common. PROTOCOL.md has the format (Packed chunks). A call runs on one thread
// and allocates nothing.
#pragma once
#include <cstddef>
#include <cstdint>

namespace duplex::net {

/// Returns the most bytes that a packed chunk of `count` values has: one that does not shrink goes
/// raw, behind a byte that says so.
constexpr std::size_t packed_limit(std::size_t count) {
  return 1 + 4 * count;
}

/// Bytes that a buffer to pack into must have beside packed_limit(count).
constexpr std::size_t packing_slack = 8;

/// Packs the weights `now` as differences to `before`; returns the bytes of the packed chunk. It
/// overwrites packed_limit(count) + packing_slack bytes of `to` at most. The bytes are the same on
/// every processor.
std::size_t pack_weights(const float* now, const float* before, std::size_t count,
                         std::uint8_t* to);

/// Unpacks weights: takes those before from `weights` and overwrites them with the new ones. Throws
/// CodingError where the bytes are no packed chunk of `count` weights; it may have overwritten
/// some of the weights then, and never anything else. Where the weights before are not those that
/// the chunk was packed against, it throws or makes wrong weights.
void unpack_weights(const std::uint8_t* from, std::size_t size, float* weights, std::size_t count);

/// Packs a gradient as pack_weights packs weights.
std::size_t pack_gradient(const float* gradient, std::size_t count, std::uint8_t* to);

/// Overwrites `gradient` with what was packed; throws as unpack_weights does.
void unpack_gradient(const std::uint8_t* from, std::size_t size, float* gradient,
                     std::size_t count);

}  // namespace duplex::net
