// Recordings of a GPU are CUDA graphs: the stream captures what it is asked for, and is asked for
// all of it again in one call, which costs the host less than a call for each kernel (CUDA C++
// Programming Guide, "CUDA Graphs").
#pragma once
#include <functional>
#include <memory>

#include "core/cudnn/context.h"
#include "core/device.h"

namespace duplex::cudnn {

/// Implements Device::record. Says on standard error why a graph could not be made.
std::unique_ptr<Recording> record(const ContextPtr& context, const std::function<void()>& work);

}  // namespace duplex::cudnn
