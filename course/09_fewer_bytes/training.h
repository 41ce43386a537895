// A training of several workers, small enough for an exercise.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace duplex::course {

/// Trains softmax regression (2.13) on samples that are drawn around ten points, by four workers
/// whose gradients are added up. Returns the part of 2,000 other samples whose class is right in
/// the end.
class SmallTraining {
 public:
  static constexpr std::size_t inputs = 400, classes = 10, workers = 4;
  static constexpr std::size_t weights = inputs * classes;

  /// This changes a worker's gradient before it is added to the others'.
  using Sends = std::function<void(std::size_t worker, std::vector<float>& gradient)>;
  double accuracy(const Sends& sends) const;

 private:
  struct Samples {
    std::vector<float> x;  ///< [count][inputs]
    std::vector<std::size_t> label;
  };
  Samples draw(std::size_t count, std::uint64_t seed) const;
  std::vector<float> gradient_of(const std::vector<float>& w, const Samples& batch) const;
};

}  // namespace duplex::course
