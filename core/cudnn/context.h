// The operations of one GPU share a Context: the GPU's number, its stream, the handles of the
// libraries, and memory that is needed only while a call runs.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/cudnn/events.h"
#include "core/cudnn/handle.h"
#include "core/cudnn/kernels/view.h"
#include "core/cudnn/rounded.h"
#include "core/cudnn/shared_memory.h"
#include "core/gpu/options.h"
#include "core/tensor.h"

namespace duplex::cudnn {

class Context {
 public:
  /// Throws Error where there is no driver, no GPU, or none of this number, where this program has
  /// no code for the GPU, or where cuDNN is older than the headers that this was built with, or for
  /// another CUDA.
  explicit Context(const GpuOptions& options);

  /// Makes this GPU the calling thread's current one. CUDA keeps that per thread, so every call
  /// from outside begins with this.
  void enter() const { check(cudaSetDevice(index_), "choosing the GPU"); }

  int index() const { return index_; }
  const std::string& gpu() const { return gpu_; }  ///< "NVIDIA H200".
  /// Tells the GPU from the machine's others, whatever CUDA_VISIBLE_DEVICES makes of their numbers.
  const std::string& place() const { return place_; }
  static std::string cudnn();  ///< "cuDNN 9.19".
  std::size_t memory_bytes() const { return memory_bytes_; }
  int multiprocessors() const { return multiprocessors_; }
  /// Convolutions lay out their results in order(). Convolutions and linear layers store theirs in
  /// type().
  Order order() const { return order_; }
  Type type() const { return precision_ == Precision::bf16 ? Type::bf16 : Type::float32; }
  /// Also gives back what operations of another order have needed, if these are no more.
  void choose_order(Order order);
  Precision precision() const { return precision_; }
  /// Sets Device::keep_nan: when on, ReLU runs apart from the operation that cuDNN could fuse it
  /// with.
  void keep_nan(bool on) { keeps_nan_ = on; }
  bool keeps_nan() const { return keeps_nan_; }
  /// Returns whether operations may be recorded (recorded_graph.h).
  bool graphs() const { return graphs_; }
  /// Returns whether they are being recorded: an operation then reads what its prepare() was given.
  bool capturing() const { return capturing_; }
  /// Returns how often memory that several operations use has moved, or may have.
  std::uint64_t moves() const { return moves_; }
  /// A function that changes where such memory lies calls it.
  void count_move() const { ++moves_; }
  /// Returns the stream of the operations, or the one that a StreamInUse has put in its place.
  cudaStream_t stream() const { return in_use_; }
  cudnnHandle_t dnn() const { return dnn_.get(); }
  cublasHandle_t blas() const { return blas_.get(); }

  /// Returns uninitialised memory of the GPU. Throws OutOfMemory, which says how much was asked for
  /// and how much is free.
  Buffer allocate(std::size_t bytes) const;
  std::size_t allocated_bytes() const { return *allocated_; }
  /// All operations share the workspace. An operation that needs some reserves it when it is made,
  /// and keeps the reservation. Calls follow each other in the stream, and so do their uses of the
  /// workspace.
  [[nodiscard]] Reservation reserve(std::size_t bytes) { return workspace_.reserve(*this, bytes); }
  void* workspace() const { return workspace_.data(); }
  /// The staging memory is shared in the same way. It holds tensors in the layout or type that an
  /// operation wants, where the caller has them in another.
  [[nodiscard]] Reservation reserve_staging(std::size_t bytes) {
    return staging_.reserve(*this, bytes);
  }
  char* staging() const { return static_cast<char*>(staging_.data()); }

  /// Returns pinned host memory. Throws Error where the driver refuses.
  Buffer pinned(std::size_t bytes) const;
  /// Pins host memory while the returned object lives, so that copies from and to it run without
  /// the host. Returns null where the driver refuses.
  std::shared_ptr<void> pin(void* data, std::size_t bytes) const;
  /// Copies from host memory to the GPU; copy_out() copies back. Host memory need not be pinned.
  /// Both wait until the copy is done.
  void copy_in(void* to, const void* from, std::size_t bytes) const;
  /// Returns when `from` has been read, if it is not pinned: CUDA reads pageable memory before the
  /// call returns.
  void start_copy_in(void* to, const void* from, std::size_t bytes) const;
  void copy_out(void* to, const void* from, std::size_t bytes) const;
  /// Waits for all operations asked for so far.
  void synchronize() const { wait_for(stream(), "waiting for the GPU"); }
  const Events& events() const { return events_; }
  RoundedWeights& rounded() { return rounded_; }
  const RoundedWeights& rounded() const { return rounded_; }

  /// Returns whether the GPU has broken down. From then on, no call succeeds.
  bool broken() const {
    if (capturing_) return false;  // A stream that captures may not be asked.
    const cudaError_t status = cudaStreamQuery(stream());
    if (status == cudaErrorNotReady) cudaGetLastError();  // Else the next call would report it.
    return status != cudaSuccess && status != cudaErrorNotReady;
  }

  /// Makes a buffer at least this large. Where it is too small, this waits until nothing uses it
  /// any more and replaces it; its content is lost.
  void grow(Buffer& buffer, std::size_t bytes) const;
  /// Makes a buffer exactly this large, in the same way.
  void replace(Buffer& buffer, std::size_t bytes) const;

 private:
  friend class StreamInUse;
  friend class Capturing;

  int index_;
  Precision precision_;
  bool keeps_nan_ = false;
  const bool graphs_;
  bool capturing_ = false;
  mutable std::uint64_t moves_ = 0;
  /// Bytes allocated. The buffers share this count, since they may outlive the context.
  std::shared_ptr<std::atomic<std::size_t>> allocated_ =
      std::make_shared<std::atomic<std::size_t>>(0);
  std::string gpu_, place_;
  std::size_t memory_bytes_ = 0;
  int multiprocessors_ = 0;
  Order order_ = Order::nchw;
  Events events_;
  Handle<cudaStream_t> stream_;
  cudaStream_t in_use_ = nullptr;
  Handle<cudnnHandle_t> dnn_;
  Handle<cublasHandle_t> blas_;
  Buffer blas_workspace_;  ///< Where operations may be recorded: then cuBLAS must allocate none.
  SharedMemory workspace_, staging_;
  RoundedWeights rounded_;
  mutable bool refused_pin_ = false;  ///< And that has been said.
};

using ContextPtr = std::shared_ptr<Context>;

/// While it lives, our own kernels run in another stream. cuDNN and cuBLAS stay in the context's.
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

/// Operations are being recorded as long as it lives.
class Capturing {
 public:
  explicit Capturing(Context& context) : context_(context) { context.capturing_ = true; }
  ~Capturing() { context_.capturing_ = false; }
  Capturing(const Capturing&) = delete;
  Capturing& operator=(const Capturing&) = delete;

 private:
  Context& context_;
};

}  // namespace duplex::cudnn
