#include "tests/core/subjects.h"

namespace duplex::test {
namespace {

/// Conv and Linear have the same calls.
template <typename Operation>
Subject weighted(std::shared_ptr<Operation> operation, bool bias, bool relu) {
  Subject subject;
  subject.inputs = {{"x", operation->x}, {"weights", operation->weights}};
  if (bias) subject.inputs.push_back({"bias", operation->bias});
  subject.y = operation->y;
  subject.wants_masked_dy = relu;
  subject.forward = [=](Tensor& y, const std::vector<Tensor>& in) {
    operation->forward(y, in[0], in[1], bias ? in[2] : Tensor{});
  };
  subject.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy,
                         const std::vector<Tensor>& in, const Tensor&) {
    Tensor none;
    operation->backward_weights(gradients[1], bias ? gradients[2] : none, dy, in[0]);
    operation->backward_data(gradients[0], dy, in[1]);
  };
  return subject;
}

}  // namespace

SubjectMaker conv_subject(const ConvSpec& spec) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    return weighted(std::shared_ptr<Conv>(device.conv(spec, x.at(0))), spec.bias, spec.relu);
  };
}

SubjectMaker linear_subject(const LinearSpec& spec) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    return weighted(std::shared_ptr<Linear>(device.linear(spec, x.at(0))), spec.bias, spec.relu);
  };
}

SubjectMaker pool_subject(const PoolSpec& spec) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    const std::shared_ptr<Pool> pool = device.pool(spec, x.at(0));
    Subject subject;
    subject.inputs = {{"x", pool->x}};
    subject.y = pool->y;
    subject.forward = [=](Tensor& y, const std::vector<Tensor>& in) { pool->forward(y, in[0]); };
    subject.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy,
                           const std::vector<Tensor>&,
                           const Tensor&) { pool->backward(gradients[0], dy); };
    return subject;
  };
}

SubjectMaker lrn_subject(const LrnSpec& spec) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    const std::shared_ptr<Lrn> lrn = device.lrn(spec, x.at(0));
    Subject subject;
    subject.inputs = {{"x", lrn->x}};
    subject.y = lrn->y;
    subject.forward = [=](Tensor& y, const std::vector<Tensor>& in) { lrn->forward(y, in[0]); };
    subject.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy,
                           const std::vector<Tensor>& in,
                           const Tensor&) { lrn->backward(gradients[0], dy, in[0]); };
    return subject;
  };
}

SubjectMaker batch_norm_subject(const BatchNormSpec& spec) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    const std::shared_ptr<BatchNorm> norm = device.batch_norm(spec, x.at(0));
    const TensorDesc channels = plain_desc({x.at(0).shape.c()});
    const auto memory = std::make_shared<Memory>(device);
    const Values zeros(static_cast<std::size_t>(channels.shape.elements()), 0.0F);
    const Tensor mean = memory->holding(channels, zeros), var = memory->holding(channels, zeros);
    Subject subject;
    subject.inputs = {{"x", norm->x}, {"gamma", channels}, {"beta", channels}};
    subject.y = norm->y;
    subject.forward = [=](Tensor& y, const std::vector<Tensor>& in) {
      (void)memory;  // keeps the statistics alive
      Tensor running_mean = mean, running_var = var;
      norm->forward_training(y, running_mean, running_var, in[0], in[1], in[2]);
    };
    subject.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy,
                           const std::vector<Tensor>& in, const Tensor&) {
      norm->backward(gradients[0], gradients[1], gradients[2], dy, in[0], in[1]);
    };
    return subject;
  };
}

SubjectMaker activation_subject(ActivationKind kind) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    const std::shared_ptr<Activation> activation = device.activation(kind, x.at(0));
    Subject subject;
    subject.inputs = {{"x", activation->x}};
    subject.y = activation->y;
    subject.forward = [=](Tensor& y, const std::vector<Tensor>& in) {
      activation->forward(y, in[0]);
    };
    subject.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy,
                           const std::vector<Tensor>&,
                           const Tensor& y) { activation->backward(gradients[0], dy, y); };
    return subject;
  };
}

SubjectMaker dropout_subject(float rate, const DropoutDraw& draw) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    const std::shared_ptr<Dropout> dropout = device.dropout(rate, x.at(0));
    Subject subject;
    subject.inputs = {{"x", dropout->x}};
    subject.y = dropout->y;
    subject.forward = [=](Tensor& y, const std::vector<Tensor>& in) {
      dropout->forward(y, in[0], draw);
    };
    subject.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy,
                           const std::vector<Tensor>&,
                           const Tensor&) { dropout->backward(gradients[0], dy); };
    return subject;
  };
}

SubjectMaker concat_subject() {
  return [](Device& device, const std::vector<TensorDesc>& x) {
    const std::shared_ptr<Concat> concat = device.concat(x);
    Subject subject;
    for (const TensorDesc& part : concat->x) {
      subject.inputs.push_back({"x" + std::to_string(subject.inputs.size()), part});
    }
    subject.y = concat->y;
    subject.forward = [=](Tensor& y, const std::vector<Tensor>& in) { concat->forward(y, in); };
    subject.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy,
                           const std::vector<Tensor>&, const Tensor&) {
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        concat->backward(gradients[i], static_cast<int>(i), dy, nullptr);
      }
    };
    return subject;
  };
}

SubjectMaker add_subject(bool relu) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    const std::shared_ptr<Add> add = device.add(relu, x.at(0), x.at(1));
    const std::shared_ptr<GradientSum> sum = device.gradient_sum(add->y);
    const auto memory = std::make_shared<Memory>(device);
    const Tensor masked = memory->poisoned(add->y);
    Subject subject;
    subject.inputs = {{"a", x.at(0)}, {"b", x.at(1)}};
    subject.y = add->y;
    subject.forward = [=](Tensor& y, const std::vector<Tensor>& in) {
      add->forward(y, in[0], in[1]);
    };
    // As a network does it: GradientSum masks, and both inputs get the same.
    subject.backward = [=, &device](std::vector<Tensor>& gradients, const Tensor& dy,
                                    const std::vector<Tensor>&, const Tensor& y) {
      (void)memory;  // keeps `masked` alive
      Tensor gradient = masked;
      sum->run(gradient, {dy}, relu ? &y : nullptr);
      for (Tensor& input : gradients) device.convert(input, gradient);
    };
    return subject;
  };
}

SubjectMaker pad_channels_subject(std::int64_t channels) {
  return [=](Device& device, const std::vector<TensorDesc>& x) {
    const std::shared_ptr<PadChannels> pad = device.pad_channels(channels, x.at(0));
    Subject subject;
    subject.inputs = {{"x", pad->x}};
    subject.y = pad->y;
    subject.forward = [=](Tensor& y, const std::vector<Tensor>& in) { pad->forward(y, in[0]); };
    subject.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy,
                           const std::vector<Tensor>&,
                           const Tensor&) { pad->backward(gradients[0], dy); };
    return subject;
  };
}

}  // namespace duplex::test
