#include "core/cudnn/kernels/readiness.h"

#include "core/cudnn/kernels/kernel_call.h"

namespace duplex::cudnn {
namespace {

/// At 1 to 2 GHz this is a tenth to a fifth of a millisecond.
constexpr long long busy_ticks = 200000;

__global__ void wait_for_ticks(long long count) {
  const long long begin = ticks();
  while (ticks() - begin < count) {
  }
}

}  // namespace

bool kernels_fit() {
  const cudaError_t status = load(wait_for_ticks);
  for (const cudaError_t unfit : {
         cudaErrorNoKernelImageForDevice, cudaErrorInvalidDeviceFunction,
#if CUDART_VERSION >= 11010
             cudaErrorUnsupportedPtxVersion,
#endif
             cudaErrorInvalidPtx
       })
    if (status == unfit) return false;
  check(status, "loading a kernel");
  return true;
}

bool may_fit(int gpu) {
  int major = 0, minor = 0;
  const bool known =
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu) == cudaSuccess &&
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu) == cudaSuccess;
  cudaGetLastError();  // Else the next call would report it.
  return known && 10 * major + minor >= least_capability();
}

void keep_busy(const Context& context) {
  call(wait_for_ticks, 1, 1, context.stream(), busy_ticks);
  check(cudaGetLastError(), "keeping the GPU busy");
}

}  // namespace duplex::cudnn
