#include "tools/memory/gpu_sizes.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/cudnn/layout.h"
#include "core/error.h"

namespace duplex::tools {
namespace {

using cudnn::desc_of;
using cudnn::framed_shape;
using cudnn::is_even;
using cudnn::linear_weights;
using cudnn::Order;
using cudnn::Type;
using cudnn::view_of;

[[noreturn]] void refuse() {
  throw Error("the sizes of a GPU's operations are known here, and there is no GPU to run them");
}

/// Sums the tensors that an operation stages in one call, as core/cudnn/staging.h does.
class Staging {
 public:
  void add(const TensorDesc& wanted, const TensorDesc& had) {
    constexpr std::size_t alignment = 256;
    if (!same_storage(wanted, had))
      bytes_ += (wanted.bytes + alignment - 1) / alignment * alignment;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

// Operations that have their descriptions, and cannot run.

template <class Operation>
class SizedWeighted final : public Operation {
 public:
  void forward(Tensor&, const Tensor&, const Tensor&, const Tensor&) override { refuse(); }
  void backward_data(Tensor&, const Tensor&, const Tensor&) override { refuse(); }
  void backward_weights(Tensor&, Tensor&, const Tensor&, const Tensor&) override { refuse(); }
};

/// An operation whose backward reads neither x nor y: pooling, padding with channels.
template <class Operation>
class SizedMap final : public Operation {
 public:
  void forward(Tensor&, const Tensor&) override { refuse(); }
  void backward(Tensor&, const Tensor&) override { refuse(); }
};

/// An operation whose backward reads x or y: LRN, activations.
template <class Operation>
class SizedReader final : public Operation {
 public:
  void forward(Tensor&, const Tensor&) override { refuse(); }
  void backward(Tensor&, const Tensor&, const Tensor&) override { refuse(); }
};

class SizedBatchNorm final : public BatchNorm {
 public:
  explicit SizedBatchNorm(bool relu) : relu_(relu) {}
  bool adds() const override { return !relu_; }
  void forward_training(Tensor&, Tensor&, Tensor&, const Tensor&, const Tensor&, const Tensor&,
                        const Addend&) override {
    refuse();
  }
  void forward_inference(Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                         const Tensor&, const Addend&) override {
    refuse();
  }
  void backward(Tensor&, Tensor&, Tensor&, const Tensor&, const Tensor&, const Tensor&) override {
    refuse();
  }

 private:
  bool relu_;
};

class SizedDropout final : public Dropout {
 public:
  void forward(Tensor&, const Tensor&, const DropoutDraw&) override { refuse(); }
  void backward(Tensor&, const Tensor&) override { refuse(); }
};

class SizedConcat final : public Concat {
 public:
  void forward(Tensor&, const std::vector<Tensor>&) override { refuse(); }
  void backward(Tensor&, int, const Tensor&, const Tensor*) override { refuse(); }
};

class SizedAdd final : public Add {
 public:
  void forward(Tensor&, const Tensor&, const Tensor&) override { refuse(); }
};

class SizedGradientSum final : public GradientSum {
 public:
  void run(Tensor&, const std::vector<Tensor>&, const Tensor*) override { refuse(); }
};

class SizedLoss final : public Loss {
 public:
  void forward(Tensor&, const Tensor&, const std::int32_t*) override { refuse(); }
  double value() override { refuse(); }
  void backward(Tensor&, const Tensor&, float) override { refuse(); }
};

}  // namespace

class GpuSizes::Sizes final : public Device {
 public:
  Sizes(Precision precision, bool channels_last)
      : precision_(precision),
        order_(channels_last ? Order::nhwc : Order::nchw),
        type_(precision == Precision::bf16 ? Type::bf16 : Type::float32) {}

  const GpuMemory& memory() const { return memory_; }

  std::string name() const override { return "cudnn"; }
  std::string description() const override {
    return std::string("a GPU, ") + name_of(precision_) +
           (order_ == Order::nhwc ? ", NHWC" : ", NCHW");
  }
  OperationMemory operation_memory() const override { return {memory_.kept, {memory_.staging}}; }

  Buffer allocate(std::size_t) override { refuse(); }
  void upload(Tensor&, const float*) override { refuse(); }
  void download(float*, const Tensor&) override { refuse(); }
  void convert(Tensor&, const Tensor&) override { refuse(); }
  void fill(Tensor&, float) override { refuse(); }
  bool finite(const std::vector<Tensor>&) override { refuse(); }
  void accumulate(Tensor&, const Tensor&) override { refuse(); }
  void update(const OptimiserStep&, Tensor&, const Tensor&, std::vector<Tensor>&) override {
    refuse();
  }
  std::shared_ptr<void> keep_rounded(const Tensor& weights) override {
    if (type_ == Type::bf16) memory_.rounded += weights.desc.bytes / 2;
    return nullptr;
  }
  bool choose_channels_last(bool last) override {
    order_ = last ? Order::nhwc : Order::nchw;
    return true;
  }
  void synchronize() override {}

  /// As core/cudnn/operations/conv.cpp has it where cuDNN has an engine for a fused bias, which
  /// needs the most.
  std::unique_ptr<Conv> conv(const ConvSpec& spec, const TensorDesc& x) override {
    auto made = std::make_unique<SizedWeighted<Conv>>();
    const Shape filters = weights_shape(spec, x.shape);
    made->x = x;
    made->weights = desc_of(filters, order_);
    if (spec.bias) made->bias = plain_desc({spec.filters});
    made->y = desc_of(output_shape(spec, x.shape), order_, type_);
    Staging staging;
    // Where no gradient of x is wanted, what is staged of it is kept, if it has the same frame in
    // both directions. Engines with a frame and without one may be chosen where padding differs.
    const bool even = is_even(spec.window.padding), keeps = spec.gradients == Gradients::weights;
    const TensorDesc read = desc_of(x.shape, order_, type_);
    const TensorDesc frame = desc_of(framed_shape(spec, x.shape), order_, type_);
    if (!keeps || !even) staging.add(read, x);
    if (!even) staging.add(frame, x);
    if (keeps && !same_storage(even ? read : frame, x)) memory_.kept += (even ? read : frame).bytes;
    // Gradients of weights are staged, and weights and biases are kept rounded.
    if (spec.gradients != Gradients::none)
      staging.add(desc_of(filters, order_, type_), made->weights);
    note(staging.bytes(), made->weights);
    return made;
  }
  std::unique_ptr<Linear> linear(const LinearSpec& spec, const TensorDesc& x) override {
    auto made = std::make_unique<SizedWeighted<Linear>>();
    made->x = x;
    made->y = desc_of(output_shape(spec, x.shape), Order::nchw, type_);
    made->weights = linear_weights(spec.outputs, x);
    if (spec.bias) made->bias = plain_desc({spec.outputs});
    Staging staging;
    staging.add(desc_of(x.shape, view_of(x).order, type_), x);
    note(staging.bytes(), made->weights);
    return made;
  }
  /// Max pooling keeps the place of each maximum.
  std::unique_ptr<Pool> pool(const PoolSpec& spec, const TensorDesc& x) override {
    auto made = std::make_unique<SizedMap<Pool>>();
    made->x = x;
    made->y = desc_of(output_shape(spec, x.shape), view_of(x).order, view_of(x).type);
    const std::int64_t places = spec.window.height * spec.window.width;
    const std::size_t place = places <= 1 << 8 ? 1 : places <= 1 << 16 ? 2 : 4;
    if (spec.kind == PoolKind::max)
      memory_.kept += static_cast<std::size_t>(made->y.shape.elements()) * place;
    return made;
  }
  std::unique_ptr<Lrn> lrn(const LrnSpec&, const TensorDesc& x) override {
    auto made = std::make_unique<SizedReader<Lrn>>();
    made->x = made->y = x;
    memory_.kept += plain_desc(x.shape).bytes;
    return made;
  }
  std::unique_ptr<BatchNorm> batch_norm(const BatchNormSpec& spec, const TensorDesc& x) override {
    auto made = std::make_unique<SizedBatchNorm>(spec.relu);
    made->x = made->y = x;
    memory_.kept += 4 * static_cast<std::size_t>(x.shape.c()) * sizeof(float);
    return made;
  }
  std::unique_ptr<Activation> activation(ActivationKind, const TensorDesc& x) override {
    auto made = std::make_unique<SizedReader<Activation>>();
    made->x = made->y = x;
    return made;
  }
  std::unique_ptr<Dropout> dropout(float, const TensorDesc& x) override {
    auto made = std::make_unique<SizedDropout>();
    made->x = made->y = x;
    return made;
  }
  std::unique_ptr<Concat> concat(const std::vector<TensorDesc>& x) override {
    auto made = std::make_unique<SizedConcat>();
    std::vector<Shape> shapes;
    for (const TensorDesc& each : x) shapes.push_back(each.shape);
    made->x = x;
    made->y = plain_desc(concat_shape(shapes));
    const auto laid_out =
        std::find_if(x.begin(), x.end(), [](const TensorDesc& each) { return !each.plain(); });
    if (laid_out != x.end())
      made->y = desc_of(made->y.shape, view_of(*laid_out).order, view_of(*laid_out).type);
    return made;
  }
  std::unique_ptr<Add> add(bool, const TensorDesc& a, const TensorDesc&) override {
    auto made = std::make_unique<SizedAdd>();
    made->x = made->y = a;
    return made;
  }
  std::unique_ptr<PadChannels> pad_channels(std::int64_t channels, const TensorDesc& x) override {
    auto made = std::make_unique<SizedMap<PadChannels>>();
    made->x = x;
    made->y = desc_of(pad_channels_shape(channels, x.shape), view_of(x).order, view_of(x).type);
    return made;
  }
  std::unique_ptr<GradientSum> gradient_sum(const TensorDesc&) override {
    return std::make_unique<SizedGradientSum>();
  }
  /// A loss keeps each sample's loss and label, and that of a softmax its logarithms.
  std::unique_ptr<Loss> loss(const LossSpec& spec, const TensorDesc& x) override {
    auto made = std::make_unique<SizedLoss>();
    made->x = x;
    made->y = plain_desc(x.shape);
    memory_.kept += static_cast<std::size_t>(x.shape.n()) * (sizeof(float) + sizeof(std::int32_t)) +
                    (spec.kind == LossKind::softmax_cross_entropy ? made->y.bytes : 0);
    if (!x.plain()) memory_.staging = std::max(memory_.staging, made->y.bytes);
    return made;
  }

 private:
  void note(std::size_t staged, const TensorDesc& weights) {
    memory_.staging = std::max(memory_.staging, staged);
    if (!weights.plain()) memory_.copies = std::max(memory_.copies, cudnn::piece_bytes(weights));
  }

  Precision precision_;
  Order order_;
  Type type_;
  GpuMemory memory_;
};

GpuSizes::GpuSizes(Precision precision, bool channels_last)
    : sizes_(std::make_unique<Sizes>(precision, channels_last)) {}

GpuSizes::~GpuSizes() = default;

Device& GpuSizes::device() {
  return *sizes_;
}

const GpuMemory& GpuSizes::memory() const {
  return sizes_->memory();
}

std::size_t GpuSizes::workspace_limit(std::size_t gpu_bytes) {
  return cudnn::workspace_limit(gpu_bytes);
}

}  // namespace duplex::tools
