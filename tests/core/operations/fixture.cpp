#include "tests/core/operations/fixture.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "tests/core/operations/values.h"

namespace duplex::test {
namespace {

/// A convolution of four channels that gives an activation, with memory for that and its gradient.
struct Front {
  std::shared_ptr<Conv> conv;
  std::shared_ptr<Memory> memory;
  Tensor y, dy;

  Front(Device& device, const Shape& shape) : memory(std::make_shared<Memory>(device)) {
    ConvSpec spec;
    spec.filters = shape.c();
    spec.bias = false;
    spec.window = {3, 3, 1, 1, {1, 1, 1, 1}};
    conv = device.conv(spec, plain_desc({shape.n(), 4, shape.h(), shape.w()}));
    y = memory->poisoned(conv->y);
    dy = memory->poisoned(conv->y);
  }
};

std::vector<TensorDesc> descriptions(const std::vector<Shape>& shapes,
                                     const std::function<TensorDesc(const Shape&)>& describe) {
  std::vector<TensorDesc> descs;
  for (const Shape& shape : shapes) descs.push_back(describe(shape));
  return descs;
}

double norm(const Values& values) {
  double squares = 0.0;
  for (float value : values) squares += double{value} * double{value};
  return std::sqrt(squares);
}

}  // namespace

Fixture::Fixture(Device& device, OpUnderTest op)
    : device_(device), memory_(device), op_(std::move(op)) {
  for (const OpUnderTest::Input& input : op_.inputs) {
    inputs_.push_back(memory_.poisoned(input.desc));
    gradients_.push_back(memory_.poisoned(input.desc));
  }
  y_ = memory_.poisoned(op_.y);
  dy_ = memory_.poisoned(op_.y);
}

double Fixture::rounding() const {
  const bool rounds = device_.description().find("bf16") != std::string::npos;
  return rounds ? bf16_tolerance : 0.0;
}

Values Fixture::forward(const std::vector<Values>& inputs) {
  held_.resize(inputs_.size());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs[i] == held_[i]) continue;
    device_.upload(inputs_[i], inputs[i].data());
    held_[i] = inputs[i];
  }
  memory_.poison(y_);
  op_.forward(y_, inputs_);
  return memory_.read(y_);
}

std::vector<Values> Fixture::backward(const Values& dy) {
  device_.upload(dy_, dy.data());
  for (Tensor& gradient : gradients_) memory_.poison(gradient);
  op_.backward(gradients_, dy_, inputs_, y_);
  std::vector<Values> gradients;
  for (const Tensor& gradient : gradients_) gradients.push_back(memory_.read(gradient));
  return gradients;
}

OpUnderTest on_plain(Device& device, const std::vector<Shape>& x, const OpMaker& make) {
  return make(device, descriptions(x, plain_desc));
}

OpUnderTest on_convolved(Device& device, const std::vector<Shape>& x, const OpMaker& make) {
  return make(device,
              descriptions(x, [&](const Shape& shape) { return convolved_desc(device, shape); }));
}

OpUnderTest after_conv(Device& device, const std::vector<Shape>& x, const OpMaker& make) {
  std::vector<Front> fronts;
  std::vector<TensorDesc> between;
  OpUnderTest chain;
  for (const Shape& shape : x) {
    fronts.emplace_back(device, shape);
    const Conv& conv = *fronts.back().conv;
    between.push_back(conv.y);
    chain.inputs.push_back({"front x", conv.x});
    chain.inputs.push_back({"front weights", conv.weights});
  }
  const OpUnderTest last = make(device, between);
  const std::size_t activations = fronts.size();
  chain.inputs.insert(chain.inputs.end(),
                      last.inputs.begin() + static_cast<std::ptrdiff_t>(activations),
                      last.inputs.end());
  chain.y = last.y;
  chain.wants_masked_dy = last.wants_masked_dy;

  // Returns the last operation's own inputs: what the fronts gave, then its parameters.
  const auto inputs_of_last = [fronts, activations](const std::vector<Tensor>& inputs) {
    std::vector<Tensor> own;
    for (const Front& front : fronts) own.push_back(front.y);
    own.insert(own.end(), inputs.begin() + static_cast<std::ptrdiff_t>(2 * activations),
               inputs.end());
    return own;
  };
  chain.forward = [=](Tensor& y, const std::vector<Tensor>& inputs) {
    for (std::size_t i = 0; i < activations; ++i) {
      Tensor front_y = fronts[i].y;
      fronts[i].memory->poison(front_y);
      fronts[i].conv->forward(front_y, inputs[2 * i], inputs[2 * i + 1], Tensor{});
    }
    last.forward(y, inputs_of_last(inputs));
  };
  chain.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy,
                       const std::vector<Tensor>& inputs, const Tensor& y) {
    std::vector<Tensor> own;
    for (const Front& front : fronts) own.push_back(front.dy);
    own.insert(own.end(), gradients.begin() + static_cast<std::ptrdiff_t>(2 * activations),
               gradients.end());
    for (std::size_t i = 0; i < activations; ++i) fronts[i].memory->poison(own[i]);
    last.backward(own, dy, inputs_of_last(inputs), y);
    for (std::size_t i = 0; i < activations; ++i) {
      Tensor no_bias;
      fronts[i].conv->backward_data(gradients[2 * i], own[i], inputs[2 * i + 1]);
      fronts[i].conv->backward_weights(gradients[2 * i + 1], no_bias, own[i], inputs[2 * i]);
    }
  };
  return chain;
}

std::vector<Values> random_inputs(const OpUnderTest& op, std::uint64_t seed) {
  std::vector<Values> values;
  for (const OpUnderTest::Input& input : op.inputs) {
    values.push_back(random_values(input.desc.shape, seed + values.size()));
  }
  return values;
}

std::vector<Values> exact_inputs(const OpUnderTest& op, std::uint64_t seed) {
  std::vector<Values> values;
  for (const OpUnderTest::Input& input : op.inputs) {
    values.push_back(exact_values(input.desc.shape, seed + values.size()));
  }
  return values;
}

double relative_error(const Values& actual, const Values& expected) {
  Values difference(expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) difference[i] = actual[i] - expected[i];
  const double scale = norm(expected);
  return scale > 0.0 ? norm(difference) / scale : norm(difference);
}

std::vector<bool> near_kink(Fixture& before_relu, const std::vector<Values>& inputs,
                            double margin) {
  std::vector<bool> near;
  for (float value : before_relu.forward(inputs)) near.push_back(std::fabs(value) < margin);
  return near;
}

::testing::AssertionResult same_results(Fixture& actual, Fixture& expected,
                                        const std::vector<Values>& inputs,
                                        const Tolerance& tolerance,
                                        const std::vector<bool>& in_doubt) {
  const Values y = expected.forward(inputs), actual_y = actual.forward(inputs);
  Values dy = random_values(expected.op().y.shape, 7);
  for (std::size_t i = 0; i < dy.size(); ++i) {
    if (expected.op().wants_masked_dy && !(y[i] > 0.0F)) dy[i] = 0.0F;
    if (!in_doubt.empty() && in_doubt[i]) dy[i] = 0.0F;
  }
  const std::vector<Values> gradients = expected.backward(dy),
                            actual_gradients = actual.backward(dy);

  auto result = ::testing::AssertionSuccess();
  const auto compare = [&](const std::string& name, const Values& got, const Values& want,
                           double allowed) {
    const double error = relative_error(got, want);
    if (error <= allowed) return;  // NaN fails this comparison.
    std::size_t worst = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (!(std::fabs(got[i] - want[i]) <= std::fabs(got[worst] - want[worst]))) worst = i;
    }
    if (result) result = ::testing::AssertionFailure();
    result << "\n  " << name << ": relative error " << error << ", allowed " << allowed
           << "; worst at [" << worst << "]: " << got[worst] << ", expected " << want[worst];
  };
  const double rounding = actual.rounding();
  compare("y", actual_y, y, std::max(tolerance.forward, rounding));
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    compare("gradient of " + expected.op().inputs[i].name, actual_gradients[i], gradients[i],
            std::max(tolerance.backward, rounding));
  }
  return result;
}

}  // namespace duplex::test
