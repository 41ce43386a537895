#include "net/coding/coding.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/files/crc32c.h"
#include "core/processor/clones.h"

namespace duplex::net {
namespace {

std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

constexpr std::uint32_t sign_bit = 0x80000000U, infinity = 0x7f800000U;

/// Computes `a` if `what`, else `b`, without a branch, so that compilers take several values at
/// once.
std::uint32_t select(bool what, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t mask = 0U - static_cast<std::uint32_t>(what);
  return (a & mask) | (b & ~mask);
}

/// The even one of two that are as near ends in 0; a NaN stays one, whatever its lower half is.
std::uint16_t bf16_of(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  const std::uint32_t nan = (bits >> 16U) | 0x40U;
  return static_cast<std::uint16_t>(select((bits & ~sign_bit) > infinity, nan, rounded));
}

// binary16 as in "Float->half conversion", F. Giesen 2012.

std::uint16_t fp16_of(float value) {
  constexpr std::uint32_t beyond = (127U + 16U) << 23U;        // From there on it is infinite.
  constexpr std::uint32_t least_normal = (127U - 14U) << 23U;  // Below it is denormal.
  // Added to a denormal one, it leaves the rounded mantissa in the lowest bits.
  constexpr std::uint32_t magic = ((127U - 15U) + (23U - 10U) + 1U) << 23U;
  const std::uint32_t bits = bits_of(value), size = bits & ~sign_bit;
  const std::uint32_t nan = 0x200U | ((size >> 13U) & 0x3ffU);
  const std::uint32_t special = 0x7c00U | select(size > infinity, nan, 0);
  const std::uint32_t denormal = bits_of(float_of(size) + float_of(magic)) - magic;
  const std::uint32_t normal =
      (size + 0xfffU - ((127U - 15U) << 23U) + ((size >> 13U) & 1U)) >> 13U;
  const std::uint32_t finite = select(size < least_normal, denormal, normal);
  return static_cast<std::uint16_t>(select(size < beyond, finite, special) |
                                    ((bits & sign_bit) >> 16U));
}

float of_fp16(std::uint16_t half) {
  constexpr std::uint32_t exponents = 0x7c00U << 13U, least_normal = (127U - 14U) << 23U;
  const std::uint32_t size = (half & 0x7fffU) << 13U, exponent = size & exponents;
  const std::uint32_t normal = size + ((127U - 15U) << 23U);
  const std::uint32_t special = normal + ((128U - 16U) << 23U);
  const float denormal = float_of(normal + (1U << 23U)) - float_of(least_normal);
  const std::uint32_t sign = (half & 0x8000U) << 16U;
  const std::uint32_t small = select(exponent == 0, bits_of(denormal), normal);
  return float_of(select(exponent == exponents, special, small) | sign);
}

DUPLEX_CLONES void encode_bf16(const float* from, std::size_t count, std::uint16_t* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = bf16_of(from[i]);
}

DUPLEX_CLONES void decode_bf16(const std::uint16_t* from, std::size_t count, float* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = float_of(std::uint32_t{from[i]} << 16U);
}

DUPLEX_CLONES void encode_fp16(const float* from, std::size_t count, float scale,
                               std::uint16_t* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = fp16_of(from[i] * scale);
}

DUPLEX_CLONES void decode_fp16(const std::uint16_t* from, std::size_t count, float scale,
                               float* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = of_fp16(from[i]) * scale;
}

/// The bits of the largest finite magnitude; 0 if there is none.
DUPLEX_CLONES std::uint32_t largest(const float* values, std::size_t count) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t size = bits_of(values[i]) & ~sign_bit;
    const std::uint32_t finite = select(size < infinity, size, 0);
    most = finite > most ? finite : most;
  }
  return most;
}

/// Scales are limited, so that they and what undoes them are normal numbers.
constexpr std::int32_t most_exponent = 120;

/// 2 to that power.
float power_of_two(std::int32_t exponent) {
  return float_of(static_cast<std::uint32_t>(127 + exponent) << 23U);
}

/// The power of two that brings the largest finite value to 2^14 or more and below 2^15, which
/// cannot round up to infinity; as near as the limit allows.
std::int32_t exponent_for(const float* values, std::size_t count) {
  const std::uint32_t most = largest(values, count);
  if (most == 0) return 0;
  const auto own = static_cast<std::int32_t>(most >> 23U) - 127;
  return std::clamp(14 - own, -most_exponent, most_exponent);
}

constexpr std::size_t fp16_begin = coded_bytes(Coding::fp16, 0);

/// Payloads of two bytes a value lie at even addresses.
std::uint16_t* halves(std::uint8_t* bytes) {
  return reinterpret_cast<std::uint16_t*>(bytes);
}
const std::uint16_t* halves(const std::uint8_t* bytes) {
  return reinterpret_cast<const std::uint16_t*>(bytes);
}

}  // namespace

std::string name_of(Coding coding) {
  switch (coding) {
    case Coding::float32:
      return "float32";
    case Coding::bf16:
      return "bf16";
    case Coding::fp16:
      return "fp16";
    case Coding::lossless:
      return "lossless";
  }
  return "coding " + std::to_string(static_cast<int>(coding));
}

std::size_t expected_bytes(Coding coding, Values what, std::size_t count,
                           const PackedParts& packed) {
  const std::size_t most = coded_bytes(coding, count);
  if (coding != Coding::lossless) return most;
  const double part = what == Values::weights ? packed.weights : packed.gradients;
  const auto plain = static_cast<double>(coded_bytes(Coding::float32, count));
  return std::min(most, static_cast<std::size_t>(std::ceil(part * plain)));
}

std::optional<Coding> coding_of(const std::string& name) {
  for (const Coding coding : {Coding::float32, Coding::bf16, Coding::fp16, Coding::lossless})
    if (name == name_of(coding)) return coding;
  return std::nullopt;
}

std::size_t encode(Coding coding, const float* from, std::size_t count, std::uint8_t* to) {
  switch (coding) {
    case Coding::float32:
      std::memcpy(to, from, coded_bytes(coding, count));
      break;
    case Coding::bf16:
      encode_bf16(from, count, halves(to));
      break;
    case Coding::fp16: {
      const std::int32_t exponent = exponent_for(from, count);
      std::memcpy(to, &exponent, sizeof exponent);
      encode_fp16(from, count, power_of_two(exponent), halves(to + fp16_begin));
      break;
    }
    case Coding::lossless:
      return pack_gradient(from, count, to);
  }
  return coded_bytes(coding, count);
}

namespace {

/// The checksum of old weights, which comes in front of the packed new ones.
std::uint32_t checksum_of(const float* weights, std::size_t count) {
  return crc32c(0, weights, count * sizeof(float));
}

void decode_weights(const std::uint8_t* from, std::size_t size, std::size_t count, float* to) {
  std::uint32_t before = 0;
  if (size < sizeof before)
    throw CodingError("packed weights of " + std::to_string(size) + " bytes");
  std::memcpy(&before, from, sizeof before);
  if (before != checksum_of(to, count))
    throw CodingError("the weights are packed against others than those that are here");
  unpack_weights(from + sizeof before, size - sizeof before, to, count);
}

}  // namespace

std::size_t encode_weights(const float* now, const float* before, std::size_t count,
                           std::uint8_t* to) {
  const std::uint32_t checksum = checksum_of(before, count);
  std::memcpy(to, &checksum, sizeof checksum);
  return sizeof checksum + pack_weights(now, before, count, to + sizeof checksum);
}

void decode(Coding coding, Values what, const std::uint8_t* from, std::size_t size,
            std::size_t count, float* to) {
  switch (coding) {
    case Coding::float32:
      std::memcpy(to, from, coded_bytes(coding, count));
      break;
    case Coding::bf16:
      decode_bf16(halves(from), count, to);
      break;
    case Coding::fp16: {
      std::int32_t exponent = 0;
      std::memcpy(&exponent, from, sizeof exponent);
      // A peer may say anything.
      exponent = std::clamp(exponent, -most_exponent, most_exponent);
      decode_fp16(halves(from + fp16_begin), count, power_of_two(-exponent), to);
      break;
    }
    case Coding::lossless:
      if (what == Values::weights)
        decode_weights(from, size, count, to);
      else
        unpack_gradient(from, size, to, count);
  }
}

std::string WireFormat::str() const {
  if (weights == gradients) return name_of(weights);
  const std::string sent = "gradients:" + name_of(gradients), got = "weights:" + name_of(weights);
  return gradients == Coding::float32 ? got : weights == Coding::float32 ? sent : got + "," + sent;
}

WireFormat parse_wire_format(const std::string& text) {
  if (const auto both = coding_of(text)) return {*both, *both};
  const auto refuse = [&text] {
    return Error("'" + text +
                     "' is neither float32, lossless, bf16 nor fp16, nor one of these for one "
                     "direction, as in "
                     "gradients:bf16 or weights:bf16,gradients:fp16",
                 Exit::usage);
  };
  WireFormat format;
  bool weights = false, gradients = false;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    at = end + 1;
    const std::size_t colon = part.find(':');
    if (colon == std::string::npos) throw refuse();
    const std::string what = part.substr(0, colon);
    const auto coding = coding_of(part.substr(colon + 1));
    bool& told = what == "weights" ? weights : gradients;
    if (!coding || told || (what != "weights" && what != "gradients")) throw refuse();
    told = true;
    (what == "weights" ? format.weights : format.gradients) = *coding;
  }
  return format;
}

}  // namespace duplex::net
