// The device whose operations are plain loops.
#pragma once
#include <memory>

#include "core/device.h"

namespace duplex {

/// It runs on one thread, and every layout is plain.
std::unique_ptr<Device> make_reference_device();

}  // namespace duplex
