// The device whose operations are plain loops. Its memory is the host's, and every tensor is plain.
#include "core/reference/device.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/error.h"
#include "core/reference/activation.h"
#include "core/reference/add.h"
#include "core/reference/batch_norm.h"
#include "core/reference/concat.h"
#include "core/reference/conv.h"
#include "core/reference/dropout.h"
#include "core/reference/linear.h"
#include "core/reference/loss.h"
#include "core/reference/lrn.h"
#include "core/reference/pool.h"

namespace duplex {
namespace {

class ReferenceDevice : public Device {
 public:
  std::string name() const override { return "reference"; }
  std::string description() const override { return "plain loops, 1 thread"; }

  Buffer allocate(std::size_t bytes) override {
    constexpr std::size_t line = 64;
    const std::size_t lines = std::max<std::size_t>((bytes + line - 1) / line, 1);
    void* data = std::aligned_alloc(line, lines * line);
    if (data == nullptr) {
      throw Error("reference: no memory left for a tensor of " + std::to_string(bytes >> 20) +
                  " MiB; take a smaller batch");
    }
    return {data, bytes, [](void* pointer) { std::free(pointer); }};
  }

  void upload(Tensor& to, const float* from) override {
    std::copy(from, from + to.stored(), to.data);
  }
  void download(float* to, const Tensor& from) override {
    std::copy(from.data, from.data + from.stored(), to);
  }
  void convert(Tensor& to, const Tensor& from) override { upload(to, from.data); }
  void fill(Tensor& tensor, float value) override {
    std::fill(tensor.data, tensor.data + tensor.stored(), value);
  }
  bool finite(const std::vector<Tensor>& tensors) override {
    return std::all_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) {
      return std::all_of(tensor.data, tensor.data + tensor.stored(),
                         [](float value) { return std::isfinite(value); });
    });
  }
  void accumulate(Tensor& to, const Tensor& from) override {
    for (std::int64_t i = 0; i < to.stored(); ++i) to.data[i] += from.data[i];
  }
  void update(const OptimiserStep& step, Tensor& weights, const Tensor& gradient,
              std::vector<Tensor>& state) override {
    std::vector<float*> spans;
    for (const Tensor& span : state) spans.push_back(span.data);
    duplex::update(step, static_cast<std::size_t>(weights.stored()), weights.data, gradient.data,
                   spans.data());
  }
  void synchronize() override {}

  std::unique_ptr<Conv> conv(const ConvSpec& spec, const TensorDesc& x) override {
    return reference::make_conv(spec, x);
  }
  std::unique_ptr<Linear> linear(const LinearSpec& spec, const TensorDesc& x) override {
    return reference::make_linear(spec, x);
  }
  std::unique_ptr<Pool> pool(const PoolSpec& spec, const TensorDesc& x) override {
    return reference::make_pool(spec, x);
  }
  std::unique_ptr<Lrn> lrn(const LrnSpec& spec, const TensorDesc& x) override {
    return reference::make_lrn(spec, x);
  }
  std::unique_ptr<BatchNorm> batch_norm(const BatchNormSpec& spec, const TensorDesc& x) override {
    return reference::make_batch_norm(spec, x);
  }
  std::unique_ptr<Activation> activation(ActivationKind kind, const TensorDesc& x) override {
    return reference::make_activation(kind, x);
  }
  std::unique_ptr<Dropout> dropout(float rate, const TensorDesc& x) override {
    return reference::make_dropout(rate, x);
  }
  std::unique_ptr<Concat> concat(const std::vector<TensorDesc>& x) override {
    return reference::make_concat(x);
  }
  std::unique_ptr<Add> add(bool relu, const TensorDesc& a, const TensorDesc& b) override {
    return reference::make_add(relu, a, b);
  }
  std::unique_ptr<PadChannels> pad_channels(std::int64_t channels, const TensorDesc& x) override {
    return reference::make_pad_channels(channels, x);
  }
  std::unique_ptr<GradientSum> gradient_sum(const TensorDesc& y) override {
    return reference::make_gradient_sum(y);
  }
  std::unique_ptr<Loss> loss(const LossSpec& spec, const TensorDesc& x) override {
    return reference::make_loss(spec, x);
  }
};

}  // namespace

std::unique_ptr<Device> make_reference_device() {
  return std::make_unique<ReferenceDevice>();
}

}  // namespace duplex
