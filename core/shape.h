// Shapes: up to four extents, outermost first. Activations are (N, C, H, W) or (N, C); convolution
// weights (out, in / groups, kernel height, kernel width); linear weights (out, in); biases (out).
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace duplex {

class Shape {
 public:
  static constexpr int max_rank = 4;

  Shape() = default;  ///< Rank 0: one element.
  Shape(std::initializer_list<std::int64_t>
            dims);  ///< Throws Error beyond max_rank or on a negative extent.

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  std::int64_t elements() const;  ///< Product of the extents; 1 for rank 0.

  /// The four extents of an activation. Those that a lower rank lacks are 1.
  std::int64_t n() const { return rank_ > 0 ? dims_[0] : 1; }
  std::int64_t c() const { return rank_ > 1 ? dims_[1] : 1; }
  std::int64_t h() const { return rank_ > 2 ? dims_[2] : 1; }
  std::int64_t w() const { return rank_ > 3 ? dims_[3] : 1; }

  bool operator==(const Shape& other) const;
  bool operator!=(const Shape& other) const { return !(*this == other); }

  std::string str() const;  ///< "64x3x7x7".

 private:
  std::array<std::int64_t, max_rank> dims_{};
  int rank_ = 0;
};

}  // namespace duplex
