// A device: memory, and a factory of operations. Three backends stand behind this interface; the
// rest of the program knows no other.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/gpu_options.h"
#include "core/operations.h"
#include "core/optimiser.h"
#include "core/tensor.h"
#include "core/transfer.h"

namespace duplex {

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;         ///< "onednn".
  virtual std::string description() const = 0;  ///< "oneDNN 2.6.3, avx512_core_amx, 2 threads".

  /// Uninitialised memory, aligned to a cache line at least. Throws Error when there is none left,
  /// OutOfMemory where it is known how much there is.
  virtual Buffer allocate(std::size_t bytes) = 0;
  /// Allocated now, of memory that is not the host's; 0: it is the host's.
  virtual std::size_t allocated_bytes() const { return 0; }

  /// Between host memory (plain, float32, logical order, shape().elements() values) and a tensor of
  /// any layout. Both wait until the copy is done. Padding of the layout is written as zero.
  virtual void upload(Tensor& to, const float* from) = 0;
  virtual void download(float* to, const Tensor& from) = 0;

  /// to = from: equal shapes, any two layouts. The default goes through host memory.
  virtual void convert(Tensor& to, const Tensor& from);

  /// Every stored element, padding included (so only 0 is meaningful where a layout pads).
  virtual void fill(Tensor& tensor, float value) = 0;
  /// Whether every stored element of all of them is a finite number. Waits for the device.
  virtual bool finite(const std::vector<Tensor>& tensors) = 0;
  /// Whether every forward from now on passes NaN on to the outputs that depend on it. When off, a
  /// device may use faster operations, whose ReLU turns NaN into 0 and whose maximum passes it by.
  virtual void keep_nan(bool /*on*/) {}
  /// to += from, same description.
  virtual void accumulate(Tensor& to, const Tensor& from) = 0;
  /// core/optimiser.h's update on tensors of one description, state included.
  virtual void update(const OptimiserStep& step, Tensor& weights, const Tensor& gradient,
                      std::vector<Tensor>& state) = 0;
  /// Lays out activations and weights of the operations made from now on with their channels side
  /// by side (NHWC), or in planes (NCHW). False: this device lets nobody choose.
  virtual bool choose_channels_last(bool) { return false; }
  /// Waits for all operations asked for so far.
  virtual void synchronize() = 0;

  // ---- Copies beside the operations. A device that works off each call before it returns has
  // none.

  /// Whether operations, but for those that say so, return before they are done.
  virtual bool asynchronous() const { return false; }
  /// What is asked for from now on belongs to a layer.
  virtual void begin_layer(const std::string& /*name*/) {}
  /// Of a device that has broken down, and on which no call succeeds any more: the layer in which
  /// it did, or "unknown". Empty: it works.
  virtual std::string broken_in() const { return ""; }
  /// Makes host memory fit for the copies below, while what is returned lives; from other memory
  /// they are right too, but may keep the host waiting.
  virtual std::shared_ptr<void> pin(void* /*data*/, std::size_t /*bytes*/) { return nullptr; }
  /// As download, once the operations asked for so far are done, without waiting for that: null, or
  /// a copy that nothing may overtake which writes to `from`.
  virtual std::unique_ptr<Transfer> start_download(float* to, const Tensor& from) {
    download(to, from);
    return nullptr;
  }
  /// As upload, for the operations from now on, without waiting. Since the last synchronize(),
  /// nothing may have been asked for that uses `to`; `from` stays as it is until the next.
  virtual void start_upload(Tensor& to, const float* from) { upload(to, from); }
  /// Copies ahead what an upload from this memory, of these bytes, will want: null, or a copy that
  /// counts as long as what is returned lives, once, and until another is asked for.
  virtual std::unique_ptr<Transfer> prefetch(const float* /*from*/, std::size_t /*bytes*/) {
    return nullptr;
  }
  /// Of the operations since the last call. After synchronize().
  virtual CopyWaits copy_waits() { return {}; }

  virtual std::unique_ptr<Conv> conv(const ConvSpec& spec, const TensorDesc& x) = 0;
  virtual std::unique_ptr<Linear> linear(const LinearSpec& spec, const TensorDesc& x) = 0;
  virtual std::unique_ptr<Pool> pool(const PoolSpec& spec, const TensorDesc& x) = 0;
  virtual std::unique_ptr<Lrn> lrn(const LrnSpec& spec, const TensorDesc& x) = 0;
  virtual std::unique_ptr<BatchNorm> batch_norm(const BatchNormSpec& spec, const TensorDesc& x) = 0;
  virtual std::unique_ptr<Activation> activation(ActivationKind kind, const TensorDesc& x) = 0;
  virtual std::unique_ptr<Dropout> dropout(float rate, const TensorDesc& x) = 0;
  virtual std::unique_ptr<Concat> concat(const std::vector<TensorDesc>& x) = 0;
  virtual std::unique_ptr<Add> add(bool relu, const TensorDesc& a, const TensorDesc& b) = 0;
  virtual std::unique_ptr<PadChannels> pad_channels(std::int64_t channels, const TensorDesc& x) = 0;
  virtual std::unique_ptr<GradientSum> gradient_sum(const TensorDesc& y) = 0;
  virtual std::unique_ptr<Loss> loss(LossKind kind, const TensorDesc& x) = 0;
};

/// Device::keep_nan for as long as it lives.
class KeepingNan {
 public:
  explicit KeepingNan(Device& device) : device_(device) { device_.keep_nan(true); }
  ~KeepingNan() { device_.keep_nan(false); }
  KeepingNan(const KeepingNan&) = delete;
  KeepingNan& operator=(const KeepingNan&) = delete;

 private:
  Device& device_;
};

/// Cores that this process may use: under taskset, Slurm or in a container fewer than there are.
int usable_cores();

/// `which`: auto | cpu | cuda[:I] | reference. auto takes the fastest that was built in and is
/// there; cpu is oneDNN where built in, else reference; cuda:I is GPU I, from 0. threads 0: one for
/// each core this process may use. Throws Error(Exit::usage) for an unknown name, listing the
/// known, for a backend that was not built in, saying what to install, and for a precision that the
/// device does not have. Of `gpu`, the index is that of `which`.
std::unique_ptr<Device> make_device(const std::string& which, int threads, GpuOptions gpu = {});

/// The names that make_device takes in this build; for help texts.
std::vector<std::string> device_names();

}  // namespace duplex
