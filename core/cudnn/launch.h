// Running what elements.h and its like say for every element, on the GPU. Sums: sums.h. Included by
// .cu files.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/cudnn/context.h"
#include "core/cudnn/kernel_call.h"
#include "core/cudnn/layout.h"

namespace duplex::cudnn {

constexpr std::uint32_t threads_of_block = 256;

template <class Body>
__global__ void run_for_each(Body body, std::uint32_t count) {
  const std::uint32_t stride = gridDim.x * blockDim.x;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) body(i);
}

template <class Body>
__global__ void run_for_each_group(Body body, std::uint32_t count) {
  constexpr std::uint32_t n = Body::group;
  const std::uint32_t stride = gridDim.x * blockDim.x;
  const std::uint32_t me = blockIdx.x * blockDim.x + threadIdx.x, groups = count / n;
  for (std::uint32_t k = me; k < groups; k += stride) body.template operator()<Body::group>(k * n);
  const std::uint32_t left = count - groups * n;  // Fewer than a block has threads.
  if (me < left) body(groups * n + me);
}

/// A thread for each of `count`, or a round of threads.
inline std::uint32_t blocks_for(const Context& context, std::int64_t count) {
  constexpr std::int64_t blocks_at_once = 16;  // Of a multiprocessor; more wait their turn.
  return static_cast<std::uint32_t>(
      std::min<std::int64_t>((count + threads_of_block - 1) / threads_of_block,
                             context.multiprocessors() * blocks_at_once));
}

/// body(i) for i in [0, count), in any order, behind what the stream has to do.
template <class Body>
void for_each(const Context& context, const char* what, std::int64_t count, const Body& body) {
  if (count == 0) return;
  context.enter();
  call(run_for_each<Body>, blocks_for(context, count), threads_of_block, context.stream(), body,
       static_cast<std::uint32_t>(count));
  check(cudaGetLastError(), what);
}

/// body(i) for every element of a tensor.
template <class Body>
void for_each(const Context& context, const char* what, const TensorDesc& over, const Body& body) {
  for_each(context, what, std::int64_t{view_of(over).elements()}, body);
}

/// Likewise, of a body that takes groups (elements.h), in groups if it can.
template <class Body>
void for_each_group(const Context& context, const char* what, const TensorDesc& over,
                    const Body& body) {
  const std::int64_t count = view_of(over).elements();
  if (count == 0 || !body.grouped()) return for_each(context, what, count, body);
  context.enter();
  call(run_for_each_group<Body>, blocks_for(context, (count + Body::group - 1) / Body::group),
       threads_of_block, context.stream(), body, static_cast<std::uint32_t>(count));
  check(cudaGetLastError(), what);
}

}  // namespace duplex::cudnn
