// What the operations of one oneDNN device share: engine, stream, threads, and memory that is
// needed only while a call runs.
#pragma once
#include <array>
#include <dnnl.hpp>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/tensor.h"

namespace duplex::onednn {

/// Aligned to a cache line; big buffers to a huge page, and the kernel is asked for such pages.
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
  /// The same for moving data. A thread other than the one that made the device communicates while
  /// that one computes, so it gets one core.
  int enter_transfer() const;

  /// Device::keep_nan: whether what oneDNN fuses with a ReLU, which turns NaN into 0, is to run
  /// apart from it.
  void keep_nan(bool on) { keeps_nan_ = on; }
  bool keeps_nan() const { return keeps_nan_; }

  /// Attributes of every primitive: the scratchpad comes from us.
  dnnl::primitive_attr attributes() const;
  /// Shared by all operations, valid during one call. reserve at creation, take when running.
  void reserve_scratchpad(std::size_t bytes);
  void* scratchpad();
  /// Buffers for converted arguments; a call may use each slot once. Valid during one call.
  enum Slot { slot_x, slot_y, slot_weights, slots };
  float* staging(Slot slot, std::size_t bytes);

 private:
  int threads_;
  bool keeps_nan_ = false;
  std::thread::id maker_ = std::this_thread::get_id();
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::size_t scratchpad_bytes_ = 0;
  Buffer scratchpad_;
  std::array<Buffer, slots> staging_;
};

using ContextPtr = std::shared_ptr<Context>;

/// A primitive and its memory objects, bound to the pointers of each call.
class BoundPrimitive {
 public:
  using Arguments = std::initializer_list<std::pair<int, dnnl::memory::desc>>;
  using Pointers = std::initializer_list<std::pair<int, const void*>>;

  BoundPrimitive() = default;
  /// `what` names it in errors: "convolution 8x3x224x224, forward".
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

/// Arguments DNNL_ARG_FROM and DNNL_ARG_TO.
BoundPrimitive make_reorder(const ContextPtr& context, const dnnl::memory::desc& from,
                            const dnnl::memory::desc& to);

/// Brings an argument into the layout that a primitive wants, or a result out of it. Does nothing
/// where the two agree.
class Conversion {
 public:
  Conversion() = default;
  Conversion(const ContextPtr& context, const dnnl::memory::desc& from,
             const dnnl::memory::desc& to, Context::Slot slot);

  /// Input: the data in the layout `to`.
  const float* input(const float* data);
  /// Output: where the primitive shall write in the layout `from`; then finish brings it to `data`.
  float* target(float* data);
  void finish(float* data);

 private:
  ContextPtr context_;
  Context::Slot slot_ = Context::slot_x;
  std::size_t from_bytes_ = 0, to_bytes_ = 0;
  BoundPrimitive reorder_;
};

/// How good an implementation is, by its name: 0 generated code, 1 unfolding and a matrix product,
/// 2 plain loops.
int slowness(const char* implementation);

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
