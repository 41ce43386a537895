// The codings in which the values of a chunk cross the wire: float32 as it is, packed without loss,
// or 16 bits a value.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "net/coding/lossless.h"

namespace duplex::net {

/// The numbers are the protocol's.
enum class Coding : std::uint8_t {
  float32 = 0,  ///< IEEE 754 binary32.
  bf16 = 1,     ///< The upper half of a binary32: 8 bits of exponent, 7 of mantissa.
  /// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa. A chunk is scaled by a power of two, so
  /// that its largest finite value fits.
  fp16 = 2,
  /// Packed, exact to the bit (lossless.h): new weights as differences to the old ones, which both
  /// ends hold, and gradients alone.
  lossless = 3,
};

/// A peer has sent bytes that are no values of their coding.
class CodingError : public Error {
 public:
  using Error::Error;
};

/// Says what a chunk's values are.
enum class Values { weights, gradient };

std::string name_of(Coding coding);  ///< "float32", "bf16", "fp16" or "lossless".
std::optional<Coding> coding_of(const std::string& name);

/// Returns whether values are the same at both ends.
constexpr bool is_exact(Coding coding) {
  return coding == Coding::float32 || coding == Coding::lossless;
}

/// Returns the bytes of `count` values on the wire, or the most of them where their number depends
/// on the values.
constexpr std::size_t coded_bytes(Coding coding, std::size_t count) {
  switch (coding) {
    case Coding::float32:
      break;
    case Coding::bf16:
      return 2 * count;
    case Coding::fp16:
      return 4 + 2 * count;  // The scale's exponent comes first.
    case Coding::lossless:
      return 4 + packed_limit(count);  // The checksum of the old weights comes first.
  }
  return 4 * count;
}

/// The parts of float32's bytes that chunks come to when they are packed without loss. They depend
/// on the network and on the sizes of its updates (docs/training.md, Fewer bytes).
struct PackedParts {
  double weights = 0.53, gradients = 0.81;
  /// Bytes of float32 a second that a processor packs, and unpacks.
  double rate = 1.5e9;
};

/// Returns the bytes that `count` values are expected to take on the wire.
std::size_t expected_bytes(Coding coding, Values what, std::size_t count,
                           const PackedParts& packed);

/// Returns whether a payload of so many bytes may be of `count` values.
constexpr bool fits(Coding coding, std::size_t count, std::uint64_t bytes) {
  const std::size_t most = coded_bytes(coding, count);
  return coding == Coding::lossless ? bytes <= most : bytes == most;
}

/// Bytes that a buffer to encode into must have beside coded_bytes().
constexpr std::size_t coding_slack = packing_slack;

/// Writes values to `to` and returns how many bytes they are. They are rounded to the nearest that
/// the coding has, ties to the even one; infinities and NaNs stay. Weights are not for lossless.
/// `from` and `to` do not overlap.
std::size_t encode(Coding coding, const float* from, std::size_t count, std::uint8_t* to);
/// Writes weights for a rank that has `before`, lossless, and returns how many bytes they are.
std::size_t encode_weights(const float* now, const float* before, std::size_t count,
                           std::uint8_t* to);
/// Reads `size` bytes, which fit; `to` has the old weights where weights are lossless. Values that
/// are too small for fp16's scale are zero. Throws CodingError for bytes that are no such values,
/// which only lossless has; what is in `to` is not to be used then.
void decode(Coding coding, Values what, const std::uint8_t* from, std::size_t size,
            std::size_t count, float* to);

/// The codings of a run: of weights from their owners, and of gradients to them. Owners keep their
/// weights, and add gradients up, in float32. Whoever trains alike uses the same.
struct WireFormat {
  Coding weights = Coding::float32, gradients = Coding::float32;

  /// Returns whether everybody computes with the same values as without a coding.
  bool exact() const { return is_exact(weights) && is_exact(gradients); }
  /// "float32", "bf16", "weights:bf16", "weights:bf16,gradients:fp16".
  std::string str() const;
  bool operator==(const WireFormat& other) const {
    return weights == other.weights && gradients == other.gradients;
  }
};

/// Reads what str() writes. Throws Error(Exit::usage).
WireFormat parse_wire_format(const std::string& text);

}  // namespace duplex::net
