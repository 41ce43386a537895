// A GPU for machines that have none: CUDA's runtime, cuBLAS and cuDNN as far as core/cudnn calls
// them, on the CPU. core/cudnn is compiled for it as it stands, kernels too, and linked with this
// folder in the place of NVIDIA's libraries. A stream is a thread of its own that works its queue
// off, so that what does not wait where it must is caught; "device memory" is the host's, and
// cannot be told from it. What a real GPU alone shows: speed, and what NVIDIA's libraries accept.
#pragma once
#include <driver_types.h>

#include <functional>

namespace duplex::stand_in {

/// Behind what the stream has to do. Nothing is done any more once the GPU has broken down.
void enqueue(cudaStream_t stream, std::function<void()> work);

/// Likewise a kernel. STAND_IN_BREAKS_AT=N in the environment when a device is made: in its Nth
/// kernel, from 1, the GPU breaks down.
void enqueue_kernel(cudaStream_t stream, std::function<void()> work);

}  // namespace duplex::stand_in
