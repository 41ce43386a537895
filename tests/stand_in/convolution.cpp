#include "tests/stand_in/convolution.h"

#include <cstring>
#include <memory>
#include <mutex>

#include "core/device.h"

namespace duplex::stand_in {
namespace {

/// A tensor's extents and strides. It converts from and to row-major float32.
class Lying {
 public:
  explicit Lying(const Described& tensor)
      : number(tensor.one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
        type_(tensor.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        extents_(tensor.all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides_(tensor.all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES)) {}

  Shape shape() const { return {extents_[0], extents_[1], extents_[2], extents_[3]}; }

  std::vector<float> gather(const void* memory) const {
    std::vector<float> values;
    values.reserve(static_cast<std::size_t>(shape().elements()));
    visit([&](std::int64_t at) {
      if (type_ == CUDNN_DATA_FLOAT) {
        values.push_back(static_cast<const float*>(memory)[at]);
      } else {
        const std::uint32_t bits = std::uint32_t{static_cast<const std::uint16_t*>(memory)[at]}
                                   << 16U;
        float value = 0.0F;
        std::memcpy(&value, &bits, sizeof value);
        values.push_back(value);
      }
    });
    return values;
  }

  void scatter(void* memory, const std::vector<float>& values) const {
    std::size_t next = 0;
    visit([&](std::int64_t at) {
      const float value = values[next++];
      if (type_ == CUDNN_DATA_FLOAT) {
        static_cast<float*>(memory)[at] = value;
      } else {  // It rounds to the nearest, among equals to the even one.
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        bits += 0x7FFFU + ((bits >> 16U) & 1U);
        static_cast<std::uint16_t*>(memory)[at] = static_cast<std::uint16_t>(bits >> 16U);
      }
    });
  }

  std::int64_t number;

 private:
  template <class Visit>
  void visit(const Visit& visit) const {
    for (std::int64_t n = 0; n < extents_[0]; ++n)
      for (std::int64_t c = 0; c < extents_[1]; ++c)
        for (std::int64_t h = 0; h < extents_[2]; ++h)
          for (std::int64_t w = 0; w < extents_[3]; ++w)
            visit(n * strides_[0] + c * strides_[1] + h * strides_[2] + w * strides_[3]);
  }

  cudnnDataType_t type_;
  std::vector<std::int64_t> extents_, strides_;
};

/// Cuts values off as an engine does that rounds its inputs: to ten bits behind the point, as TF32
/// has.
void round_down(std::vector<float>& values) {
  for (float& value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    bits &= 0xFFFFE000U;
    std::memcpy(&value, &bits, sizeof value);
  }
}

/// A tensor on a device of the CPU, with its memory.
class Held {
 public:
  Held(Device& device, const TensorDesc& desc)
      : device_(device),
        memory_(device.allocate(desc.bytes)),
        tensor{desc, static_cast<float*>(memory_.data())} {}
  Held(Device& device, const TensorDesc& desc, const std::vector<float>& values)
      : Held(device, desc) {
    device.upload(tensor, values.data());
  }
  std::vector<float> read() const {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape().elements()));
    device_.download(values.data(), tensor);
    return values;
  }

 private:
  Device& device_;
  Buffer memory_;

 public:
  Tensor tensor;
};

/// Returns the tensor that a graph computes.
Lying result_of(const std::vector<const Described*>& nodes) {
  const Described& node = *nodes[0];
  const Names names = names_of(node.type);
  if (node.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
    return Lying(node.part(names.x));
  if (node.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR)
    return Lying(node.part(names.weights));
  if (nodes.size() == 1) return Lying(node.part(names.y));
  return Lying(nodes.back()->part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
}

}  // namespace

const std::vector<Engine>& engines() {
  static const std::vector<Engine> all = [] {
    Engine rounds, differs, wants_too_much, cannot, compiled, one_too_many, wrong, slow;
    rounds.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS};
    differs.notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
    differs.computes = false;
    wants_too_much.workspace = std::int64_t{1} << 40;
    cannot.has_plan = false;
    compiled = cannot;
    compiled.compiled = true;
    one_too_many.compiled = true;
    one_too_many.computes = false;
    one_too_many.slowness = 1;  // It would be the first of the fastest.
    wrong.errs = true;
    wrong.slowness = 1;
    slow.workspace = 4096;
    slow.proposed = false;
    return std::vector{rounds,   differs,      wants_too_much, cannot, compiled,
                       compiled, one_too_many, wrong,          slow};
  }();
  return all;
}

Time time_of_graph(const std::vector<const Described*>& nodes, const Engine& engine) {
  const Names names = names_of(nodes[0]->type);
  const Shape weights = Lying(nodes[0]->part(names.weights)).shape();
  const Shape y = Lying(nodes[0]->part(names.y)).shape();
  return engine.slowness * time_of_kernel(y.elements() * weights.c() * weights.h() * weights.w());
}

void run_graph(const std::vector<const Described*>& nodes, const Engine& engine,
               const std::map<std::int64_t, void*>& memory) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  static const std::unique_ptr<Device> device = make_device("cpu", 1);

  const Described& node = *nodes[0];
  const Names names = names_of(node.type);
  const Described& convolution = node.part(names.convolution);
  const Lying x(node.part(names.x)), weights(node.part(names.weights)), y(node.part(names.y));
  if (engine.errs) {
    const Lying result = result_of(nodes);
    result.scatter(memory.at(result.number),
                   std::vector<float>(static_cast<std::size_t>(result.shape().elements()), 1.0F));
    return;
  }
  const auto strides = convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const auto padding = convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);

  ConvSpec spec;
  spec.filters = weights.shape().n();
  spec.groups = x.shape().c() / weights.shape().c();
  spec.window = {weights.shape().h(),
                 weights.shape().w(),
                 strides[0],
                 strides[1],
                 {padding[0], padding[1], padding[0], padding[1]}};
  spec.bias = false;
  const auto operation = device->conv(spec, plain_desc(x.shape()));
  const auto read = [&](const Lying& tensor) {
    auto values = tensor.gather(memory.at(tensor.number));
    if (!engine.notes.empty()) round_down(values);
    return values;
  };
  Tensor none;

  if (node.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) {
    Held dx(*device, operation->x);
    operation->backward_data(dx.tensor, Held(*device, operation->y, read(y)).tensor,
                             Held(*device, operation->weights, read(weights)).tensor);
    x.scatter(memory.at(x.number), dx.read());
    return;
  }
  if (node.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR) {
    Held dw(*device, operation->weights);
    operation->backward_weights(dw.tensor, none, Held(*device, operation->y, read(y)).tensor,
                                Held(*device, operation->x, read(x)).tensor);
    weights.scatter(memory.at(weights.number), dw.read());
    return;
  }

  Held result(*device, operation->y);
  operation->forward(result.tensor, Held(*device, operation->x, read(x)).tensor,
                     Held(*device, operation->weights, read(weights)).tensor, none);
  std::vector<float> values = result.read();
  std::unique_ptr<Lying> last = std::make_unique<Lying>(y);
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const auto mode = nodes[i]
                          ->part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
                          .one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    last = std::make_unique<Lying>(nodes[i]->part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    if (mode == CUDNN_POINTWISE_RELU_FWD) {
      for (float& value : values) value = value < 0.0F ? 0.0F : value;
      continue;
    }
    const Lying bias(nodes[i]->part(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
    const std::vector<float> terms = bias.gather(memory.at(bias.number));
    const auto map = static_cast<std::size_t>(y.shape().h() * y.shape().w());
    for (std::size_t k = 0; k < values.size(); ++k) values[k] += terms[k / map % terms.size()];
  }
  last->scatter(memory.at(last->number), values);
}

}  // namespace duplex::stand_in
