// An optimiser updates a span of weights. It works element by element, so an update may run on any
// slice of a parameter, in any layout, on any owner of the slice, with the same result to the bit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace duplex {

enum class OptimiserKind { sgd, adam };

/// SGD (3.2), and Adam (Algorithm 3.2, but with epsilon outside the root), both as PyTorch has
/// them. weight_decay is L2: g += weight_decay * w. Gradients are clipped before that, as by
/// PyTorch's clip_grad_value_ and clip_grad_norm_; 0: they are not.
struct OptimiserSpec {
  OptimiserKind kind = OptimiserKind::sgd;
  float momentum = 0.0F;  ///< For SGD.
  bool nesterov = false;  ///< For SGD.
  float weight_decay = 0.0F;
  float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F;  ///< For Adam.
  float clip_value = 0.0F;  ///< Elements of gradients are clipped to -clip_value .. clip_value.
  /// The gradient of all weights is scaled to this norm where it is greater, by who has it all
  /// (OptimiserStep::scale).
  float clip_norm = 0.0F;

  /// Returns how many spans of state the weights need: 0 (plain SGD), 1 (momentum: velocity), 2
  /// (Adam: m and v). They start at 0.
  int states() const;
  /// Returns their names, as PyTorch calls them: momentum_buffer; exp_avg and exp_avg_sq.
  std::vector<std::string> state_names() const;
  /// Returns the greatest element of a gradient: clip_value, or infinity where that is 0.
  float bound() const;
};

/// One update has the rate of this step and its number, from 1 (Adam's t).
struct OptimiserStep {
  OptimiserSpec spec;
  float rate = 0.01F;
  std::uint64_t number = 1;
  float scale = 1.0F;  ///< Factor of the gradient (clip_scale).
};

/// Returns the factor that clips `count` gradients, which are those of all weights, to
/// OptimiserSpec::clip_norm: clip_norm / (norm + 1e-6), at most 1.
float clip_scale(float clip_norm, const float* gradients, std::size_t count);

/// Updates `count` weights in place by their gradients. `state` holds spec.states() pointers to
/// `count` elements each, updated in place. It runs on the calling thread; the bits do not depend
/// on how a span is cut.
/// g is the gradient times `scale`, clipped.
///   sgd: g += wd w; v = mu v + g; w -= rate * (nesterov ? g + mu v : v), v = g without momentum
///   adam: m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2;
///         w -= rate * (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps)
void update(const OptimiserStep& step, std::size_t count, float* weights, const float* gradient,
            float* const* state);

/// The learning rate of a step is base, times factor for every boundary passed. Over the first
/// `warmup` steps it is scaled up linearly: step s (from 0) takes (s + 1) / warmup of it.
/// With `cosine` it falls behind the warm-up along half a cosine instead, as PyTorch's
/// CosineAnnealingLR has it: step s takes least + (base - least) (1 + cos(pi t / T)) / 2, where
/// t = s - warmup and T = steps - warmup, so that the step behind the last would take `least`.
struct LearningRate {
  double base = 0.01;
  std::vector<std::uint64_t> boundaries;  ///< Steps, ascending.
  double factor = 0.1;
  std::uint64_t warmup = 0;
  bool cosine = false;
  double least = 0.0;
  std::uint64_t steps = 0;  ///< With `cosine`, all of the run, more than `warmup`.

  float at(std::uint64_t step) const;
};

}  // namespace duplex
