// The codings in which the values of a chunk cross the wire: float32 as it is, or 16 bits a value.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace duplex::net {

/// The numbers are the protocol's.
enum class Coding : std::uint8_t {
  float32 = 0,  ///< IEEE 754 binary32.
  bf16 = 1,     ///< The upper half of a binary32: 8 bits of exponent, 7 of mantissa.
  /// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa. A chunk is scaled by a power of two, so
  /// that its largest finite value fits.
  fp16 = 2,
};

std::string name_of(Coding coding);  ///< "float32", "bf16" or "fp16".
std::optional<Coding> coding_of(const std::string& name);

/// Bytes of `count` values on the wire.
constexpr std::size_t coded_bytes(Coding coding, std::size_t count) {
  switch (coding) {
    case Coding::float32:
      break;
    case Coding::bf16:
      return 2 * count;
    case Coding::fp16:
      return 4 + 2 * count;  // The scale's exponent comes first.
  }
  return 4 * count;
}

/// Writes coded_bytes() to `to`. Values are rounded to the nearest that the coding has, ties to the
/// even one; infinities and NaNs stay. `from` and `to` do not overlap.
void encode(Coding coding, const float* from, std::size_t count, std::uint8_t* to);
/// Reads coded_bytes() from `from`; any bytes are some values. Values that are too small for
/// fp16's scale are zero.
void decode(Coding coding, const std::uint8_t* from, std::size_t count, float* to);

/// The codings of a run: of weights from their owners, and of gradients to them. Owners keep their
/// weights, and add gradients up, in float32. Whoever trains alike uses the same.
struct WireFormat {
  Coding weights = Coding::float32, gradients = Coding::float32;

  /// Returns whether everybody computes with the same values as without a coding.
  bool exact() const { return weights == Coding::float32 && gradients == Coding::float32; }
  /// "float32", "bf16", "weights:bf16", "weights:bf16,gradients:fp16".
  std::string str() const;
  bool operator==(const WireFormat& other) const {
    return weights == other.weights && gradients == other.gradients;
  }
};

/// Reads what str() writes. Throws Error(Exit::usage).
WireFormat parse_wire_format(const std::string& text);

}  // namespace duplex::net
