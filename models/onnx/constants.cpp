#include "models/onnx/constants.h"

#include <vector>

#include "core/error.h"
#include "models/file/words.h"

namespace duplex::models::onnx {

Constants::Constants(const Graph& graph) {
  for (const Constant& constant : graph.constants) by_name_[constant.name] = &constant;
}

const Constant* Constants::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const Constant& Constants::get(const std::string& name, Constant::Type type) const {
  const Constant* constant = find(name);
  if (constant == nullptr) throw Error("'" + name + "' has to be a constant of the file");
  if (constant->type != type)
    throw Error("'" + name + "' has to be of " +
                (type == Constant::Type::float32 ? "float32" : "int64"));
  return *constant;
}

std::int64_t extent(const Constant& constant, std::size_t axis, std::size_t rank) {
  if (constant.extents.size() != rank || constant.extents[axis] < 1 ||
      constant.extents[axis] > file::largest_number)
    throw Error("'" + constant.name + "' has to have " + std::to_string(rank) +
                " extents, of at most " + std::to_string(file::largest_number));
  return constant.extents[axis];
}

std::function<void(float* to)> transposed(const Constant& matrix) {
  return [&matrix](float* to) {
    const auto rows = static_cast<std::size_t>(matrix.extents[0]);
    const auto columns = static_cast<std::size_t>(matrix.extents[1]);
    std::vector<float> values(rows * columns);
    matrix.values(values.data());
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t column = 0; column < columns; ++column)
        to[column * rows + row] = values[row * columns + column];
  };
}

}  // namespace duplex::models::onnx
