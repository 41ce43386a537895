// What the operations of one GPU share: its number, stream and library handles, and memory that is
// needed only while a call runs.
#pragma once
#include <cudnn_backend.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>

#include "core/cudnn/check.h"
#include "core/cudnn/view.h"
#include "core/gpu_options.h"
#include "core/tensor.h"

namespace duplex::cudnn {

/// How the libraries take back what they made.
struct Destroy {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  void operator()(cudnnHandle_t handle) const { cudnnDestroy(handle); }
  void operator()(cublasHandle_t handle) const { cublasDestroy(handle); }
  void operator()(cudnnTensorDescriptor_t tensor) const { cudnnDestroyTensorDescriptor(tensor); }
  void operator()(cudnnBackendDescriptor_t descriptor) const {
    cudnnBackendDestroyDescriptor(descriptor);
  }
};
/// Owns one of these.
template <class Pointer>
using Handle = std::unique_ptr<std::remove_pointer_t<Pointer>, Destroy>;

class Context {
 public:
  /// Throws Error: no driver, no GPU, none of this number.
  explicit Context(const GpuOptions& options);

  /// CUDA's current GPU belongs to the calling thread: every call from outside begins with this.
  void enter() const { check(cudaSetDevice(index_), "choosing the GPU"); }

  int index() const { return index_; }
  const std::string& gpu() const { return gpu_; }  ///< "NVIDIA H200".
  std::size_t memory_bytes() const { return memory_bytes_; }
  int multiprocessors() const { return multiprocessors_; }
  /// In which convolutions lay out their results, and with weighted layers store them.
  Order order() const { return order_; }
  Type type() const { return precision_ == Precision::bf16 ? Type::bf16 : Type::float32; }
  void choose_order(Order order) { order_ = order; }
  Precision precision() const { return precision_; }
  /// Device::keep_nan: whether ReLU is to run apart from what cuDNN may fuse it with.
  void keep_nan(bool on) { keeps_nan_ = on; }
  bool keeps_nan() const { return keeps_nan_; }
  /// Of the operations, or the one that a StreamInUse has put in its place.
  cudaStream_t stream() const { return in_use_; }
  cudnnHandle_t dnn() const { return dnn_.get(); }
  cublasHandle_t blas() const { return blas_.get(); }

  /// Memory of the GPU; uninitialised. Throws Error, saying how much was asked for and is free.
  Buffer allocate(std::size_t bytes) const;
  std::size_t allocated_bytes() const { return *allocated_; }
  /// Shared by all operations, valid during one call: whoever needs some reserves it when it is
  /// made. Calls follow each other in the stream, so do their uses.
  void reserve(std::size_t bytes) { grow(workspace_, bytes); }
  void* workspace() const { return workspace_.data(); }
  /// Likewise, for tensors in another layout or type than somebody wants them.
  void reserve_staging(std::size_t bytes) { grow(staging_, bytes); }
  char* staging() const { return static_cast<char*>(staging_.data()); }

  /// Makes copies from and to host memory run without the host, while what is returned lives; null:
  /// the driver would not.
  std::shared_ptr<void> pin(void* data, std::size_t bytes) const;
  /// Between host memory and the GPU, by way of memory that the GPU reaches; both wait.
  void copy_in(void* to, const void* from, std::size_t bytes) const;
  /// Waits until `from` has been read: CUDA reads memory that is not pinned before it returns.
  void start_copy_in(void* to, const void* from, std::size_t bytes) const;
  void copy_out(void* to, const void* from, std::size_t bytes) const;
  void synchronize() const { check(cudaStreamSynchronize(stream()), "waiting for the GPU"); }

  /// Whether the GPU has broken down: from then on, no call succeeds.
  bool broken() const {
    const cudaError_t status = cudaStreamQuery(stream());
    if (status == cudaErrorNotReady) cudaGetLastError();  // It would be the next call's.
    return status != cudaSuccess && status != cudaErrorNotReady;
  }

  /// Makes a buffer at least this large, once nothing uses it any more; what was in it is lost.
  void grow(Buffer& buffer, std::size_t bytes) const;

 private:
  friend class StreamInUse;

  int index_;
  Precision precision_;
  bool keeps_nan_ = false;
  /// Bytes; buffers may outlive the context.
  std::shared_ptr<std::atomic<std::size_t>> allocated_ =
      std::make_shared<std::atomic<std::size_t>>(0);
  std::string gpu_;
  std::size_t memory_bytes_ = 0;
  int multiprocessors_ = 0;
  Order order_ = Order::nchw;
  Handle<cudaStream_t> stream_;
  cudaStream_t in_use_ = nullptr;
  Handle<cudnnHandle_t> dnn_;
  Handle<cublasHandle_t> blas_;
  Buffer workspace_, staging_;
};

using ContextPtr = std::shared_ptr<Context>;

/// While it lives, kernels of ours go to another stream. Not for cuDNN and cuBLAS.
class StreamInUse {
 public:
  StreamInUse(Context& context, cudaStream_t stream) : context_(context), before_(context.in_use_) {
    context.in_use_ = stream;
  }
  ~StreamInUse() { context_.in_use_ = before_; }
  StreamInUse(const StreamInUse&) = delete;
  StreamInUse& operator=(const StreamInUse&) = delete;

 private:
  Context& context_;
  cudaStream_t before_;
};

}  // namespace duplex::cudnn
