// Sums of outer products: the gradient of a linear layer's weights, out of the two thin matrices
// that it is the product of (its sufficient factors; Xie et al. 2016, "Lighter-Communication
// Distributed Machine Learning via Sufficient Factor Broadcasting").
#pragma once
#include <cstddef>
#include <vector>

#include "core/factors/tiles.h"

namespace duplex {

/// The factors of some samples: plain (samples, outputs) gradients of y, and plain (samples,
/// inputs) x. Their products count `weight` times.
struct FactorBlock {
  const float* dy = nullptr;
  const float* x = nullptr;
  std::size_t samples = 0;
  float weight = 1.0F;
};

/// The sum over all samples of all blocks, in their order, of dy x^T, for layers of `outputs` and
/// `inputs`. It is computed in float32, and every element is added up in the order of the samples,
/// each product and sum with one rounding (fma), so that its bits do not depend on the processor,
/// on the number of threads, or on how rows are shared out.
class OuterProducts {
 public:
  /// How sums are rounded, for ranks to compare: copies by another rule would drift apart.
  static constexpr const char* rounding = "fma";

  OuterProducts(std::size_t outputs, std::size_t inputs) : outputs_(outputs), inputs_(inputs) {}

  /// Copies the blocks into the order in which rows() reads them. What rows() has returned before
  /// is of no use from then on.
  void take(const std::vector<FactorBlock>& blocks);
  /// Overwrites `to` with rows `first` to `end` of the sum, `inputs` values each. Several threads
  /// may call it at once, for different memory.
  void rows(std::size_t first, std::size_t end, float* to) const;
  /// Overwrites `to` with the sums over all samples of each output's dy, the gradient of the bias.
  void bias(float* to) const;

  /// Returns the operations of a sum over so many samples; a multiplication and an addition are
  /// two.
  double flop(std::size_t samples) const {
    return 2.0 * static_cast<double>(samples) * static_cast<double>(outputs_) *
           static_cast<double>(inputs_);
  }

  /// Measures how many operations a second one processor computes in rows(), with 128 samples. It
  /// takes some hundredths of a second, and without FMA half a second.
  static double operations_a_second();

  /// rows() takes so many rows at once; a share of rows is best a multiple of it.
  static constexpr std::size_t rows_at_once = factors::tile_height;

 private:
  std::size_t outputs_, inputs_, samples_ = 0;
  /// (outputs / tile_height, samples, tile_height): dy, weighted, with zeros behind the last row.
  std::vector<float> dy_;
  /// (inputs / tile_width, samples, tile_width): x, with zeros behind the last column.
  std::vector<float> x_;
};

}  // namespace duplex
