// cuDNN: softmax, and convolutions through the backend interface, computed by the CPU's own device.
#include <cudnn.h>
#include <cudnn_backend.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/device.h"
#include "tests/stand_in/stand_in.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
};
struct cudnnTensorStruct {
  int samples = 0, channels = 0;
};

namespace {

using duplex::Tensor;
using duplex::TensorDesc;

/// Attributes as they were set; bytes of whatever type.
struct Described {
  cudnnBackendDescriptorType_t type{};
  std::map<cudnnBackendAttributeName_t, std::vector<char>> attributes;
  int engine = 0;  ///< Of an engine, and of its configuration.

  template <class Value>
  std::vector<Value> all(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return {};
    std::vector<Value> values(found->second.size() / sizeof(Value));
    std::memcpy(values.data(), found->second.data(), values.size() * sizeof(Value));
    return values;
  }
  template <class Value>
  Value one(cudnnBackendAttributeName_t name) const {
    return all<Value>(name).at(0);
  }
  const Described& part(cudnnBackendAttributeName_t name) const {
    return *static_cast<const Described*>(one<cudnnBackendDescriptor_t>(name));
  }
};

std::size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
      return 8;
    case CUDNN_TYPE_FLOAT:
      return sizeof(float);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return sizeof(void*);
    default:
      return sizeof(int);  // An enumeration.
  }
}

Described& described(cudnnBackendDescriptor_t descriptor) {
  return *static_cast<Described*>(descriptor);
}

// ---- Engines: what a convolution may be computed with, best first by what is said of them.

struct Engine {
  std::vector<cudnnBackendNumericalNote_t> notes;
  std::int64_t workspace = 0;
  bool runs = true;
};

const std::array<Engine, 5>& engines() {
  static const std::array<Engine, 5> all{{
      {{CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}},
      {{CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}},
      {{}, std::int64_t{1} << 40},  // Wants more workspace than anything has.
      {{}, 0, false},
      {{}, 4096},
  }};
  return all;
}

bool is_even(const Described& convolution) {
  return convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS) ==
         convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
}

struct Names {
  cudnnBackendAttributeName_t convolution, x, weights, y, alpha, beta;
};

Names names_of(cudnnBackendDescriptorType_t node) {
  if (node == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
    return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  if (node == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
    return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

std::vector<const Described*> nodes_of(const Described& graph) {
  std::vector<const Described*> nodes;
  for (auto* node : graph.all<cudnnBackendDescriptor_t>(CUDNN_ATTR_OPERATIONGRAPH_OPS))
    nodes.push_back(static_cast<const Described*>(node));
  return nodes;
}

// ---- Tensors in memory.

/// Extents and strides of a tensor, and the way from and to row-major float32.
class Lying {
 public:
  explicit Lying(const Described& tensor)
      : number(tensor.one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
        type_(tensor.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        extents_(tensor.all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides_(tensor.all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES)) {}

  duplex::Shape shape() const { return {extents_[0], extents_[1], extents_[2], extents_[3]}; }

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
      } else {  // To the nearest, among equals the even one.
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

/// What an engine that rounds does to its inputs: ten bits behind the point, as TF32 has.
void round_down(std::vector<float>& values) {
  for (float& value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    bits &= 0xFFFFE000U;
    std::memcpy(&value, &bits, sizeof value);
  }
}

// ---- The computing.

/// A tensor of a device of the CPU, with its memory.
class Held {
 public:
  Held(duplex::Device& device, const TensorDesc& desc)
      : device_(device),
        memory_(device.allocate(desc.bytes)),
        tensor{desc, static_cast<float*>(memory_.data())} {}
  Held(duplex::Device& device, const TensorDesc& desc, const std::vector<float>& values)
      : Held(device, desc) {
    device.upload(tensor, values.data());
  }
  std::vector<float> read() const {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape().elements()));
    device_.download(values.data(), tensor);
    return values;
  }

 private:
  duplex::Device& device_;
  duplex::Buffer memory_;

 public:
  Tensor tensor;
};

void run_graph(const std::vector<const Described*>& nodes, const Engine& engine,
               const std::map<std::int64_t, void*>& memory) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  static const std::unique_ptr<duplex::Device> device = duplex::make_device("cpu", 1);

  const Described& node = *nodes[0];
  const Names names = names_of(node.type);
  const Described& convolution = node.part(names.convolution);
  const Lying x(node.part(names.x)), weights(node.part(names.weights)), y(node.part(names.y));
  const auto strides = convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const auto padding = convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);

  duplex::ConvSpec spec;
  spec.filters = weights.shape().n();
  spec.groups = x.shape().c() / weights.shape().c();
  spec.window = {weights.shape().h(),
                 weights.shape().w(),
                 strides[0],
                 strides[1],
                 {padding[0], padding[1], padding[0], padding[1]}};
  spec.bias = false;
  const auto operation = device->conv(spec, duplex::plain_desc(x.shape()));
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

}  // namespace

// ---- What core/cudnn calls.

std::size_t cudnnGetVersion() {
  return CUDNN_VERSION;
}
const char* cudnnGetErrorString(cudnnStatus_t) {
  return "an error of the stand-in";
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* descriptor) {
  *descriptor = new cudnnTensorStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor, cudnnTensorFormat_t,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  if (type != CUDNN_DATA_FLOAT || h != 1 || w != 1) return CUDNN_STATUS_NOT_SUPPORTED;
  *descriptor = {n, c};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                  cudnnSoftmaxMode_t, const void*,
                                  const cudnnTensorDescriptor_t shape, const void* from,
                                  const void*, const cudnnTensorDescriptor_t, void* to) {
  if (algorithm != CUDNN_SOFTMAX_LOG) return CUDNN_STATUS_NOT_SUPPORTED;
  const auto samples = static_cast<std::size_t>(shape->samples);
  const auto channels = static_cast<std::size_t>(shape->channels);
  duplex::stand_in::enqueue_kernel(handle->stream, [=] {
    for (std::size_t n = 0; n < samples; ++n) {
      const float* x = static_cast<const float*>(from) + n * channels;
      float* y = static_cast<float*>(to) + n * channels;
      float most = -std::numeric_limits<float>::infinity();
      for (std::size_t c = 0; c < channels; ++c) most = std::max(most, x[c]);
      double sum = 0.0;
      for (std::size_t c = 0; c < channels; ++c) sum += std::exp(static_cast<double>(x[c] - most));
      for (std::size_t c = 0; c < channels; ++c)
        y[c] = x[c] - most - static_cast<float>(std::log(sum));
    }
  });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  auto made = std::make_unique<Described>();
  made->type = type;
  *descriptor = made.release();
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Described*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* values) {
  const auto* bytes = static_cast<const char*>(values);
  described(descriptor).attributes[name] = {
      bytes, bytes + static_cast<std::size_t>(count) * bytes_of(type)};
  return CUDNN_STATUS_SUCCESS;
}

/// Refuses what engines of the real one refuse as well.
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  const Described& it = described(descriptor);
  if (it.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) {
    const Described& node = *nodes_of(it.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)).at(0);
    if (!is_even(node.part(names_of(node.type).convolution))) return CUDNN_STATUS_NOT_SUPPORTED;
  }
  if (it.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    const Described& configuration = it.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (!engines().at(static_cast<std::size_t>(configuration.engine)).runs)
      return CUDNN_STATUS_NOT_SUPPORTED;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, std::int64_t room,
                                       std::int64_t* count, void* values) {
  const Described& it = described(descriptor);
  const auto parts = [&](std::int64_t i) -> Described& {
    return described(static_cast<cudnnBackendDescriptor_t*>(values)[i]);
  };
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      *count = static_cast<std::int64_t>(engines().size());
      for (std::int64_t i = 0; i < std::min(room, *count); ++i) {
        parts(i).engine = static_cast<int>(i);
        parts(i).attributes = it.attributes;
      }
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      *count = 1;
      parts(0).engine = it.engine;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
      const Engine& engine = engines().at(static_cast<std::size_t>(it.engine));
      *count = static_cast<std::int64_t>(engine.notes.size());
      std::copy(engine.notes.begin(), engine.notes.end(),
                static_cast<cudnnBackendNumericalNote_t*>(values));
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: {
      const Described& configuration = it.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      *static_cast<std::int64_t*>(values) =
          engines().at(static_cast<std::size_t>(configuration.engine)).workspace;
      return CUDNN_STATUS_SUCCESS;
    }
    default:
      return CUDNN_STATUS_NOT_SUPPORTED;
  }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  const Described& configuration = described(plan).part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Engine& engine = engines().at(static_cast<std::size_t>(configuration.engine));
  const auto nodes = nodes_of(configuration.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
  const auto numbers = described(pack).all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = described(pack).all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  auto* workspace = described(pack).one<char*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  std::map<std::int64_t, void*> memory;
  for (std::size_t i = 0; i < numbers.size(); ++i) memory[numbers[i]] = pointers[i];
  duplex::stand_in::enqueue_kernel(handle->stream, [=, &engine] {
    std::memset(workspace, 0xFF, static_cast<std::size_t>(engine.workspace));
    run_graph(nodes, engine, memory);
  });
  return CUDNN_STATUS_SUCCESS;
}
