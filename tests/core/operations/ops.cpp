#include "tests/core/operations/ops.h"

namespace duplex::test {
namespace {

/// Conv and Linear have the same calls.
template <typename Operation>
OpUnderTest weighted(std::shared_ptr<Operation> operation, bool bias, bool relu) {
  OpUnderTest op;
  op.inputs = {{"x", operation->x}, {"weights", operation->weights}};
  if (bias) op.inputs.push_back({"bias", operation->bias});
  op.y = operation->y;
  op.wants_masked_dy = relu;
  op.forward = [=](Tensor& y, const std::vector<Tensor>& in) {
    operation->forward(y, in[0], in[1], bias ? in[2] : Tensor{});
  };
  op.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy, const std::vector<Tensor>& in,
                    const Tensor&) {
    Tensor none;
    operation->backward_weights(gradients[1], bias ? gradients[2] : none, dy, in[0]);
    operation->backward_data(gradients[0], dy, in[1]);
  };
  return op;
}

}  // namespace

OpMaker conv_op(const ConvSpec& spec) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    return weighted(std::shared_ptr<Conv>(device.conv(spec, x.at(0))), spec.bias, spec.relu);
  };
}

OpMaker linear_op(const LinearSpec& spec) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    return weighted(std::shared_ptr<Linear>(device.linear(spec, x.at(0))), spec.bias, spec.relu);
  };
}

OpMaker pool_op(const PoolSpec& spec) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    const std::shared_ptr<Pool> pool = device.pool(spec, x.at(0));
    OpUnderTest op;
    op.inputs = {{"x", pool->x}};
    op.y = pool->y;
    op.forward = [=](Tensor& y, const std::vector<Tensor>& in) { pool->forward(y, in[0]); };
    op.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy, const std::vector<Tensor>&,
                      const Tensor&) { pool->backward(gradients[0], dy); };
    return op;
  };
}

OpMaker lrn_op(const LrnSpec& spec) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    const std::shared_ptr<Lrn> lrn = device.lrn(spec, x.at(0));
    OpUnderTest op;
    op.inputs = {{"x", lrn->x}};
    op.y = lrn->y;
    op.forward = [=](Tensor& y, const std::vector<Tensor>& in) { lrn->forward(y, in[0]); };
    op.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy,
                      const std::vector<Tensor>& in,
                      const Tensor&) { lrn->backward(gradients[0], dy, in[0]); };
    return op;
  };
}

OpMaker batch_norm_op(const BatchNormSpec& spec) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    const std::shared_ptr<BatchNorm> norm = device.batch_norm(spec, x.at(0));
    const TensorDesc channels = plain_desc({x.at(0).shape.c()});
    const auto memory = std::make_shared<Memory>(device);
    const Values zeros(static_cast<std::size_t>(channels.shape.elements()), 0.0F);
    const Tensor mean = memory->holding(channels, zeros), var = memory->holding(channels, zeros);
    OpUnderTest op;
    op.inputs = {{"x", norm->x}, {"gamma", channels}, {"beta", channels}};
    op.y = norm->y;
    op.forward = [=](Tensor& y, const std::vector<Tensor>& in) {
      (void)memory;  // keeps the statistics alive
      Tensor running_mean = mean, running_var = var;
      norm->forward_training(y, running_mean, running_var, in[0], in[1], in[2]);
    };
    op.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy,
                      const std::vector<Tensor>& in, const Tensor&) {
      norm->backward(gradients[0], gradients[1], gradients[2], dy, in[0], in[1]);
    };
    return op;
  };
}

OpMaker activation_op(ActivationKind kind) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    const std::shared_ptr<Activation> activation = device.activation(kind, x.at(0));
    OpUnderTest op;
    op.inputs = {{"x", activation->x}};
    op.y = activation->y;
    op.forward = [=](Tensor& y, const std::vector<Tensor>& in) { activation->forward(y, in[0]); };
    op.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy, const std::vector<Tensor>&,
                      const Tensor& y) { activation->backward(gradients[0], dy, y); };
    return op;
  };
}

OpMaker dropout_op(float rate, const DropoutDraw& draw) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    const std::shared_ptr<Dropout> dropout = device.dropout(rate, x.at(0));
    OpUnderTest op;
    op.inputs = {{"x", dropout->x}};
    op.y = dropout->y;
    op.forward = [=](Tensor& y, const std::vector<Tensor>& in) {
      dropout->forward(y, in[0], draw);
    };
    op.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy, const std::vector<Tensor>&,
                      const Tensor&) { dropout->backward(gradients[0], dy); };
    return op;
  };
}

OpMaker concat_op() {
  return [](Device& device, const std::vector<TensorDesc>& x) {
    const std::shared_ptr<Concat> concat = device.concat(x);
    OpUnderTest op;
    for (const TensorDesc& part : concat->x) {
      op.inputs.push_back({"x" + std::to_string(op.inputs.size()), part});
    }
    op.y = concat->y;
    op.forward = [=](Tensor& y, const std::vector<Tensor>& in) { concat->forward(y, in); };
    op.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy, const std::vector<Tensor>&,
                      const Tensor&) {
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        concat->backward(gradients[i], static_cast<int>(i), dy, nullptr);
      }
    };
    return op;
  };
}

OpMaker add_op(bool relu) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    const std::shared_ptr<Add> add = device.add(relu, x.at(0), x.at(1));
    const std::shared_ptr<GradientSum> sum = device.gradient_sum(add->y);
    const auto memory = std::make_shared<Memory>(device);
    const Tensor masked = memory->poisoned(add->y);
    OpUnderTest op;
    op.inputs = {{"a", x.at(0)}, {"b", x.at(1)}};
    op.y = add->y;
    op.forward = [=](Tensor& y, const std::vector<Tensor>& in) { add->forward(y, in[0], in[1]); };
    // This does what a network does: GradientSum masks, and both inputs get the same gradient.
    op.backward = [=, &device](std::vector<Tensor>& gradients, const Tensor& dy,
                               const std::vector<Tensor>&, const Tensor& y) {
      (void)memory;  // keeps `masked` alive
      Tensor gradient = masked;
      sum->run(gradient, {dy}, relu ? &y : nullptr);
      for (Tensor& input : gradients) device.convert(input, gradient);
    };
    return op;
  };
}

OpMaker pad_channels_op(std::int64_t channels) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    const std::shared_ptr<PadChannels> pad = device.pad_channels(channels, x.at(0));
    OpUnderTest op;
    op.inputs = {{"x", pad->x}};
    op.y = pad->y;
    op.forward = [=](Tensor& y, const std::vector<Tensor>& in) { pad->forward(y, in[0]); };
    op.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy, const std::vector<Tensor>&,
                      const Tensor&) { pad->backward(gradients[0], dy); };
    return op;
  };
}

}  // namespace duplex::test
