// The numerical gradient check.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tests/core/subject.h"

namespace duplex::test {

/// Values that an objective depends on, and what a backward pass says is its gradient by them.
struct Checked {
  std::string name;
  Values* values;
  Values gradient;
};

/// Compares each gradient with the central differences of `objective`, a function of what the
/// `values` hold at the moment. A failure lists index, gradient and derivative.
::testing::AssertionResult gradients_agree(const std::function<double()>& objective,
                                           const std::vector<Checked>& checked,
                                           const Tolerance& tolerance);

/// Checks a subject's backward: the gradient of a random projection of its outputs (a sum with
/// fixed random factors) by each of its inputs. Where `before_relu`, the same subject without its
/// ReLU, is closer to the kink than a step may carry it, the output is left out of the projection.
::testing::AssertionResult gradients_agree(Rig& rig, std::vector<Values> inputs,
                                           const Tolerance& tolerance, Rig* before_relu = nullptr);

}  // namespace duplex::test
