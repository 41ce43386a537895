// The one place where a kernel is started: nvcc alone understands how. Included by .cu files.
#pragma once
#include <cuda_runtime.h>

namespace duplex::cudnn {

/// Behind what the stream has to do. What went wrong, cudaGetLastError tells.
template <class... Parameters, class... Arguments>
void call(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
          Arguments... arguments) {
  kernel<<<grid, block, 0, stream>>>(arguments...);
}

}  // namespace duplex::cudnn
