// Defines a route, on which maps cross between the ranks that a network is cut over.
#pragma once
#include <cstddef>
#include <string>

namespace duplex::net {

/// One rank sends another a map of so many elements in every micro-batch, and gets its gradient
/// back where `gradient`. Other values may take the same way, one message in every step.
struct MapRoute {
  int from = 0, to = 0;
  std::size_t elements = 0;
  bool gradient = true;
  bool every_step = false;  ///< MapMessage::micro_batch counts steps.
  std::string name;         ///< What it is a map of, for messages: "conv1_1".
};

}  // namespace duplex::net
