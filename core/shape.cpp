#include "core/shape.h"

#include "core/error.h"

namespace duplex {

Shape::Shape(std::initializer_list<std::int64_t> dims) {
  if (dims.size() > max_rank) throw Error("shape: more than four extents");
  for (std::int64_t dim : dims) {
    if (dim < 0) throw Error("shape: negative extent " + std::to_string(dim));
    dims_[static_cast<std::size_t>(rank_++)] = dim;
  }
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (int axis = 0; axis < rank_; ++axis) product *= (*this)[axis];
  return product;
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && dims_ == other.dims_;
}

std::string Shape::str() const {
  std::string text;
  for (int axis = 0; axis < rank_; ++axis) {
    if (axis > 0) text += 'x';
    text += std::to_string((*this)[axis]);
  }
  return rank_ == 0 ? "scalar" : text;
}

}  // namespace duplex
