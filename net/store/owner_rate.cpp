#include "net/store/owner_rate.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "core/clock.h"
#include "net/store/store.h"

namespace duplex::net {

double owner_rate(const std::vector<std::size_t>& counts) {
  std::vector<std::vector<float>> weights, gradients;
  std::vector<float*> places;
  for (const std::size_t count : counts) {
    gradients.emplace_back(count, 0.0F);
    places.push_back(weights.emplace_back(count, 0.0F).data());
  }
  const ShardMap map = ShardMap::central(counts, 0);
  StoreSpec spec;
  spec.own = 0;
  const auto store = make_store(map, 0, spec, places, [](const Publication&) {});
  std::array<double, 5> seconds{};
  for (std::size_t step = 0; step < seconds.size(); ++step) {
    const auto begin = Clock::now();
    for (std::size_t chunk = 0; chunk < map.chunks(); ++chunk)
      store->submit(chunk, 0, step, gradients[map[chunk].parameter].data() + map[chunk].offset);
    const std::chrono::duration<double> took = Clock::now() - begin;
    seconds[step] = took.count();
  }
  std::sort(seconds.begin(), seconds.end());
  return static_cast<double>(map.elements() * sizeof(float)) / seconds[seconds.size() / 2];
}

}  // namespace duplex::net
