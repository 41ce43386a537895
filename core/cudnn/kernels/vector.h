// A group is neighbouring elements that one thread reads and writes at once. Accesses of 16 bytes
// keep the memory of a GPU busy, and the elements share the cost of computing their coordinates.
#pragma once
#include <cstdint>
#include <cstring>

#include "core/cudnn/kernels/view.h"

namespace duplex::cudnn {

/// The elements of a group: as many of the larger type as 16 bytes hold.
template <class Value, class Other = Value>
constexpr int group_of = static_cast<int>(16 / (sizeof(Value) > sizeof(Other) ? sizeof(Value)
                                                                              : sizeof(Other)));

constexpr std::size_t alignment_of_group(std::size_t bytes) {
  return bytes < 16 ? bytes : 16;
}

/// N elements as they lie in memory, aligned so that one instruction reads or writes them.
template <class Value, int N>
struct alignas(alignment_of_group(N * sizeof(Value))) AlignedVector {
  Value of[N];
};

template <int N>
struct Floats {
  float of[N];
  DUPLEX_PORTABLE float& operator[](int k) { return of[k]; }
  DUPLEX_PORTABLE float operator[](int k) const { return of[k]; }
};

/// Returns whether groups of N can be read and written from all of these pointers on. A null
/// pointer counts as aligned, because nobody reads from it.
template <int N, class... Values>
bool aligned(const Values*... from) {
  return ((reinterpret_cast<std::uintptr_t>(from) % alignof(AlignedVector<Values, N>) == 0) && ...);
}

template <int N, class Value>
DUPLEX_PORTABLE AlignedVector<Value, N> read(const Value* from) {
  return *reinterpret_cast<const AlignedVector<Value, N>*>(from);
}

template <int N, class Value>
DUPLEX_PORTABLE void write(Value* to, const AlignedVector<Value, N>& group) {
  *reinterpret_cast<AlignedVector<Value, N>*>(to) = group;
}

template <int N, class Value>
DUPLEX_PORTABLE Floats<N> floats(const AlignedVector<Value, N>& group) {
  Floats<N> result;
  for (int k = 0; k < N; ++k) result[k] = group.of[k];
  return result;
}

template <int N, class Value>
DUPLEX_PORTABLE Floats<N> load(const Value* from) {
  return floats(read<N>(from));
}

template <int N>
DUPLEX_PORTABLE void store(float* to, const Floats<N>& values) {
  AlignedVector<float, N> group;
  for (int k = 0; k < N; ++k) group.of[k] = values[k];
  write(to, group);
}

/// Rounds two values in one instruction, on GPUs that have it.
template <int N>
DUPLEX_PORTABLE void store(BFloat16* to, const Floats<N>& values) {
  if constexpr (N == 1) {
    *to = values[0];
  } else {
    AlignedVector<std::uint32_t, N / 2> pairs;
    for (int k = 0; k < N / 2; ++k) pairs.of[k] = BFloat16::pair(values[2 * k], values[2 * k + 1]);
    AlignedVector<BFloat16, N> group;
    static_assert(sizeof group == sizeof pairs);
    memcpy(&group, &pairs, sizeof group);
    write(to, group);
  }
}

template <int N>
DUPLEX_PORTABLE Floats<N> broadcast(float value) {
  Floats<N> result;
  for (int k = 0; k < N; ++k) result[k] = value;
  return result;
}

/// Returns function(a[k], b[k], ...) for every k.
template <int N, class Function, class... Others>
DUPLEX_PORTABLE Floats<N> map(const Function& function, const Floats<N>& a,
                              const Others&... others) {
  Floats<N> result;
  for (int k = 0; k < N; ++k) result[k] = function(a[k], others[k]...);
  return result;
}

/// Returns whether N elements from any multiple of N on are of one channel and sample, or of
/// neighbouring channels of a pixel.
template <int N>
DUPLEX_PORTABLE bool in_groups(const View& view) {
  return (view.channels_last() ? view.c : view.map()) % N == 0;
}

/// Returns the numbers for the elements of a group, from an array with one number for every
/// channel. The group is of a view in groups, and its first element is of channel c.
template <int N>
DUPLEX_PORTABLE Floats<N> of_channels(const View& view, const float* array, std::uint32_t c) {
  if (N > 1 && view.channels_last()) return load<N>(array + c);
  return broadcast<N>(array[c]);
}

}  // namespace duplex::cudnn
