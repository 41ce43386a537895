// The gradient check compares backward with numerical derivatives.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tests/core/operations/fixture.h"

namespace duplex::test {

/// Values that an objective depends on, and the gradient by them that a backward pass gives.
struct Checked {
  std::string name;
  Values* values;
  Values gradient;
};

/// Compares each gradient with the central differences of `objective`, a function of the numbers
/// that the `values` hold at the moment. A failure lists index, gradient and derivative.
::testing::AssertionResult gradients_agree(const std::function<double()>& objective,
                                           const std::vector<Checked>& checked,
                                           const Tolerance& tolerance);

/// Checks the backward of an operation: the gradient of a random projection of its outputs (a sum
/// with fixed random factors) by each of its inputs. `before_relu` is the same operation without
/// its ReLU. Where its output is closer to the kink than a step may carry it, that output is left
/// out of the projection.
::testing::AssertionResult gradients_agree(Fixture& fixture, std::vector<Values> inputs,
                                           const Tolerance& tolerance,
                                           Fixture* before_relu = nullptr);

}  // namespace duplex::test
