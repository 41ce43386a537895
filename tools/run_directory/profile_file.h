// profile.json: seconds a layer, as local and dist measure them with --profile.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace duplex::tools {

struct ProfileLayer {
  std::string name, type;
  std::int64_t macs = 0;                 ///< Multiply-adds of one sample, forward.
  double forward = 0.0, backward = 0.0;  ///< Seconds of a batch: medians.
  std::uint64_t steps = 0;               ///< That were timed, warm-up among them.
};

struct ProfileFile {
  std::string network;  ///< Its title.
  std::int64_t batch = 0;
  std::string device;
  std::vector<ProfileLayer> layers;  ///< In the model's order.
};

}  // namespace duplex::tools
