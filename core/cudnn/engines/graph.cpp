#include "core/cudnn/engines/graph.h"

#include <array>
#include <utility>

namespace duplex::cudnn {
namespace {

std::array<std::int64_t, 4> strides_of(const View& view) {
  const std::int64_t c = view.c, h = view.h, w = view.w;
  if (view.order == Order::nchw) return {c * h * w, h * w, w, 1};
  return {h * w * c, 1, w * c, c};
}

Descriptor tensor(std::int64_t number, const View& view, bool has_memory = true) {
  Descriptor descriptor = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const std::array<std::int64_t, 4> extents{view.n, view.c, view.h, view.w};
  const std::array<std::int64_t, 4> strides = strides_of(view);
  const std::int64_t alignment = 16;
  set(descriptor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE,
      view.type == Type::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT);
  set(descriptor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, extents.data(), 4);
  set(descriptor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides.data(), 4);
  set(descriptor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, number);
  set(descriptor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment);
  set(descriptor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, !has_memory);
  finish(descriptor);
  return descriptor;
}

Descriptor convolution(const Window& window) {
  Descriptor descriptor = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const std::int64_t dimensions = 2;
  const std::array<std::int64_t, 2> dilations{1, 1}, strides{window.stride_y, window.stride_x},
      before{window.padding.top, window.padding.left},
      after{window.padding.bottom, window.padding.right};
  set(descriptor, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  set(descriptor, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
      CUDNN_CROSS_CORRELATION);
  set(descriptor, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, dimensions);
  set(descriptor, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, dilations.data(), 2);
  set(descriptor, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, strides.data(), 2);
  set(descriptor, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, before.data(), 2);
  set(descriptor, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, after.data(), 2);
  finish(descriptor);
  return descriptor;
}

/// cuDNN's names of a direction's node and of its attributes.
struct NodeNames {
  cudnnBackendDescriptorType_t node;
  cudnnBackendAttributeName_t convolution, x, weights, y, alpha, beta;
};

NodeNames names_of(Direction direction) {
  switch (direction) {
    case Direction::data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Direction::weights:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  }
}

/// Returns a node that computes `y` from `x`, and from `b` where there is one, element by element.
Descriptor pointwise(Descriptors& parts, cudnnPointwiseMode_t mode, const Descriptor& x,
                     const Descriptor* b, const Descriptor& y) {
  Descriptor what = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  set(what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  set(what, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  finish(what);
  Descriptor node = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  set(node, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
  set(node, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b != nullptr) set(node, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  set(node, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  finish(node);
  parts.push_back(std::move(what));
  return node;
}

}  // namespace

Descriptor describe(const Target& target, const ConvGraph& graph, Descriptors& parts) {
  const auto keep = [&](Descriptor descriptor) -> std::size_t {
    parts.push_back(std::move(descriptor));
    return parts.size() - 1;
  };
  const bool alone = !graph.bias && !graph.relu;
  const std::size_t x = keep(tensor(x_id, graph.x));
  const std::size_t weights = keep(tensor(weights_id, graph.weights));
  const std::size_t y = keep(tensor(y_id, graph.y));
  View inner = graph.y;
  inner.type = Type::float32;
  const std::size_t result = alone ? y : keep(tensor(inner_id, inner, false));
  const std::size_t conv = keep(convolution(graph.window));

  std::vector<cudnnBackendDescriptor_t> nodes;
  const auto add_node = [&](Descriptor node) {
    nodes.push_back(parts[keep(std::move(node))].get());
  };

  const NodeNames names = names_of(graph.direction);
  const float one = 1.0F, zero = 0.0F;
  Descriptor node = make(names.node);
  set(node, names.convolution, parts[conv]);
  set(node, names.x, parts[x]);
  set(node, names.weights, parts[weights]);
  set(node, names.y, parts[result]);
  set(node, names.alpha, CUDNN_TYPE_FLOAT, one);
  set(node, names.beta, CUDNN_TYPE_FLOAT, zero);
  finish(node);
  add_node(std::move(node));

  std::size_t last = result;
  if (graph.bias) {
    const std::size_t bias = keep(tensor(bias_id, graph.bias_view()));
    const std::size_t sum = graph.relu ? keep(tensor(inner_id + 1, inner, false)) : y;
    add_node(pointwise(parts, CUDNN_POINTWISE_ADD, parts[last], &parts[bias], parts[sum]));
    last = sum;
  }
  if (graph.relu)
    add_node(pointwise(parts, CUDNN_POINTWISE_RELU_FWD, parts[last], nullptr, parts[y]));

  Descriptor whole = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target.handle != nullptr)
    set(whole, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  set(whole, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, nodes.data(),
      static_cast<std::int64_t>(nodes.size()));
  finish(whole);
  return whole;
}

std::string ConvGraph::key() const {
  std::string text;
  const auto add = [&](std::int64_t value) { text += std::to_string(value) + ' '; };
  add(static_cast<int>(direction));
  for (const std::int64_t value :
       {window.height, window.width, window.stride_y, window.stride_x, window.padding.top,
        window.padding.left, window.padding.bottom, window.padding.right})
    add(value);
  for (const View& view : {x, weights, y}) {
    for (const std::uint32_t extent : {view.n, view.c, view.h, view.w}) add(extent);
    add(static_cast<int>(view.order));
    add(static_cast<int>(view.type));
  }
  add(bias ? 1 : 0);
  add(relu ? 1 : 0);
  return text;
}

std::string ConvGraph::text() const {
  const std::string of = direction == Direction::forward ? "result"
                         : direction == Direction::data  ? "gradient of the input"
                                                         : "gradient of the weights";
  const auto pair = [](std::int64_t a, std::int64_t b) {
    return std::to_string(a) + "x" + std::to_string(b);
  };
  std::string padding;
  for (const std::int64_t side :
       {window.padding.top, window.padding.left, window.padding.bottom, window.padding.right})
    padding += (padding.empty() ? "" : ", ") + std::to_string(side);
  return of + " of a convolution (" + pair(window.height, window.width) + ", stride " +
         pair(window.stride_y, window.stride_x) + ", padding " + padding + ")";
}

}  // namespace duplex::cudnn
