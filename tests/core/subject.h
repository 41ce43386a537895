// An operation as the tests see it: tensors in, one tensor out, a gradient for each tensor in. What
// is written against this checks every operation.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tests/core/backends.h"
#include "tests/core/tolerances.h"

namespace duplex::test {

using Values = std::vector<float>;

struct Subject {
  struct Input {
    std::string name;
    TensorDesc desc;
  };

  std::vector<Input> inputs;  ///< Activations first, then parameters.
  TensorDesc y;
  bool wants_masked_dy = false;  ///< backward takes dy * [y > 0].
  std::function<void(Tensor& y, const std::vector<Tensor>& inputs)> forward;
  /// One gradient for each input, of the last forward.
  std::function<void(std::vector<Tensor>& gradients, const Tensor& dy,
                     const std::vector<Tensor>& inputs, const Tensor& y)>
      backward;
};

/// Makes a subject of activations with these descriptions.
using SubjectMaker = std::function<Subject(Device&, const std::vector<TensorDesc>& x)>;

/// A subject with memory for all that it reads and writes. Values go in and out in logical order.
class Rig {
 public:
  Rig(Device& device, Subject subject);

  const Subject& subject() const { return subject_; }
  /// How far off its results are because of what the device stores activations as; 0: float32.
  double rounding() const;
  Values forward(const std::vector<Values>& inputs);
  /// Of the last forward.
  std::vector<Values> backward(const Values& dy);

 private:
  Device& device_;
  Memory memory_;
  Subject subject_;
  std::vector<Tensor> inputs_, gradients_;
  std::vector<Values> held_;  ///< What inputs_ hold.
  Tensor y_, dy_;
};

/// `make` on plain activations of these shapes.
Subject on_plain(Device& device, const std::vector<Shape>& x, const SubjectMaker& make);
/// On activations in the layout that a convolution gives them.
Subject on_convolved(Device& device, const std::vector<Shape>& x, const SubjectMaker& make);
/// A convolution in front of each activation, so that a chain conv -> operation runs in the
/// device's own layouts, forward and back. Its inputs: "front x", "front weights" for each
/// activation, then the operation's own parameters.
Subject after_conv(Device& device, const std::vector<Shape>& x, const SubjectMaker& make);

/// Random values for each input.
std::vector<Values> random_inputs(const Subject& subject, std::uint64_t seed);
/// The same of exact_values.
std::vector<Values> exact_inputs(const Subject& subject, std::uint64_t seed);

/// |actual - expected| / |expected|, Euclidean norms; the norm of the difference where `expected`
/// is all zero.
double relative_error(const Values& actual, const Values& expected);

/// Both forward and back on the same values and the same random dy: names what differs. dy is zero
/// where `in_doubt` says so of an output.
::testing::AssertionResult same_results(Rig& actual, Rig& expected,
                                        const std::vector<Values>& inputs,
                                        const Tolerance& tolerance,
                                        const std::vector<bool>& in_doubt = {});

/// Where outputs of `before_relu` lie within `margin` of ReLU's kink.
std::vector<bool> near_kink(Rig& before_relu, const std::vector<Values>& inputs, double margin);

}  // namespace duplex::test
