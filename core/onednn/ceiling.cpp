#include "core/onednn/ceiling.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/onednn/compat.h"
#include "core/onednn/context.h"
#include "core/onednn/layout.h"
#include "core/onednn/operations/conv.h"

namespace duplex {
namespace {

using dnnl::memory;
using Arguments = std::vector<std::pair<int, memory::desc>>;

/// Returns the seconds of the fastest call of a primitive, on buffers of its own that are filled
/// with small positive numbers.
double fastest(onednn::Context& context, double budget, const dnnl::primitive& primitive,
               const Arguments& arguments) {
  std::unordered_map<int, memory> bound;
  std::vector<Buffer> buffers;
  for (const auto& [argument, desc] : arguments) {
    if (desc.get_size() == 0) continue;
    buffers.push_back(onednn::allocate_aligned(desc.get_size()));
    std::fill_n(static_cast<float*>(buffers.back().data()), desc.get_size() / sizeof(float), 0.01F);
    bound.emplace(argument, memory(desc, context.engine(), buffers.back().data()));
  }
  const auto once = [&] {
    const std::int64_t begin = clock_ns();
    primitive.execute(context.stream(), bound);
    context.stream().wait();
    return seconds(clock_ns() - begin);
  };
  once();
  double best = once();
  const std::int64_t begin = clock_ns();
  while (seconds(clock_ns() - begin) < budget) best = std::min(best, once());
  return best;
}

template <class Description>
Arguments arguments_of(const Description& d, Arguments arguments) {
  arguments.emplace_back(DNNL_ARG_SCRATCHPAD, d.scratchpad_desc());
  return arguments;
}

template <class Forward, class BackwardData, class BackwardWeights>
ConvSeconds measure(onednn::Context& context, double budget,
                    const typename Forward::primitive_desc& forward,
                    const typename BackwardData::primitive_desc& data,
                    const typename BackwardWeights::primitive_desc& weights) {
  ConvSeconds result;
  result.forward = fastest(context, budget, Forward(forward),
                           arguments_of(forward, {{DNNL_ARG_SRC, forward.src_desc()},
                                                  {DNNL_ARG_WEIGHTS, forward.weights_desc()},
                                                  {DNNL_ARG_BIAS, forward.bias_desc()},
                                                  {DNNL_ARG_DST, forward.dst_desc()}}));
  result.backward_data = fastest(context, budget, BackwardData(data),
                                 arguments_of(data, {{DNNL_ARG_DIFF_SRC, data.diff_src_desc()},
                                                     {DNNL_ARG_WEIGHTS, data.weights_desc()},
                                                     {DNNL_ARG_DIFF_DST, data.diff_dst_desc()}}));
  result.backward_weights =
      fastest(context, budget, BackwardWeights(weights),
              arguments_of(weights, {{DNNL_ARG_SRC, weights.src_desc()},
                                     {DNNL_ARG_DIFF_WEIGHTS, weights.diff_weights_desc()},
                                     {DNNL_ARG_DIFF_BIAS, weights.diff_bias_desc()},
                                     {DNNL_ARG_DIFF_DST, weights.diff_dst_desc()}}));
  return result;
}

/// Returns the fastest, direction by direction. Where `a` is all 0, nothing has been measured yet.
ConvSeconds fastest_of(const ConvSeconds& a, const ConvSeconds& b) {
  if (a.forward == 0.0) return b;
  return {std::min(a.forward, b.forward), std::min(a.backward_data, b.backward_data),
          std::min(a.backward_weights, b.backward_weights)};
}

dnnl::primitive_attr with_relu(const onednn::Context& context, bool relu) {
  dnnl::primitive_attr attributes = context.attributes();
  if (relu) {
    dnnl::post_ops ops;
    onednn::append_relu(ops);
    attributes.set_post_ops(ops);
  }
  return attributes;
}

memory::desc bias_memory(bool bias, std::int64_t count) {
  return bias ? onednn::plain_memory({count}) : memory::desc();
}

}  // namespace

ConvSeconds measure_onednn_conv(const ConvSpec& spec, const Shape& shape, int threads,
                                double budget) {
  onednn::Context context(threads);
  context.enter();
  const Window& window = spec.window;
  memory::dims weight_dims{spec.filters, shape.c() / spec.groups, window.height, window.width};
  if (spec.groups > 1) {
    weight_dims.insert(weight_dims.begin(), spec.groups);
    weight_dims[1] /= spec.groups;
  }
  const memory::dims strides{window.stride_y, window.stride_x},
      before{window.padding.top, window.padding.left},
      after{window.padding.bottom, window.padding.right};
  const auto x = onednn::any_memory(onednn::dims_of(shape)), w = onednn::any_memory(weight_dims),
             y = onednn::any_memory({shape.n(), spec.filters, window.output_height(shape.h()),
                                     window.output_width(shape.w())}),
             b = bias_memory(spec.bias, spec.filters);
  std::vector<dnnl::algorithm> algorithms{dnnl::algorithm::convolution_direct};
  if (onednn::winograd_allowed(spec, shape)) {
    algorithms.push_back(dnnl::algorithm::convolution_winograd);
  }
  return onednn::translate("ceiling of a convolution " + shape.str(), [&] {
    ConvSeconds best;
    for (const dnnl::algorithm algorithm : algorithms) {
      const auto forward = onednn::describe<dnnl::convolution_forward>(
          context.engine(), with_relu(context, spec.relu), dnnl::prop_kind::forward_training,
          algorithm, x, w, b, y, strides, before, after);
      if (!forward) continue;
      const auto data = onednn::describe_backward<dnnl::convolution_backward_data>(
          context.engine(), context.attributes(), forward, algorithm, x, w, y, strides, before,
          after);
      const auto weights = onednn::describe_backward<dnnl::convolution_backward_weights>(
          context.engine(), context.attributes(), forward, algorithm, x, w, b, y, strides, before,
          after);
      if (!data || !weights) continue;
      best = fastest_of(best, measure<dnnl::convolution_forward, dnnl::convolution_backward_data,
                                      dnnl::convolution_backward_weights>(context, budget, forward,
                                                                          data, weights));
    }
    return best;
  });
}

ConvSeconds measure_onednn_linear(const LinearSpec& spec, const Shape& shape, int threads,
                                  double budget) {
  onednn::Context context(threads);
  context.enter();
  memory::dims weight_dims = onednn::dims_of(shape);
  weight_dims[0] = spec.outputs;
  const auto x = onednn::any_memory(onednn::dims_of(shape)), w = onednn::any_memory(weight_dims),
             y = onednn::any_memory({shape.n(), spec.outputs}),
             b = bias_memory(spec.bias, spec.outputs);
  return onednn::translate("ceiling of a linear layer " + shape.str(), [&] {
    const auto forward = onednn::describe<dnnl::inner_product_forward>(
        context.engine(), with_relu(context, spec.relu), dnnl::prop_kind::forward_training, x, w, b,
        y);
    const auto data = onednn::describe_backward<dnnl::inner_product_backward_data>(
        context.engine(), context.attributes(), forward, x, w, y);
    const auto weights = onednn::describe_backward<dnnl::inner_product_backward_weights>(
        context.engine(), context.attributes(), forward, x, w, b, y);
    return measure<dnnl::inner_product_forward, dnnl::inner_product_backward_data,
                   dnnl::inner_product_backward_weights>(context, budget, forward, data, weights);
  });
}

}  // namespace duplex
