// profile.json, as a replay and a simulation take it for their network.
#include <cmath>

#include "tests/fuzz/memory_file.h"
#include "tools/prediction/layer_times.h"

namespace duplex::fuzz {
namespace {

Model small() {
  Model model("Small", {1, 1, 8, 8});
  const Model::Node pooled = model.max_pool("pool", model.conv("conv", 0, 2, same(3)), valid(2, 2));
  model.softmax("softmax", model.linear("fc", pooled, 3, false));
  return model;
}

}  // namespace

void profile(const Bytes& input) {
  static const Model model = small();
  static MemoryFile file;
  file.write(input);
  for (const std::optional<std::int64_t> batch : {std::optional<std::int64_t>(), {4}}) {
    reads(input, 400, [&] {
      const tools::LayerTimes times = tools::read_profile(file.path(), model, batch);
      require(times.forward.size() == model.nodes().size(), "a layer has no time");
      require(times.sum() >= 0.0, "a network takes less than no time");
    });
  }
}

}  // namespace duplex::fuzz
