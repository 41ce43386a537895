#include "core/onednn/operations/conv.h"

#include <algorithm>

#include "core/onednn/compat.h"
#include "core/onednn/weighted.h"

namespace duplex::onednn {
namespace {

using Dims = dnnl::memory::dims;

/// Returns the description of Winograd's algorithm if that is wanted and there, else of the direct
/// one.
template <class Describe>
auto first_of(bool winograd, const Describe& describe) {
  if (winograd) {
    if (auto description = describe(dnnl::algorithm::convolution_winograd)) return description;
  }
  return describe(dnnl::algorithm::convolution_direct);
}

struct ConvPrimitives {
  using Forward = dnnl::convolution_forward;
  using BackwardData = dnnl::convolution_backward_data;
  using BackwardWeights = dnnl::convolution_backward_weights;

  ConvPrimitives(ContextPtr shared, const ConvSpec& spec, const TensorDesc& x_desc)
      : context(std::move(shared)),
        x(memory_of(x_desc)),
        x_wanted(x),
        bias(spec.bias),
        relu(spec.relu),
        gradients(spec.gradients) {
    const Shape weights = weights_shape(spec, x_desc.shape);
    const Window& window = spec.window;
    strides = {window.stride_y, window.stride_x};
    before = {window.padding.top, window.padding.left};
    after = {window.padding.bottom, window.padding.right};
    y_dims = dims_of(output_shape(spec, x_desc.shape));
    Dims weights_dims = dims_of(weights);
    if (spec.groups > 1) {
      weights_dims.insert(weights_dims.begin(), spec.groups);
      weights_dims[1] /= spec.groups;
    }
    consider_winograd(spec, x_desc.shape, output_shape(spec, x_desc.shape));
    any = {any_memory(dims_of(x_desc.shape)), any_memory(weights_dims), any_memory(y_dims)};
    // The description is empty where the spec has no bias.
    if (bias) bias_memory = plain_memory({spec.filters});
    attributes = context->attributes();
    forward_attributes = context->attributes();  // A copy of `attributes` would be the same object.
    if (relu) forward_attributes.set_post_ops(relu_after());
  }

  Forward::primitive_desc forward(const Layouts& l, const dnnl::primitive_attr& with) const {
    return first_of(winograd, [&](dnnl::algorithm algorithm) {
      return describe<Forward>(context->engine(), with, dnnl::prop_kind::forward_training,
                               algorithm, l.x, l.weights, bias_memory, l.y, strides, before, after);
    });
  }
  BackwardData::primitive_desc backward_data(const Layouts& l,
                                             const Forward::primitive_desc& hint) const {
    return first_of(winograd, [&](dnnl::algorithm algorithm) {
      return describe_backward<BackwardData>(context->engine(), attributes, hint, algorithm, l.x,
                                             l.weights, l.y, strides, before, after);
    });
  }
  BackwardWeights::primitive_desc backward_weights(const Layouts& l,
                                                   const Forward::primitive_desc& hint) const {
    return first_of(winograd_for_weights, [&](dnnl::algorithm algorithm) {
      return describe_backward<BackwardWeights>(context->engine(), attributes, hint, algorithm, l.x,
                                                l.weights, bias_memory, l.y, strides, before,
                                                after);
    });
  }

  /// Winograd's F(4x4, 3x3) takes a quarter of the multiplications and is up to 2.6 times as fast,
  /// with errors of about 1e-6 of the greatest result (1e-7 directly). oneDNN's own choice between
  /// the two never takes it on few cores. By our measurements of 28 shapes at batch 1 to 16 it pays
  /// where the matrix products over tiles are large enough.
  void consider_winograd(const ConvSpec& spec, const Shape& in, const Shape& out) {
    if (!winograd_allowed(spec, in)) return;
    constexpr std::int64_t tile = 4;
    const std::int64_t tiles =
        out.n() * ((out.h() + tile - 1) / tile) * ((out.w() + tile - 1) / tile);
    winograd = tiles > 64 && std::min(in.c(), out.c()) >= 32;
    winograd_for_weights = tiles >= 32 && in.c() * out.c() >= 1024 && in.c() >= 16;
  }

  Forward::primitive_desc choose_forward() const {
    const auto describe_forward = [&](const Layouts& layouts) {
      return forward(layouts, forward_attributes);
    };
    auto description = choose({{x, any.weights, any.y}, any}, describe_forward);
    // Our own kernels must be able to read y.
    if (find_channel_blocks(description.dst_desc())) return description;
    const dnnl::memory::desc y = plain_memory(y_dims);
    return choose({{x, any.weights, y}, {any.x, any.weights, y}}, describe_forward);
  }

  ContextPtr context;
  dnnl::memory::desc x, x_wanted;
  bool bias, relu;
  Gradients gradients;
  bool winograd = false, winograd_for_weights = false;
  Layouts any;
  dnnl::memory::desc bias_memory;
  Dims y_dims, strides, before, after;
  dnnl::primitive_attr attributes, forward_attributes;
};

}  // namespace

bool winograd_allowed(const ConvSpec& spec, const Shape& in) {
  const Window& window = spec.window;
  return window.height == 3 && window.width == 3 && window.stride_y == 1 && window.stride_x == 1 &&
         spec.groups == 1 && in.c() % 16 == 0 && spec.filters % 16 == 0;
}

std::unique_ptr<Conv> make_conv(const ContextPtr& context, const ConvSpec& spec,
                                const TensorDesc& x) {
  const Shape weights = weights_shape(spec, x.shape);
  const std::string what = "convolution of " + x.shape.str() + " by " + weights.str();
  return translate(what, [&] {
    return std::make_unique<Weighted<Conv, ConvPrimitives>>(
        context, ConvPrimitives(context, spec, x), what, x, weights, output_shape(spec, x.shape));
  });
}

}  // namespace duplex::onednn
