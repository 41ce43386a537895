// The operations of one oneDNN device share a Context: engine, stream, threads, and memory that is
// needed only while a call runs.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <dnnl.hpp>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/operations.h"
#include "core/tensor.h"

namespace duplex::onednn {

/// Returns memory that is aligned to a cache line. Big buffers have pages of their own
/// (core/mapped_memory.h).
Buffer allocate_aligned(std::size_t bytes);

class Context {
 public:
  explicit Context(int threads);

  const dnnl::engine& engine() const { return engine_; }
  dnnl::stream& stream() { return stream_; }
  int threads() const { return threads_; }

  /// OpenMP's number of threads belongs to the calling thread: call this before creating or running
  /// anything that is parallel.
  void enter() const;
  /// Does the same for moving data, and returns the number of threads. A thread other than the one
  /// that called enter() last communicates while that one computes, so it gets one core.
  int enter_transfer() const;

  /// Sets Device::keep_nan: when on, operations run apart from the ReLU that oneDNN fuses with
  /// them, because a fused ReLU turns NaN into 0.
  void keep_nan(bool on) { keeps_nan_ = on; }
  bool keeps_nan() const { return keeps_nan_; }

  /// Returns the attributes of every primitive, which make the caller give it a scratchpad.
  dnnl::primitive_attr attributes() const;
  /// All operations share the scratchpad, and a buffer for converted arguments in each slot. Both
  /// are valid during one call, which may use each slot once. Operations reserve them when they are
  /// made, and take them when they run; memory is allocated when it is first taken.
  void reserve_scratchpad(std::size_t bytes);
  void* scratchpad() { return taken(scratchpad_); }
  enum Slot { slot_x, slot_y, slot_weights, slots };
  void reserve_staging(Slot slot, std::size_t bytes);
  float* staging(Slot slot) { return static_cast<float*>(taken(staging_.at(slot))); }

  /// Counts the bytes that operations keep for themselves (KeptMemory).
  void keep(std::int64_t bytes) { kept_bytes_ += bytes; }
  /// Returns what the operations that there are take up once each has run.
  OperationMemory operation_memory() const;

 private:
  /// A buffer that grows to what has been reserved.
  struct Reserved {
    std::size_t bytes = 0;
    Buffer buffer;
  };
  static void* taken(Reserved& reserved);

  int threads_;
  bool keeps_nan_ = false;
  /// The thread that computes; others may ask whether they are it.
  mutable std::atomic<std::thread::id> computes_ = std::this_thread::get_id();
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  Reserved scratchpad_;
  std::array<Reserved, slots> staging_;
  std::int64_t kept_bytes_ = 0;
};

using ContextPtr = std::shared_ptr<Context>;

/// Memory that an operation keeps from one call to the next; it is allocated when it is first used.
class KeptMemory {
 public:
  KeptMemory() = default;
  KeptMemory(ContextPtr context, std::size_t bytes) : context_(std::move(context)), bytes_(bytes) {
    context_->keep(static_cast<std::int64_t>(bytes_));
  }
  ~KeptMemory() {
    if (context_) context_->keep(-static_cast<std::int64_t>(bytes_));
  }
  KeptMemory(KeptMemory&&) = default;
  KeptMemory& operator=(KeptMemory&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(bytes_, other.bytes_);
    std::swap(buffer_, other.buffer_);
    return *this;
  }

  void* data() {
    if (buffer_.data() == nullptr) buffer_ = allocate_aligned(bytes_);
    return buffer_.data();
  }

 private:
  ContextPtr context_;
  std::size_t bytes_ = 0;
  Buffer buffer_;
};

/// A primitive and its memory objects, bound to the pointers of each call.
class BoundPrimitive {
 public:
  using Arguments = std::initializer_list<std::pair<int, dnnl::memory::desc>>;
  using Pointers = std::initializer_list<std::pair<int, const void*>>;

  BoundPrimitive() = default;
  /// `what` names the primitive in errors: "convolution 8x3x224x224, forward".
  template <class Description>
  BoundPrimitive(ContextPtr context, std::string what, const Description& description,
                 const dnnl::primitive& primitive, Arguments arguments)
      : BoundPrimitive(std::move(context), std::move(what), primitive,
                       description.scratchpad_desc(), arguments) {}

  explicit operator bool() const { return context_ != nullptr; }
  void run(Pointers pointers);

 private:
  BoundPrimitive(ContextPtr context, std::string what, dnnl::primitive primitive,
                 const dnnl::memory::desc& scratchpad, Arguments arguments);

  ContextPtr context_;
  std::string what_;
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

/// Makes a reorder with the arguments DNNL_ARG_FROM and DNNL_ARG_TO.
BoundPrimitive make_reorder(const ContextPtr& context, const dnnl::memory::desc& from,
                            const dnnl::memory::desc& to);

/// Brings an argument into the layout that a primitive wants, or a result out of it. Does nothing
/// where the two agree.
class Conversion {
 public:
  Conversion() = default;
  Conversion(const ContextPtr& context, const dnnl::memory::desc& from,
             const dnnl::memory::desc& to, Context::Slot slot);

  /// Returns an input's data in the layout `to`.
  const float* input(const float* data);
  /// Returns where the primitive shall write an output in the layout `from`; finish() then brings
  /// it to `data`.
  float* target(float* data);
  void finish(float* data);

 private:
  ContextPtr context_;
  Context::Slot slot_ = Context::slot_x;
  BoundPrimitive reorder_;
};

/// Ranks an implementation by its name: 0 is generated code, 1 unfolding (im2col) and a matrix
/// product, 2 plain loops.
int implementation_rank(const char* implementation);

[[noreturn]] void fail(const std::string& what, const dnnl::error& error);

/// Calls `make`; oneDNN's errors become Error("onednn: what: ...").
template <class Make>
auto translate(const std::string& what, const Make& make) {
  try {
    return make();
  } catch (const dnnl::error& error) {
    fail(what, error);
  }
}

}  // namespace duplex::onednn
