// This header takes the place of core/cudnn's kernel_call.h: here kernels are functions of the
// host, which run on the thread of a stream.
#pragma once
#include <cuda_runtime_api.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "tests/stand_in/stand_in.h"

#undef __shared__
#define __shared__ static
#undef __launch_bounds__
#define __launch_bounds__(...)

namespace duplex::stand_in {

/// The place of a thread of a kernel, which CUDA has in variables of these names.
inline uint3 thread_index, block_index;
inline dim3 block_extent, grid_extent;

/// Runs body(), which reads the variables above, for every thread of every block.
void run_blocks(dim3 grid, dim3 block, const std::function<void()>& body);
/// A thread calls this within body() to wait for the others of its block that have not returned.
void wait_for_block();

inline double shuffle_down(double mine, int distance) {
  static double values[1024];
  const std::uint32_t me = thread_index.y * block_extent.x + thread_index.x;
  values[me] = mine;
  wait_for_block();
  const double result =
      me % 32 + static_cast<std::uint32_t>(distance) < 32 ? values[me + distance] : mine;
  wait_for_block();
  return result;
}

}  // namespace duplex::stand_in

namespace duplex::cudnn {

#define threadIdx ::duplex::stand_in::thread_index
#define blockIdx ::duplex::stand_in::block_index
#define blockDim ::duplex::stand_in::block_extent
#define gridDim ::duplex::stand_in::grid_extent
#define __syncthreads ::duplex::stand_in::wait_for_block
#define __shfl_down_sync(lanes, value, distance) ::duplex::stand_in::shuffle_down(value, distance)

template <class... Parameters, class... Arguments>
void call(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
          Arguments... arguments) {
  if (!stand_in::may_launch(grid, block)) return;
  const std::int64_t threads = std::int64_t{grid.x} * grid.y * block.x * block.y;
  stand_in::enqueue_kernel(stream, stand_in::time_of_kernel(threads), [=] {
    stand_in::run_blocks(grid, block, [&] { kernel(arguments...); });
  });
}

/// No kernel fits where STAND_IN_FITS_NOT is in the environment.
template <class... Parameters>
cudaError_t load(void (*)(Parameters...)) {
  return std::getenv("STAND_IN_FITS_NOT") == nullptr ? cudaSuccess
                                                     : cudaErrorNoKernelImageForDevice;
}

inline int least_capability() {
  return std::getenv("STAND_IN_FITS_NOT") == nullptr ? 0 : 1000;
}

/// Returns the time of a clock that goes on by a lot whenever it is read.
inline long long ticks() {
  static std::atomic<long long> now{0};
  return now += 1000000;
}

}  // namespace duplex::cudnn
