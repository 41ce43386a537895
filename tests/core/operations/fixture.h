// An operation as the tests see it takes tensors, gives one tensor, and has a gradient for each
// tensor that it takes. A test that is written against this checks every operation.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tests/core/operations/backends.h"
#include "tests/core/operations/tolerances.h"

namespace duplex::test {

using Values = std::vector<float>;

struct OpUnderTest {
  struct Input {
    std::string name;
    TensorDesc desc;
  };

  std::vector<Input> inputs;  ///< Activations first, then parameters.
  TensorDesc y;
  bool wants_masked_dy = false;  ///< backward takes dy * [y > 0].
  std::function<void(Tensor& y, const std::vector<Tensor>& inputs)> forward;
  /// Computes one gradient for each input, for the last forward.
  std::function<void(std::vector<Tensor>& gradients, const Tensor& dy,
                     const std::vector<Tensor>& inputs, const Tensor& y)>
      backward;
};

/// Makes an operation on activations with these descriptions.
using OpMaker = std::function<OpUnderTest(Device&, const std::vector<TensorDesc>& x)>;

/// An operation with memory for all that it reads and writes. Values go in and out in logical
/// order.
class Fixture {
 public:
  Fixture(Device& device, OpUnderTest op);

  const OpUnderTest& op() const { return op_; }
  /// Returns how far off the results may be because of the type that the device stores activations
  /// in; 0 for float32.
  double rounding() const;
  Values forward(const std::vector<Values>& inputs);
  /// Returns the gradients for the last forward.
  std::vector<Values> backward(const Values& dy);

 private:
  Device& device_;
  Memory memory_;
  OpUnderTest op_;
  std::vector<Tensor> inputs_, gradients_;
  std::vector<Values> held_;  ///< The values that inputs_ hold.
  Tensor y_, dy_;
};

/// Calls `make` on plain activations of these shapes.
OpUnderTest on_plain(Device& device, const std::vector<Shape>& x, const OpMaker& make);
/// Calls `make` on activations in the layout that a convolution gives them.
OpUnderTest on_convolved(Device& device, const std::vector<Shape>& x, const OpMaker& make);
/// Puts a convolution in front of each activation, so that a chain conv -> operation runs in the
/// device's own layouts, forward and back. Its inputs: "front x", "front weights" for each
/// activation, then the operation's own parameters.
OpUnderTest after_conv(Device& device, const std::vector<Shape>& x, const OpMaker& make);

/// Returns random values for each input.
std::vector<Values> random_inputs(const OpUnderTest& op, std::uint64_t seed);
/// Returns exact_values() for each input.
std::vector<Values> exact_inputs(const OpUnderTest& op, std::uint64_t seed);

/// Returns |actual - expected| / |expected| in Euclidean norms, or the norm of the difference where
/// `expected` is all zero.
double relative_error(const Values& actual, const Values& expected);

/// Runs both forward and back on the same values and the same random dy, and names what differs. dy
/// is zero for the outputs that `in_doubt` names.
::testing::AssertionResult same_results(Fixture& actual, Fixture& expected,
                                        const std::vector<Values>& inputs,
                                        const Tolerance& tolerance,
                                        const std::vector<bool>& in_doubt = {});

/// Returns for each output of `before_relu` whether it lies within `margin` of ReLU's kink.
std::vector<bool> near_kink(Fixture& before_relu, const std::vector<Values>& inputs, double margin);

}  // namespace duplex::test
