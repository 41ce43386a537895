#include "net/crypto/seal_rate.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "core/clock.h"
#include "net/crypto/sealing.h"

namespace duplex::net {

double seal_rate() {
  constexpr std::size_t size = 512 * 1024;
  constexpr int messages = 16;
  std::vector<std::uint8_t> bytes(size);
  Sealing seals(Digest{}, Sealing::Does::seal);
  std::array<double, 5> seconds{};
  for (double& took : seconds) {
    const auto begin = Clock::now();
    for (int i = 0; i < messages; ++i) {
      seals.begin();
      seals.update(bytes.data(), size, bytes.data());
      seals.end();
    }
    took = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  std::sort(seconds.begin(), seconds.end());
  return messages * static_cast<double>(size) / seconds[seconds.size() / 2];
}

}  // namespace duplex::net
