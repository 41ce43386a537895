// Runs a step of a network through an exchange, as the training loop does
// (tools/training/loop.cpp), for tests of folders that may not use tools/.
#pragma once
#include <cstddef>

#include "core/exchange.h"
#include "layers/network.h"

namespace duplex::test {

/// Runs what lies between the exchange's begin() and end().
inline void forward_and_backward(Network& network, const float* images,
                                 const ForwardContext& context, Exchange& exchange) {
  network.begin_forward(images, context);
  for (std::size_t layer = 0; layer < network.layers(); ++layer) {
    for (const std::size_t p : network.parameters_of(layer)) exchange.await(p);
    network.forward_layer(layer);
  }
  network.begin_backward();
  for (std::size_t layer = network.layers(); layer-- > 0;) {
    network.backward_layer(layer);
    for (const std::size_t p : network.parameters_of(layer)) exchange.push(p);
  }
}

}  // namespace duplex::test
