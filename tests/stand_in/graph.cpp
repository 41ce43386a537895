// The stand-in for CUDA graphs.
#include <cuda_runtime_api.h>

#include <atomic>

#include "tests/stand_in/stand_in.h"
#include "tests/stand_in/stream.h"

namespace {

std::atomic<long> launched{0};
thread_local cudaStream_t capturing = nullptr;  ///< The stream that this thread has capture.

}  // namespace

long duplex::stand_in::graphs_launched() {
  return launched;
}

cudaError_t duplex::stand_in::uncapturable() {
  if (capturing == nullptr) return cudaSuccess;
  capturing->spoil_capture();
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (capturing != nullptr) return duplex::stand_in::uncapturable();
  stream->begin_capture();
  capturing = stream;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  capturing = nullptr;
  *graph = stream->end_capture().release();
  return *graph == nullptr ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}
#if CUDART_VERSION >= 12000
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long) {
#else
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph, cudaGraphNode_t*, char*,
                                 std::size_t) {
#endif
  *ready = new CUgraphExec_st{*graph};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t stream) {
  ++launched;
  stream->repeat(ready->graph);
  return duplex::stand_in::broken ? cudaErrorIllegalAddress : cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready) {
  delete ready;
  return cudaSuccess;
}
