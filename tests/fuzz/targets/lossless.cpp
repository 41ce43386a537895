// Packed chunks. The first byte of an input says whether they are weights or a gradient, the second
// how many values; the old weights are always the same.
#include "net/coding/lossless.h"

#include <cstring>

#include "net/coding/coders.h"
#include "tests/fuzz/target.h"

namespace duplex::fuzz {
namespace {

using Values = std::vector<float>;

/// Unpacks into memory that ends where the values do. Returns no values where the coder throws.
Values unpack(const net::LosslessCoder& coder, bool gradient, const Bytes& packed,
              const Values& before) {
  Values values(before);
  const bool taken = reads(packed, 0, [&] {
    (gradient ? coder.unpack_gradient : coder.unpack_weights)(packed.data(), packed.size(),
                                                              values.data(), values.size());
  });
  return taken ? values : Values();
}

bool same(const Values& a, const Values& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), 4 * a.size()) == 0);
}

}  // namespace

void lossless(const Bytes& input) {
  if (input.size() < 2) return;
  const bool gradient = input[0] % 2 == 1;
  const Bytes packed(input.begin() + 2, input.end());
  Values before(1 + std::size_t{input[1]});
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::uint32_t bits = 0x3DCCCCCD + 0x81234567 * static_cast<std::uint32_t>(i);
    std::memcpy(&before[i], &bits, sizeof bits);
  }
  const net::LosslessCoder& plain = net::lossless_coders().front();
  const Values values = unpack(plain, gradient, packed, before);
  for (const net::LosslessCoder& coder : net::lossless_coders())
    require(same(unpack(coder, gradient, packed, before), values), "coders differ");
  if (values.empty()) return;

  Bytes again(net::packed_limit(values.size()) + net::packing_slack);
  again.resize(gradient
                   ? plain.pack_gradient(values.data(), values.size(), again.data())
                   : plain.pack_weights(values.data(), before.data(), values.size(), again.data()));
  require(again.size() <= net::packed_limit(values.size()), "a packed chunk is too long");
  again.shrink_to_fit();
  require(same(unpack(plain, gradient, again, before), values), "values are not kept");
}

}  // namespace duplex::fuzz
