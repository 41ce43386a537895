// The operations that networks are made of. A Device makes an operation once for fixed shapes; it
// is then run for every batch, and owns what the backend wants to keep (descriptors, chosen
// algorithms, workspace). Outputs come first in every argument list.
//
// Conventions, the same in every backend:
//  - x is an input, y the output, dy the gradient of the loss by y, dx by x, dw by the weights.
//  - Every output is overwritten. Only functions that are named `accumulate` accumulate.
//  - Tensors passed in have the descriptions that the operation gives (`y`, `weights`, ...) or was
//    made with (`x`). A gradient has the description of the tensor that it is the gradient of.
//  - Where a spec says `relu`, forward applies (2.3) to the result, and backward takes dy already
//    masked by it: dy * [y > 0] (3.6). GradientSum does the masking, together with the summing of
//    branches.
//  - Tensors may alias only where a function says so.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace duplex {

/// Rows or columns of zeros around a map; the four sides may differ (TensorFlow's "same" at stride
/// 2).
struct Padding {
  std::int64_t top = 0, left = 0, bottom = 0, right = 0;
};

/// A window that slides over a map, in convolution and pooling.
struct Window {
  std::int64_t height = 1, width = 1;
  std::int64_t stride_y = 1, stride_x = 1;
  Padding padding;

  /// Returns an extent of the output: floor((in + padding - window) / stride) + 1. Throws Error if
  /// the window does not fit.
  std::int64_t output_height(std::int64_t in) const;
  std::int64_t output_width(std::int64_t in) const;
};

/// The gradients that backward of an operation with weights is asked for: none, those by its
/// weights (and bias), or these and the one by x.
enum class Gradients { none, weights, all };

/// The bytes that operations take up beside the tensors that they are given, once each has run.
struct OperationMemory {
  std::size_t kept = 0;             ///< What each keeps from forward to backward.
  std::vector<std::size_t> shared;  ///< Buffers that all of them use, one call after the other.
};

struct ConvSpec {
  std::int64_t filters = 0;
  Window window;
  std::int64_t groups = 1;  ///< Divides input channels and filters.
  bool bias = true;
  bool relu = false;
  Gradients gradients = Gradients::all;  ///< A device need not be prepared for others.
};

/// A convolution on an x of this shape.
struct ConvOn {
  ConvSpec spec;
  Shape x;
};

/// Convolution (2.7). x is (N, C, H, W), weights are (filters, C / groups, kh, kw), bias is
/// (filters).
class Conv {
 public:
  virtual ~Conv() = default;
  TensorDesc x, weights, bias,
      y;  ///< bias has rank 0 where the spec has none; pass an empty Tensor then.

  virtual void forward(Tensor& y, const Tensor& x, const Tensor& weights, const Tensor& bias) = 0;
  virtual void backward_data(Tensor& dx, const Tensor& dy, const Tensor& weights) = 0;
  /// `x` is the same as in the last forward.
  virtual void backward_weights(Tensor& dweights, Tensor& dbias, const Tensor& dy,
                                const Tensor& x) = 0;
};

struct LinearSpec {
  std::int64_t outputs = 0;
  bool bias = true;
  bool relu = false;
  Gradients gradients = Gradients::all;  ///< As in ConvSpec.
};

/// Linear layer (2.2). x is (N, C, H, W) or (N, C), read as (N, C*H*W) in logical order; weights
/// are (outputs, C*H*W), bias is (outputs), y is (N, outputs).
class Linear {
 public:
  virtual ~Linear() = default;
  TensorDesc x, weights, bias, y;

  virtual void forward(Tensor& y, const Tensor& x, const Tensor& weights, const Tensor& bias) = 0;
  virtual void backward_data(Tensor& dx, const Tensor& dy, const Tensor& weights) = 0;
  virtual void backward_weights(Tensor& dweights, Tensor& dbias, const Tensor& dy,
                                const Tensor& x) = 0;
};

enum class PoolKind { max, average };

/// Padding counts neither as a maximum nor in an average: the divisor is the number of elements of
/// the window that lie on the map. A window of the map's size is global pooling.
struct PoolSpec {
  PoolKind kind = PoolKind::max;
  Window window;
};

/// Pooling. In forward, max pooling remembers which element of each window was the maximum; among
/// equals it is the first in row-major order.
class Pool {
 public:
  virtual ~Pool() = default;
  TensorDesc x, y;

  virtual void forward(Tensor& y, const Tensor& x) = 0;
  /// Computes the gradient for the last forward.
  virtual void backward(Tensor& dx, const Tensor& dy) = 0;
};

/// y = x / (k + alpha / size * sum over `size` neighbouring channels of x^2)^beta (2.8). size is
/// odd.
struct LrnSpec {
  std::int64_t size = 5;
  float alpha = 1e-4F, beta = 0.75F, k = 1.0F;
};

/// Local response normalisation across channels (2.8).
class Lrn {
 public:
  virtual ~Lrn() = default;
  TensorDesc x, y;

  virtual void forward(Tensor& y, const Tensor& x) = 0;
  /// `x` is the same as in the last forward.
  virtual void backward(Tensor& dx, const Tensor& dy, const Tensor& x) = 0;
};

struct BatchNormSpec {
  float epsilon = 1e-5F;
  float momentum = 0.1F;  ///< running = (1 - momentum) * running + momentum * batch.
  bool relu = false;
};

/// A forward adds this tensor to its result, if there is one; it has the description of y. ReLU
/// (2.3) of the sum follows where `relu`.
struct Addend {
  const Tensor* tensor = nullptr;
  bool relu = false;
};

/// Batch normalisation by channel (2.9)-(2.12). gamma, beta and the running statistics are plain
/// (C). y takes the biased variance of the batch, running_var the unbiased one (n / (n - 1)), which
/// is 0 where a channel has one value.
class BatchNorm {
 public:
  virtual ~BatchNorm() = default;
  TensorDesc x, y;

  /// Returns whether forward takes an addend, and backward_sum() is there. Neither is where the
  /// spec says `relu`.
  virtual bool adds() const { return false; }
  /// Normalises with the batch's own statistics; updates running_mean and running_var in place.
  virtual void forward_training(Tensor& y, Tensor& running_mean, Tensor& running_var,
                                const Tensor& x, const Tensor& gamma, const Tensor& beta,
                                const Addend& added = {}) = 0;
  virtual void forward_inference(Tensor& y, const Tensor& x, const Tensor& gamma,
                                 const Tensor& beta, const Tensor& running_mean,
                                 const Tensor& running_var, const Addend& added = {}) = 0;
  /// Overwrites dy as GradientSum::run(dy, inputs, y) does, and dgamma and dbeta as backward() with
  /// this dy does. The backward() that comes next, with the same, leaves dgamma and dbeta as they
  /// are. Throws Error where adds() is false.
  virtual void backward_sum(Tensor& dy, Tensor& dgamma, Tensor& dbeta,
                            const std::vector<Tensor>& inputs, const Tensor* y, const Tensor& x);
  /// Computes the gradients for the last forward_training. Unlike the other operations with `relu`,
  /// it masks dy itself (masking twice does no harm), so no GradientSum is needed for that.
  virtual void backward(Tensor& dx, Tensor& dgamma, Tensor& dbeta, const Tensor& dy,
                        const Tensor& x, const Tensor& gamma) = 0;
};

enum class ActivationKind { relu, sigmoid };

/// ReLU (2.3), (3.6) or sigmoid (2.4), (3.7), element by element.
class Activation {
 public:
  virtual ~Activation() = default;
  TensorDesc x, y;

  virtual void forward(Tensor& y, const Tensor& x) = 0;
  /// dx may be dy.
  virtual void backward(Tensor& dx, const Tensor& dy, const Tensor& y) = 0;
};

/// Says which random numbers a dropout takes: element i of sample j of the batch draws
/// RandomStream(seed, stream).uniform((first_sample + j) * elements of a sample + first_element +
/// i), with i in logical order. The draw depends on the sample's number, not on the rank or the
/// batch that it falls into.
struct DropoutDraw {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::uint64_t first_sample = 0;
  // A rank may have some channels only of what is dropped.
  std::uint64_t first_element = 0;    ///< Elements of a sample before those of x.
  std::uint64_t sample_elements = 0;  ///< Elements of a whole sample; 0: those of a sample of x.

  /// The number of draws between two samples of x, which have `own` elements.
  std::uint64_t stride(std::uint64_t own) const { return sample_elements ? sample_elements : own; }
  /// values[i] = what element `first` + i of x draws, over all samples, which have `own` elements
  /// each.
  void fill(float* values, std::uint64_t count, std::uint64_t own, std::uint64_t first = 0) const;
};

/// Dropout: an element is zeroed where its draw is below `rate`, else multiplied by 1 / (1 - rate).
class Dropout {
 public:
  virtual ~Dropout() = default;
  TensorDesc x, y;

  /// Gives a recorded forward() and backward() (Device::record) the draw of the next run.
  virtual void prepare(const DropoutDraw& /*draw*/) {}
  virtual void forward(Tensor& y, const Tensor& x, const DropoutDraw& draw) = 0;
  /// Applies the mask of the last forward. dx may be dy.
  virtual void backward(Tensor& dx, const Tensor& dy) = 0;
};

/// Concatenation along channels.
class Concat {
 public:
  virtual ~Concat() = default;
  std::vector<TensorDesc> x;
  TensorDesc y;

  virtual void forward(Tensor& y, const std::vector<Tensor>& x) = 0;
  /// dx = the slice of dy that belongs to input `index`, times [y_slice > 0] where `mask_by` (the y
  /// of forward) is not null.
  virtual void backward(Tensor& dx, int index, const Tensor& dy, const Tensor* mask_by) = 0;
};

/// y = a + b, then ReLU if asked. Its gradient needs no operation: da = db = dy.
class Add {
 public:
  virtual ~Add() = default;
  TensorDesc x, y;  ///< Both inputs have x.shape; the second is converted if its layout differs.

  virtual void forward(Tensor& y, const Tensor& a, const Tensor& b) = 0;
};

/// Appends channels of zeros up to a number of channels (Figure 2.12).
class PadChannels {
 public:
  virtual ~PadChannels() = default;
  TensorDesc x, y;

  virtual void forward(Tensor& y, const Tensor& x) = 0;
  virtual void backward(Tensor& dx, const Tensor& dy) = 0;
};

/// out = (sum of the inputs) * [y > 0]: joins the gradients of an output that several layers read,
/// and masks by ReLU in the same pass. All tensors have the description of y.
class GradientSum {
 public:
  virtual ~GradientSum() = default;

  /// Does not mask where `y` is null. `out` may be one of the inputs.
  virtual void run(Tensor& out, const std::vector<Tensor>& inputs, const Tensor* y) = 0;
};

enum class LossKind { softmax_cross_entropy, squared_error };

struct LossSpec {
  LossKind kind = LossKind::softmax_cross_entropy;
  float smoothing = 0.0F;  ///< Label smoothing, from 0 to 1.

  /// The target of every class but the label's, and that of the label's.
  float off(std::int64_t classes) const { return smoothing / static_cast<float>(classes); }
  float on(std::int64_t classes) const { return 1.0F - smoothing + off(classes); }
};

/// A loss ends a network. x is (N, classes), of any rank whose trailing extents are 1; labels are
/// in [0, classes). The target t of a sample is (1 - smoothing) onehot(label) + smoothing /
/// classes.
///  - softmax_cross_entropy: y = softmax(x) (2.13); loss = mean over samples of -sum t log y, which
///    is -log y[label] without smoothing.
///  - squared_error: y = x; loss = mean over samples of 1/2 * sum (y - t)^2 (3.1).
class Loss {
 public:
  virtual ~Loss() = default;
  TensorDesc x, y;

  /// Gives a recorded forward() and backward() (Device::record) the labels of the next run, N
  /// values in host memory, which are read before the call returns.
  virtual void prepare(const std::int32_t* /*labels*/) {}
  /// `labels` are N values in host memory, which are read before the call returns. Where they are
  /// null, only y is computed.
  virtual void forward(Tensor& y, const Tensor& x, const std::int32_t* labels) = 0;
  /// Returns the mean loss of the last forward with labels; waits for the device.
  virtual double value() = 0;
  /// dx = weight * d(mean loss)/dx, with the labels of the last forward.
  virtual void backward(Tensor& dx, const Tensor& y, float weight) = 0;
};

/// These return the shapes that follow from a spec and the shape of x, the same for every backend.
/// They throw Error, saying what does not fit, for a spec that makes no sense on x.
Shape weights_shape(const ConvSpec& spec, const Shape& x);
Shape weights_shape(const LinearSpec& spec, const Shape& x);
Shape output_shape(const ConvSpec& spec, const Shape& x);
Shape output_shape(const LinearSpec& spec, const Shape& x);
Shape output_shape(const PoolSpec& spec, const Shape& x);
Shape concat_shape(const std::vector<Shape>& x);
Shape pad_channels_shape(std::int64_t channels, const Shape& x);
/// Returns `shape` with another number of channels, of the same rank.
Shape with_channels(const Shape& shape, std::int64_t channels);
/// Returns `shape` with another number of samples, of the same rank.
Shape with_samples(const Shape& shape, std::int64_t samples);

}  // namespace duplex
