// Runs the bodies of kernels (elements.h, statistics.h, updates.h, windows.h) for every element, on
// the GPU. Sums are in sums.h. Only .cu files include this file.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/cudnn/context.h"
#include "core/cudnn/kernels/kernel_call.h"
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
  const std::uint32_t left = count - groups * n;  // They are fewer than a block has threads.
  if (me < left) body(groups * n + me);
}

/// Returns the number of blocks that have a thread for each of `count` elements, or that the GPU
/// runs at once, whose threads then take several elements each.
inline std::uint32_t blocks_for(const Context& context, std::int64_t count) {
  constexpr std::int64_t blocks_at_once = 16;  // On a multiprocessor; more would wait their turn.
  return static_cast<std::uint32_t>(
      std::min<std::int64_t>((count + threads_of_block - 1) / threads_of_block,
                             context.multiprocessors() * blocks_at_once));
}

/// Runs body(i) for i in [0, count), in any order, behind the work that the stream already has.
template <class Body>
void for_each(const Context& context, const char* what, std::int64_t count, const Body& body) {
  if (count == 0) return;
  context.enter();
  call(run_for_each<Body>, blocks_for(context, count), threads_of_block, context.stream(), body,
       static_cast<std::uint32_t>(count));
  check(cudaGetLastError(), what);
}

/// Runs body(i) for every element of a tensor.
template <class Body>
void for_each(const Context& context, const char* what, const TensorDesc& over, const Body& body) {
  for_each(context, what, std::int64_t{view_of(over).elements()}, body);
}

/// Does the same with a body that takes groups (elements.h), in groups where it can.
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
