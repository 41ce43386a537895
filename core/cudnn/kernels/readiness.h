// Tells whether kernels of this program run on a GPU at all, and has a kernel that keeps it busy.
#pragma once
#include "core/cudnn/context.h"

namespace duplex::cudnn {

/// Returns whether this program has code for the calling thread's current GPU: its kernels, which
/// nvcc compiles for some compute capabilities, are all alike in that. Throws Error where the GPU
/// cannot be used for another reason.
bool kernels_fit();
/// Returns whether this program may have code for a GPU, by its compute capability: the newest that
/// nvcc compiles for also has code that drivers translate for later ones. Uses no memory of the
/// GPU.
bool may_fit(int gpu);
/// Queues a kernel that does nothing for about a tenth of a millisecond. Work that is queued
/// meanwhile starts without a gap, however long the host takes to queue it.
void keep_busy(const Context& context);

}  // namespace duplex::cudnn
