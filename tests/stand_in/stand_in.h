// A GPU for machines that have none: CUDA's runtime, cuBLAS and cuDNN as far as core/cudnn calls
// them, on the CPU. core/cudnn is compiled for it as it stands, kernels too, and linked with this
// folder in the place of NVIDIA's libraries. A stream is a thread that works its queue off, which
// catches code that does not wait where it must. "Device memory" is the host's, and nothing tells
// the two apart. Only a real GPU shows speed, and what NVIDIA's libraries accept.
#pragma once
#include <driver_types.h>
#include <vector_types.h>

#include <functional>

#include "tests/stand_in/clock.h"

namespace duplex::stand_in {

/// Queues work behind what the stream already has, and which takes no time. Nothing is done any
/// more once the GPU has broken down.
void enqueue(cudaStream_t stream, std::function<void()> work);

/// Queues a kernel, which takes so long. Where STAND_IN_BREAKS_AT=N is in the environment when a
/// device is made, the GPU breaks down in its Nth kernel, from 1.
void enqueue_kernel(cudaStream_t stream, Time takes, std::function<void()> work);

/// Spoils the capture and returns an error if the calling thread has a stream capture: what it asks
/// for cannot be captured.
cudaError_t uncapturable();

/// Returns whether CUDA has grids of so many blocks, and blocks of so many threads; in a grid's
/// second direction, far fewer than CUDA has are too many. Else cudaGetLastError() says so.
bool may_launch(dim3 grid, dim3 block);

/// These counts begin when the library is loaded. A test has them in the same order
/// (tests/layers/stand_in_counts.h).
struct Counts {
  long events;          ///< Events that were made.
  long spinning_waits;  ///< Waits of the host that kept a core busy, by what was asked of CUDA.
  long kernels;         ///< Kernels of ours that were launched, or captured, one by one.
  long plans;           ///< Plans of cuDNN that were asked for, made or not.
  long plans_at_once;   ///< The most that were asked for at once.
  long graphs;          ///< Graphs that were launched.
  long shared_handles;  ///< Uses of a handle of cuDNN while another thread used it.
};

/// Returns how many graphs were launched.
long graphs_launched();
/// Adds what cuDNN's stand-in counts.
void count_plans(Counts& counts);

}  // namespace duplex::stand_in

/// Tests look it up in the library.
extern "C" void duplex_stand_in_counts(duplex::stand_in::Counts* counts);
