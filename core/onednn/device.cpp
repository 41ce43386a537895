#include "core/onednn/device.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "core/error.h"
#include "core/onednn/compat.h"
#include "core/onednn/context.h"
#include "core/onednn/kernels.h"
#include "core/onednn/layout.h"
#include "core/onednn/operations/activation.h"
#include "core/onednn/operations/add.h"
#include "core/onednn/operations/batch_norm.h"
#include "core/onednn/operations/concat.h"
#include "core/onednn/operations/conv.h"
#include "core/onednn/operations/dropout.h"
#include "core/onednn/operations/linear.h"
#include "core/onednn/operations/loss.h"
#include "core/onednn/operations/lrn.h"
#include "core/onednn/operations/pool.h"
#include "core/onednn/parallel.h"

namespace duplex {
namespace {

using namespace onednn;

std::string instruction_set() {
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  if (const char* name = newer_instruction_set(isa)) return name;
  switch (isa) {
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    default:
      return "other instructions";
  }
}

std::string count_of(int count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

class OneDnnDevice final : public Device {
 public:
  explicit OneDnnDevice(int threads) : context_(std::make_shared<Context>(threads)) {}

  std::string name() const override { return "onednn"; }
  std::string description() const override {
    const dnnl_version_t* version = dnnl::version();
    return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
           std::to_string(version->patch) + ", " + instruction_set() + ", " +
           count_of(context_->threads(), "thread");
  }

  Buffer allocate(std::size_t bytes) override { return allocate_aligned(bytes); }
  OperationMemory operation_memory() const override { return context_->operation_memory(); }

  void upload(Tensor& to, const float* from) override {
    const dnnl::memory::desc memory = memory_of(to.desc);
    move(to.data, memory, from, plain_memory(dims_of(memory)), to.desc);
  }
  void download(float* to, const Tensor& from) override {
    const dnnl::memory::desc memory = memory_of(from.desc);
    move(to, plain_memory(dims_of(memory)), from.data, memory, from.desc);
  }
  void convert(Tensor& to, const Tensor& from) override {
    const dnnl::memory::desc given = memory_of(from.desc);
    const dnnl::memory::desc target = with_extents_of(memory_of(to.desc), given);
    const dnnl::memory::desc source = with_extents_of(given, target);
    move(to.data, target, from.data, source, to.desc);
  }

  void fill(Tensor& tensor, float value) override {
    context_->enter_transfer();
    parallel_elements(tensor.stored(), [=, data = tensor.data](auto begin, auto end) {
      std::fill(data + begin, data + end, value);
    });
  }

  bool finite(const std::vector<Tensor>& tensors) override {
    context_->enter();
    std::atomic<bool> all{true};
    for (const Tensor& tensor : tensors) {
      parallel_elements(tensor.stored(), [&](std::int64_t begin, std::int64_t end) {
        if (!onednn::finite(tensor.data + begin, end - begin)) all = false;
      });
    }
    return all;
  }
  void keep_nan(bool on) override { context_->keep_nan(on); }
  bool lays_out_by_operation() const override { return true; }

  void accumulate(Tensor& to, const Tensor& from) override {
    context_->enter_transfer();
    parallel_elements(to.stored(), [&](std::int64_t begin, std::int64_t end) {
      onednn::add(to.data + begin, to.data + begin, from.data + begin, end - begin);
    });
  }

  void update(const OptimiserStep& step, Tensor& weights, const Tensor& gradient,
              std::vector<Tensor>& state) override {
    context_->enter_transfer();
    parallel_elements(weights.stored(), [&](std::int64_t begin, std::int64_t end) {
      std::array<float*, 2> spans{};
      for (std::size_t i = 0; i < std::min(state.size(), spans.size()); ++i) {
        spans[i] = state[i].data + begin;
      }
      duplex::update(step, static_cast<std::size_t>(end - begin), weights.data + begin,
                     gradient.data + begin, spans.data());
    });
  }

  void synchronize() override {}  // Every call waits for its result.

  std::unique_ptr<Conv> conv(const ConvSpec& spec, const TensorDesc& x) override {
    return make_conv(context_, spec, x);
  }
  std::unique_ptr<Linear> linear(const LinearSpec& spec, const TensorDesc& x) override {
    return make_linear(context_, spec, x);
  }
  std::unique_ptr<Pool> pool(const PoolSpec& spec, const TensorDesc& x) override {
    return make_pool(context_, spec, x);
  }
  std::unique_ptr<Lrn> lrn(const LrnSpec& spec, const TensorDesc& x) override {
    return make_lrn(context_, spec, x);
  }
  std::unique_ptr<BatchNorm> batch_norm(const BatchNormSpec& spec, const TensorDesc& x) override {
    return make_batch_norm(context_, spec, x);
  }
  std::unique_ptr<Activation> activation(ActivationKind kind, const TensorDesc& x) override {
    return make_activation(context_, kind, x);
  }
  std::unique_ptr<Dropout> dropout(float rate, const TensorDesc& x) override {
    return make_dropout(context_, rate, x);
  }
  std::unique_ptr<Concat> concat(const std::vector<TensorDesc>& x) override {
    return make_concat(context_, x);
  }
  std::unique_ptr<Add> add(bool relu, const TensorDesc& a, const TensorDesc& b) override {
    return make_add(context_, relu, a, b);
  }
  std::unique_ptr<PadChannels> pad_channels(std::int64_t channels, const TensorDesc& x) override {
    return make_pad_channels(context_, channels, x);
  }
  std::unique_ptr<GradientSum> gradient_sum(const TensorDesc& y) override {
    return make_gradient_sum(context_, y);
  }
  std::unique_ptr<Loss> loss(const LossSpec& spec, const TensorDesc& x) override {
    return make_loss(context_, spec, x);
  }

 private:
  /// Copies or reorders. It may run in a thread beside the one that computes, so it shares no
  /// memory with the operations.
  void move(float* to, const dnnl::memory::desc& to_memory, const float* from,
            const dnnl::memory::desc& from_memory, const TensorDesc& desc) {
    context_->enter_transfer();
    if (to_memory == from_memory) {
      parallel_elements(static_cast<std::int64_t>(to_memory.get_size() / sizeof(float)),
                        [=](std::int64_t begin, std::int64_t end) {
                          std::copy(from + begin, from + end, to + begin);
                        });
      return;
    }
    translate("reorder of " + desc.shape.str(), [&] {
      const dnnl::engine& engine = context_->engine();
      dnnl::memory source(from_memory, engine, const_cast<float*>(from));
      dnnl::memory target(to_memory, engine, to);
      dnnl::stream stream(engine);
      dnnl::reorder(source, target).execute(stream, source, target);
      stream.wait();
    });
  }

  ContextPtr context_;
};

}  // namespace

std::unique_ptr<Device> make_onednn_device(int threads) {
  try {
    return std::make_unique<OneDnnDevice>(threads);
  } catch (const dnnl::error& error) {
    fail("start", error);
  }
}

}  // namespace duplex
