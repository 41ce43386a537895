#include "tests/core/operations/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/core/operations/values.h"

namespace duplex::test {
namespace {

/// Returns df/dvalue by central differences of fourth order, from four points at one and two steps.
double derivative(const std::function<double()>& objective, float& value, double step) {
  const float at = value;
  const auto moved = [&](double by) {
    value = static_cast<float>(double{at} + by);
    return objective();
  };
  const double near = moved(step) - moved(-step);
  const double far = moved(2.0 * step) - moved(-2.0 * step);
  value = at;
  return (8.0 * near - far) / (12.0 * step);
}

}  // namespace

::testing::AssertionResult gradients_agree(const std::function<double()>& objective,
                                           const std::vector<Checked>& checked,
                                           const Tolerance& tolerance) {
  constexpr int listed = 8;
  auto result = ::testing::AssertionSuccess();
  for (const Checked& tensor : checked) {
    std::vector<double> derivatives;
    double squares = 0.0;
    for (float& value : *tensor.values) {
      derivatives.push_back(derivative(objective, value, tolerance.step));
      squares += derivatives.back() * derivatives.back();
    }
    const double rms = std::sqrt(squares / static_cast<double>(derivatives.size()));
    int failures = 0;
    for (std::size_t i = 0; i < derivatives.size(); ++i) {
      const double difference = std::fabs(double{tensor.gradient[i]} - derivatives[i]);
      // The comparison is written so that NaN fails.
      if (difference <= tolerance.derivative * (std::fabs(derivatives[i]) + rms)) continue;
      if (failures++ == 0 && result) result = ::testing::AssertionFailure();
      if (failures <= listed) {
        result << "\n  " << tensor.name << "[" << i << "]: gradient " << tensor.gradient[i]
               << ", derivative " << derivatives[i];
      }
    }
    if (failures > listed) result << "\n  and " << failures - listed << " more of " << tensor.name;
  }
  return result;
}

::testing::AssertionResult gradients_agree(Fixture& fixture, std::vector<Values> inputs,
                                           const Tolerance& tolerance, Fixture* before_relu) {
  const Shape& shape = fixture.op().y.shape;
  Values projection = random_values(shape, 11);
  if (before_relu != nullptr) {
    // The margin is two steps, times weights and inputs of about 1, times the factor by which a
    // normalisation scales up.
    const std::vector<bool> skipped = near_kink(*before_relu, inputs, 8.0 * tolerance.step);
    if (2 * std::count(skipped.begin(), skipped.end(), true) > shape.elements()) {
      return ::testing::AssertionFailure() << "most outputs are too close to ReLU's kink";
    }
    for (std::size_t i = 0; i < projection.size(); ++i) {
      if (skipped[i]) projection[i] = 0.0F;
    }
  }

  const Values y = fixture.forward(inputs);
  Values dy = projection;
  for (std::size_t i = 0; i < dy.size(); ++i) {
    if (fixture.op().wants_masked_dy && !(y[i] > 0.0F)) dy[i] = 0.0F;
  }
  std::vector<Values> gradients = fixture.backward(dy);

  std::vector<Checked> checked;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    checked.push_back({fixture.op().inputs[i].name, &inputs[i], std::move(gradients[i])});
  }
  const auto objective = [&] {
    const Values outputs = fixture.forward(inputs);
    double sum = 0.0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      sum += double{projection[i]} * double{outputs[i]};
    }
    return sum;
  };
  return gradients_agree(objective, checked, tolerance);
}

}  // namespace duplex::test
