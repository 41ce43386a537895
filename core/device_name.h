// The names of devices that are GPUs.
#pragma once
#include <string>

namespace duplex {

/// Returns whether this names a GPU: cuda, or cuda: with anything behind it.
bool is_gpu(const std::string& which);
/// Returns the number of the GPU in cuda:NUMBER, 0 for cuda. Throws Error(Exit::usage).
int gpu_of(const std::string& which);

}  // namespace duplex
