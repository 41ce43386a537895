// The CPU backend on oneDNN. Activations and weights stay in oneDNN's own layouts from operation to
// operation.
#pragma once
#include <memory>

#include "core/device.h"

namespace duplex {

/// `threads` is at least 1.
std::unique_ptr<Device> make_onednn_device(int threads);

}  // namespace duplex
