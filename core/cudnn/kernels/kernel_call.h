// This is the one place where a kernel is launched, because only nvcc understands how; and what
// else only nvcc knows of kernels. Only .cu files include it.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>

namespace duplex::cudnn {

/// Launches a kernel behind the work that the stream already has. cudaGetLastError() tells whether
/// that failed.
template <class... Parameters, class... Arguments>
void call(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
          Arguments... arguments) {
  kernel<<<grid, block, 0, stream>>>(arguments...);
}

/// Loads a kernel for the calling thread's current GPU. Returns why that failed.
template <class... Parameters>
cudaError_t load(void (*kernel)(Parameters...)) {
  cudaFuncAttributes attributes{};
  const cudaError_t status = cudaFuncGetAttributes(&attributes, kernel);
  cudaGetLastError();  // Else the next call would report it.
  return status;
}

/// Returns the least compute capability that nvcc compiles this file for, as 75 for 7.5; 0 where it
/// does not say (before CUDA 11.5).
inline int least_capability() {
#ifdef __CUDA_ARCH_LIST__
  return std::min({__CUDA_ARCH_LIST__}) / 10;
#else
  return 0;
#endif
}

/// Returns the time of a multiprocessor's clock.
__device__ inline long long ticks() {
  return clock64();
}

}  // namespace duplex::cudnn
