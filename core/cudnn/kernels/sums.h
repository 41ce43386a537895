// Sums over channels (statistics.h) on the GPU. Many blocks sum parts, in an order that depends
// only on the shapes, on the number of multiprocessors, and on whether elements can be read in
// groups. Then one warp for each channel sums the parts. Only .cu files include this.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/cudnn/kernels/launch.h"
#include "core/cudnn/kernels/statistics.h"

namespace duplex::cudnn {

constexpr std::uint32_t lanes = 32;

struct alignas(16) Part {
  double a, b;
};

/// Returns the sum of map(k), map(k + step), ... below `count`. A few reads are under way before
/// the first is waited for.
template <int N, class Map>
__device__ Pairs<N> sum_of_thread(std::uint32_t k, std::uint32_t step, std::uint32_t count,
                                  const Map& map) {
  constexpr std::uint32_t few = N == 1 ? 4 : 2;
  Pairs<N> sum;
  while (k < count && count - k > (few - 1) * step) {
    Pairs<N> ones[few];
    for (std::uint32_t j = 0; j < few; ++j) ones[j] = map(k + j * step);
    for (std::uint32_t j = 0; j < few; ++j) sum.add(ones[j]);
    k += few * step;
  }
  for (; k < count; k += step) sum.add(map(k));
  return sum;
}

/// Returns the sum over a block's threads, to thread 0.
__device__ inline Part sum_of_block(float a, float b) {
  __shared__ Part parts[threads_of_block];
  const std::uint32_t me = threadIdx.x;
  parts[me] = {static_cast<double>(a), static_cast<double>(b)};
  for (std::uint32_t half = threads_of_block / 2; half > 0; half /= 2) {
    __syncthreads();
    if (me < half) {
      parts[me].a += parts[me + half].a;
      parts[me].b += parts[me + half].b;
    }
  }
  return parts[0];
}

// Blocks are numbered in one row, since CUDA allows no more than 65,535 in a second direction, and
// tensors may have more channels than that.

/// Sums maps that are contiguous (NCHW): block c * each + s sums part s, of `each`, of channel c.
template <int N, class Sums>
__global__ void __launch_bounds__(threads_of_block, 2)
    sum_planes(Sums sums, View view, std::uint32_t each, Part* parts) {
  const std::uint32_t c = blockIdx.x / each, s = blockIdx.x - c * each, map = view.map() / N;
  const Pairs<N> mine = sum_of_thread<N>(
      s * blockDim.x + threadIdx.x, each * blockDim.x, view.n * map, [&](std::uint32_t k) {
        const std::uint32_t sample = k / map;
        return sums.template terms<N>(((sample * view.c + c) * map + (k - sample * map)) * N, c);
      });
  float a = 0.0F, b = 0.0F;
  for (int k = 0; k < N; ++k) {
    a += mine.a[k];
    b += mine.b[k];
  }
  const Part part = sum_of_block(a, b);
  if (threadIdx.x == 0) parts[blockIdx.x] = part;
}

/// Sums channels that lie side by side (NHWC): block k * each + s sums part s, of `each`, of
/// `across` groups of them, from group k * across on. A row of `across` threads reads neighbouring
/// memory.
template <int N, class Sums>
__global__ void __launch_bounds__(threads_of_block, 2)
    sum_columns(Sums sums, View view, std::uint32_t each, std::uint32_t across, Part* parts) {
  __shared__ float a[N][threads_of_block], b[N][threads_of_block];
  const std::uint32_t me = threadIdx.x, rows = threads_of_block / across, row = me / across;
  const std::uint32_t from = blockIdx.x / each, s = blockIdx.x - from * each;
  const std::uint32_t c = (from * across + me % across) * N;
  Pairs<N> mine;
  if (row < rows && c < view.c) {
    mine = sum_of_thread<N>(
        s * rows + row, each * rows, view.n * view.map(),
        [&](std::uint32_t pixel) { return sums.template terms<N>(pixel * view.c + c, c); });
  }
  for (int k = 0; k < N; ++k) {
    a[k][me] = mine.a[k];
    b[k][me] = mine.b[k];
  }
  __syncthreads();
  // From here on, each thread sums one channel.
  const std::uint32_t column = me % across, k = me / across;
  const std::uint32_t channel = (from * across + column) * N + k;
  if (k >= N || channel >= view.c) return;
  Part part{0.0, 0.0};
  for (std::uint32_t i = column; i < rows * across; i += across) {
    part.a += static_cast<double>(a[k][i]);
    part.b += static_cast<double>(b[k][i]);
  }
  parts[channel * each + s] = part;
}

/// Sums the parts of a channel with one warp, then finishes the channel.
template <class Sums>
__global__ void finish_sums(Sums sums, const Part* parts, std::uint32_t count,
                            std::uint32_t channels) {
  const std::uint32_t c = blockIdx.x * blockDim.y + threadIdx.y;
  if (c >= channels) return;
  Part sum{0.0, 0.0};
  for (std::uint32_t i = threadIdx.x; i < count; i += lanes) {
    const Part part = parts[c * count + i];
    sum.a += part.a;
    sum.b += part.b;
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    sum.a += __shfl_down_sync(0xFFFFFFFFU, sum.a, distance);
    sum.b += __shfl_down_sync(0xFFFFFFFFU, sum.b, distance);
  }
  if (threadIdx.x == 0) sums.finish(c, sum.a, sum.b);
}

/// Says how the channels of a view are summed in groups of n.
struct ChannelCut {
  std::uint32_t across = 1;  ///< Groups that a block sums, in columns of threads.
  std::uint32_t blocks = 1;  ///< Blocks that together have every channel once.
  std::uint32_t parts = 1;   ///< Parts that a channel is summed in.
};

inline ChannelCut channel_cut(const Context& context, const View& view, std::uint32_t n) {
  constexpr std::uint32_t least_each = 8;            // Elements or groups that are worth a thread.
  const std::uint32_t blocks_each = n == 1 ? 8 : 4;  // Blocks for a multiprocessor.
  ChannelCut cut;
  std::uint32_t rows = threads_of_block, count = view.n * view.map() / n;
  cut.blocks = view.c;
  if (view.channels_last()) {
    const std::uint32_t groups = view.c / n;
    cut.across = std::min(groups, lanes);
    cut.blocks = (groups + cut.across - 1) / cut.across;
    rows = threads_of_block / cut.across;
    count = view.n * view.map();
  }
  const std::uint32_t wanted =
      (static_cast<std::uint32_t>(context.multiprocessors()) * blocks_each + cut.blocks - 1) /
      cut.blocks;
  const std::uint32_t useful = (count + rows * least_each - 1) / (rows * least_each);
  cut.parts = std::max(std::min(wanted, useful), 1U);
  return cut;
}

/// Returns the bytes of workspace that sum_channels() needs, whichever groups it reads.
inline std::size_t sums_workspace(const Context& context, const View& view) {
  std::uint32_t most = 1;
  for (const int n : {1, group_of<float>, group_of<BFloat16>})
    if (view.c >= static_cast<std::uint32_t>(n))
      most = std::max(most, channel_cut(context, view, static_cast<std::uint32_t>(n)).parts);
  return std::size_t{most} * view.c * sizeof(Part);
}

/// Sums every channel's parts. Returns how many parts a channel has.
template <int N, class Sums>
std::uint32_t sum_parts(const Context& context, const View& view, const Sums& sums, Part* parts) {
  const ChannelCut cut = channel_cut(context, view, N);
  const std::uint32_t blocks = cut.blocks * cut.parts;
  if (view.channels_last()) {
    call(sum_columns<N, Sums>, blocks, threads_of_block, context.stream(), sums, view, cut.parts,
         cut.across, parts);
  } else {
    call(sum_planes<N, Sums>, blocks, threads_of_block, context.stream(), sums, view, cut.parts,
         parts);
  }
  return cut.parts;
}

/// Calls sums.finish(c, ...) with the sum of sums.terms(i, c), for every channel c. The caller has
/// reserved sums_workspace() bytes in the context.
template <class Sums>
void sum_channels(const Context& context, const char* what, const Sums& sums) {
  context.enter();
  constexpr std::uint32_t warps = threads_of_block / lanes;
  const View& view = sums.view;
  auto* parts = static_cast<Part*>(context.workspace());
  const std::uint32_t count = sums.grouped() ? sum_parts<Sums::group>(context, view, sums, parts)
                                             : sum_parts<1>(context, view, sums, parts);
  check(cudaGetLastError(), what);
  call(finish_sums<Sums>, (view.c + warps - 1) / warps, dim3(lanes, warps), context.stream(), sums,
       static_cast<const Part*>(parts), count, view.c);
  check(cudaGetLastError(), what);
}

}  // namespace duplex::cudnn
