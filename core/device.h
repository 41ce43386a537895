// A device has memory and makes operations. Three backends stand behind this interface; the rest of
// the program knows no other.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/gpu/options.h"
#include "core/operations.h"
#include "core/optimiser.h"
#include "core/tensor.h"
#include "core/transfer.h"

namespace duplex {

/// Operations that a device has recorded (Device::record), with their tensors and numbers, in the
/// order in which they were asked for. Operations and tensors must outlive it. What differs from
/// one time to the next is given to the operations before, by their prepare().
class Recording {
 public:
  virtual ~Recording() = default;
  /// Returns whether memory that the operations use has moved since. run() is not to be called from
  /// then on.
  virtual bool outdated() const = 0;
  /// Asks for all of the operations. Throws Error as they do.
  virtual void run() = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;         ///< "onednn".
  virtual std::string description() const = 0;  ///< "oneDNN 2.6.3, avx512_core_amx, 2 threads".

  /// Returns uninitialised memory, aligned to a cache line at least. Throws Error when there is
  /// none left, OutOfMemory where it is known how much there is.
  virtual Buffer allocate(std::size_t bytes) = 0;
  /// Returns the bytes that are allocated now, or 0 where the memory is the host's.
  virtual std::size_t allocated_bytes() const { return 0; }
  /// Returns what the operations that there are take of the host's memory, or nothing where it is
  /// not known.
  virtual OperationMemory operation_memory() const { return {}; }

  /// upload() copies from host memory (plain, float32, logical order, shape().elements() values) to
  /// a tensor of any layout, download() copies back. Both wait until the copy is done. The layout's
  /// padding is written as zero.
  virtual void upload(Tensor& to, const float* from) = 0;
  virtual void download(float* to, const Tensor& from) = 0;

  /// to = from. The shapes are equal; the layouts may differ. The default goes through host memory.
  virtual void convert(Tensor& to, const Tensor& from);

  /// Sets every stored element, padding included (so only 0 is meaningful where a layout pads).
  virtual void fill(Tensor& tensor, float value) = 0;
  /// Returns whether every stored element of all of them is a finite number. Waits for the device.
  virtual bool finite(const std::vector<Tensor>& tensors) = 0;
  /// Sets whether every forward from now on passes NaN on to the outputs that depend on it. When
  /// off, a device may use faster operations, whose ReLU turns NaN into 0 and whose maximum ignores
  /// NaN.
  virtual void keep_nan(bool /*on*/) {}
  /// Returns whether that is on, where it makes a difference.
  virtual bool keeps_nan() const { return false; }
  /// to += from. Both have the same description.
  virtual void accumulate(Tensor& to, const Tensor& from) = 0;
  /// Does what update() of core/optimiser.h does, on tensors of one description, state included.
  virtual void update(const OptimiserStep& step, Tensor& weights, const Tensor& gradient,
                      std::vector<Tensor>& state) = 0;
  /// Has operations read weights as they round them from a copy, which follows every change that
  /// this device makes of them, as long as the returned object lives. `weights` are a plain block,
  /// in which those of operations lie. Returns null where operations read weights as they are.
  /// Throws as allocate() does.
  virtual std::shared_ptr<void> keep_rounded(const Tensor& /*weights*/) { return nullptr; }
  /// Lays out activations and weights of the operations made from now on with their channels side
  /// by side (NHWC), or in planes (NCHW). Returns false where this device leaves no choice.
  virtual bool choose_channels_last(bool) { return false; }
  /// Returns whether each operation has its own way of laying out its output, by its spec, and
  /// others keep the way of their input. Sums may be rounded in another order in another layout.
  virtual bool lays_out_by_operation() const { return false; }
  /// Waits for all operations asked for so far.
  virtual void synchronize() = 0;

  /// Returns whether record() makes recordings. What is recorded while keeps_nan() is as it was
  /// then in every run.
  virtual bool records() const { return false; }
  /// Has the device remember the operations that `work` asks for, and not do them. `work` neither
  /// allocates memory, nor waits for the device, nor copies from or to host memory; it has been
  /// called before in the same way, so that what is made when it is first needed is there. Returns
  /// null where they cannot be recorded.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& /*work*/) {
    return nullptr;
  }

  // ---- Copies that run beside the operations. A device whose calls return only when their work is
  // done has none.

  /// Returns whether operations return before they are done, except those that say that they wait.
  virtual bool asynchronous() const { return false; }
  /// Says that the work asked for from now on belongs to a layer.
  virtual void begin_layer(const std::string& /*name*/) {}
  /// Returns the layer in which the device has broken down, or "unknown"; no call succeeds from
  /// then on. Returns an empty string while it works.
  virtual std::string broken_in() const { return ""; }
  /// Makes host memory fit for the copies below, while the returned object lives. Copies from other
  /// memory are right too, but may keep the host waiting.
  virtual std::shared_ptr<void> pin(void* /*data*/, std::size_t /*bytes*/) { return nullptr; }
  /// Starts a download() that runs once the operations asked for so far are done, and does not wait
  /// for it. Returns null where the copy is done; otherwise, nothing that writes to `from` may
  /// overtake the returned copy.
  virtual std::unique_ptr<Transfer> start_download(float* to, const Tensor& from) {
    download(to, from);
    return nullptr;
  }
  /// Starts an upload() for the operations from now on, and does not wait for it. Nothing that was
  /// asked for since the last synchronize() may use `to`, and `from` must stay as it is until the
  /// next.
  virtual void start_upload(Tensor& to, const float* from) { upload(to, from); }
  /// Starts to copy ahead what an upload() from this memory, of these bytes, will want. Returns
  /// null where the device does not do that. Otherwise the copy serves one upload(), as long as the
  /// returned object lives and until another prefetch() is asked for.
  virtual std::unique_ptr<Transfer> prefetch(const float* /*from*/, std::size_t /*bytes*/) {
    return nullptr;
  }
  /// Returns how long the operations since the last call waited for copies. Call it after
  /// synchronize().
  virtual CopyWaits copy_waits() { return {}; }

  /// Says which convolutions conv() will be asked for, so that a device which has to compile them
  /// can do so for several at once. conv() gives the same without, and throws what went wrong here.
  virtual void announce(const std::vector<ConvOn>& /*convs*/) {}
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
  virtual std::unique_ptr<Loss> loss(const LossSpec& spec, const TensorDesc& x) = 0;
};

/// Keeps Device::keep_nan on for as long as it lives.
class KeepingNan {
 public:
  explicit KeepingNan(Device& device) : device_(device) { device_.keep_nan(true); }
  ~KeepingNan() { device_.keep_nan(false); }
  KeepingNan(const KeepingNan&) = delete;
  KeepingNan& operator=(const KeepingNan&) = delete;

 private:
  Device& device_;
};

/// Returns the number of cores that this process may use. Under taskset, Slurm or in a container
/// there are fewer than the machine has.
int usable_cores();

/// `which` is auto | cpu | cuda[:I] | reference. cpu is oneDNN where that was built in, else
/// reference; auto is the same, so that a GPU is used only when it is asked for; cuda:I is GPU I,
/// from 0. `threads` 0 takes one for each core that this process may use. `which` and `threads`
/// give the GPU's index and threads, not `gpu`. Throws Error(Exit::usage) for an unknown name,
/// listing the known ones, for a backend that was not built in, saying what to install, and for a
/// precision that the device does not have.
std::unique_ptr<Device> make_device(const std::string& which, int threads, GpuOptions gpu = {});

/// Returns the names that make_device takes in this build, for help texts.
std::vector<std::string> device_names();

}  // namespace duplex
