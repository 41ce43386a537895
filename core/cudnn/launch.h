// Running what elements.h and its like say for every element, on the GPU. Included by .cu files.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/cudnn/context.h"
#include "core/cudnn/kernel_call.h"
#include "core/cudnn/layout.h"
#include "core/cudnn/statistics.h"

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

// ---- Sums over channels: many blocks sum parts, in an order that depends on shapes alone; then a
// warp a channel sums the parts.

struct Part {
  double a, b;
};

/// The sum over a block's threads, in thread 0.
__device__ inline Part sum_of_block(Pair mine) {
  __shared__ Part parts[threads_of_block];
  const std::uint32_t me = threadIdx.y * blockDim.x + threadIdx.x;
  parts[me] = {static_cast<double>(mine.a), static_cast<double>(mine.b)};
  for (std::uint32_t half = threads_of_block / 2; half > 0; half /= 2) {
    __syncthreads();
    if (me < half) {
      parts[me].a += parts[me + half].a;
      parts[me].b += parts[me + half].b;
    }
  }
  return parts[0];
}

/// Block (s, c) sums part s of channel c.
template <class Sums>
__global__ void sum_planes(Sums sums, View view, Part* parts) {
  const std::uint32_t c = blockIdx.y, map = view.map(), count = view.n * map;
  Pair mine;
  for (std::uint32_t j = blockIdx.x * blockDim.x + threadIdx.x; j < count;
       j += gridDim.x * blockDim.x) {
    const Pair one = sums.map((j / map * view.c + c) * map + j % map, c);
    mine.a += one.a;
    mine.b += one.b;
  }
  const Part part = sum_of_block(mine);
  if (threadIdx.x == 0) parts[c * gridDim.x + blockIdx.x] = part;
}

constexpr std::uint32_t lanes = 32;

/// Block (s, k) sums part s of channels 32 k to 32 k + 31, a column of threads a channel.
template <class Sums>
__global__ void sum_columns(Sums sums, View view, Part* parts) {
  __shared__ Part rows[threads_of_block / lanes][lanes];
  const std::uint32_t c = blockIdx.y * lanes + threadIdx.x, count = view.n * view.map();
  Pair mine;
  if (c < view.c) {
    for (std::uint32_t row = blockIdx.x * blockDim.y + threadIdx.y; row < count;
         row += gridDim.x * blockDim.y) {
      const Pair one = sums.map(row * view.c + c, c);
      mine.a += one.a;
      mine.b += one.b;
    }
  }
  rows[threadIdx.y][threadIdx.x] = {static_cast<double>(mine.a), static_cast<double>(mine.b)};
  __syncthreads();
  if (threadIdx.y != 0 || c >= view.c) return;
  Part part{0.0, 0.0};
  for (std::uint32_t row = 0; row < blockDim.y; ++row) {
    part.a += rows[row][threadIdx.x].a;
    part.b += rows[row][threadIdx.x].b;
  }
  parts[c * gridDim.x + blockIdx.x] = part;
}

template <class Sums>
__global__ void finish_sums(Sums sums, const Part* parts, std::uint32_t count) {
  const std::uint32_t c = blockIdx.x;
  Part sum{0.0, 0.0};
  for (std::uint32_t i = threadIdx.x; i < count; i += lanes) {
    sum.a += parts[c * count + i].a;
    sum.b += parts[c * count + i].b;
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    sum.a += __shfl_down_sync(0xFFFFFFFFU, sum.a, distance);
    sum.b += __shfl_down_sync(0xFFFFFFFFU, sum.b, distance);
  }
  if (threadIdx.x == 0) sums.finish(c, sum.a, sum.b);
}

/// How many parts a channel is summed in, and the workspace that they take.
struct ChannelParts {
  std::uint32_t parts = 1;
  std::size_t bytes = 0;
};

inline ChannelParts channel_parts(const Context& context, const View& view) {
  constexpr std::uint32_t least_each = 8;   // Elements that are worth a thread.
  constexpr std::uint32_t blocks_each = 8;  // Of a multiprocessor.
  const bool planes = view.order == Order::nchw;
  const std::uint32_t rows = planes ? threads_of_block : threads_of_block / lanes;
  const std::uint32_t others = planes ? view.c : (view.c + lanes - 1) / lanes;
  const std::uint32_t wanted =
      (static_cast<std::uint32_t>(context.multiprocessors()) * blocks_each + others - 1) / others;
  const std::uint32_t useful = (view.n * view.map() + rows * least_each - 1) / (rows * least_each);
  ChannelParts result;
  result.parts = std::max(std::min(wanted, useful), 1U);
  result.bytes = std::size_t{result.parts} * view.c * sizeof(Part);
  return result;
}

/// sums.finish(c, ...) of the sum of sums.map(i, c) for every channel. The context has reserved
/// channel_parts(...).bytes.
template <class Sums>
void sum_channels(const Context& context, const char* what, const View& view, const Sums& sums) {
  context.enter();
  const ChannelParts cut = channel_parts(context, view);
  auto* parts = static_cast<Part*>(context.workspace());
  if (view.order == Order::nchw) {
    call(sum_planes<Sums>, dim3(cut.parts, view.c), threads_of_block, context.stream(), sums, view,
         parts);
  } else {
    call(sum_columns<Sums>, dim3(cut.parts, (view.c + lanes - 1) / lanes),
         dim3(lanes, threads_of_block / lanes), context.stream(), sums, view, parts);
  }
  check(cudaGetLastError(), what);
  call(finish_sums<Sums>, view.c, lanes, context.stream(), sums, static_cast<const Part*>(parts),
       cut.parts);
  check(cudaGetLastError(), what);
}

}  // namespace duplex::cudnn
