#include "core/onednn/operations/linear.h"

#include "core/onednn/compat.h"
#include "core/onednn/weighted.h"

namespace duplex::onednn {
namespace {

struct LinearPrimitives {
  using Forward = dnnl::inner_product_forward;
  using BackwardData = dnnl::inner_product_backward_data;
  using BackwardWeights = dnnl::inner_product_backward_weights;

  LinearPrimitives(ContextPtr shared, const LinearSpec& spec, const TensorDesc& x_desc)
      : context(std::move(shared)),
        x(memory_of(x_desc)),
        bias(spec.bias),
        relu(spec.relu),
        gradients(spec.gradients) {
    // The primitives work on vectors in row-major order, since oneDNN 2.6 has no brgemm for maps,
    // and where their channels are padded it writes past the end of the weights. Converting x costs
    // little beside reading the weights.
    const Shape weights = weights_shape(spec, x_desc.shape);
    const dnnl::memory::dims x_dims = {x_desc.shape.n(), weights[1]};
    const dnnl::memory::dims y_dims = {x_desc.shape.n(), weights[0]};
    x_wanted = plain_memory(x_dims);
    any = {x_wanted, any_memory(dims_of(weights)), plain_memory(y_dims)};
    if (bias) bias_memory = plain_memory({spec.outputs});
    attributes = context->attributes();
    forward_attributes = context->attributes();  // A copy of `attributes` would be the same object.
    if (relu) forward_attributes.set_post_ops(relu_after());
  }

  Forward::primitive_desc forward(const Layouts& l, const dnnl::primitive_attr& with) const {
    return describe<Forward>(context->engine(), with, dnnl::prop_kind::forward_training, l.x,
                             l.weights, bias_memory, l.y);
  }
  BackwardData::primitive_desc backward_data(const Layouts& l,
                                             const Forward::primitive_desc& hint) const {
    return describe_backward<BackwardData>(context->engine(), attributes, hint, l.x, l.weights,
                                           l.y);
  }
  BackwardWeights::primitive_desc backward_weights(const Layouts& l,
                                                   const Forward::primitive_desc& hint) const {
    return describe_backward<BackwardWeights>(context->engine(), attributes, hint, l.x, l.weights,
                                              bias_memory, l.y);
  }

  Forward::primitive_desc choose_forward() const {
    return choose({any},
                  [&](const Layouts& layouts) { return forward(layouts, forward_attributes); });
  }

  ContextPtr context;
  dnnl::memory::desc x, x_wanted;
  bool bias, relu;
  Gradients gradients;
  Layouts any;
  dnnl::memory::desc bias_memory;
  dnnl::primitive_attr attributes, forward_attributes;
};

}  // namespace

std::unique_ptr<Linear> make_linear(const ContextPtr& context, const LinearSpec& spec,
                                    const TensorDesc& x) {
  const Shape weights = weights_shape(spec, x.shape);
  const std::string what = "linear layer of " + x.shape.str() + " by " + weights.str();
  return translate(what, [&] {
    return std::make_unique<Weighted<Linear, LinearPrimitives>>(
        context, LinearPrimitives(context, spec, x), what, x, weights, output_shape(spec, x.shape));
  });
}

}  // namespace duplex::onednn
