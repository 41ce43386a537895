// Owns what the libraries of a GPU hand out.
#pragma once
#include <cudnn_backend.h>

#include <memory>
#include <type_traits>

#include "core/cudnn/check.h"

namespace duplex::cudnn {

/// Calls the function of the library that destroys a handle.
struct Destroy {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  void operator()(cudnnHandle_t handle) const { cudnnDestroy(handle); }
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  void operator()(cublasHandle_t handle) const { cublasDestroy(handle); }
  void operator()(cudnnTensorDescriptor_t tensor) const { cudnnDestroyTensorDescriptor(tensor); }
  void operator()(cudnnBackendDescriptor_t descriptor) const {
    cudnnBackendDestroyDescriptor(descriptor);
  }
};
/// Owns a handle, and has the library destroy it.
template <class Pointer>
using Handle = std::unique_ptr<std::remove_pointer_t<Pointer>, Destroy>;

}  // namespace duplex::cudnn
