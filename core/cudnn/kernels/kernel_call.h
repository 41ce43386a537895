// This is the one place where a kernel is launched, because only nvcc understands how. Only .cu
// files include it.
#pragma once
#include <cuda_runtime.h>

namespace duplex::cudnn {

/// Launches a kernel behind the work that the stream already has. cudaGetLastError() tells whether
/// that failed.
template <class... Parameters, class... Arguments>
void call(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
          Arguments... arguments) {
  kernel<<<grid, block, 0, stream>>>(arguments...);
}

}  // namespace duplex::cudnn
