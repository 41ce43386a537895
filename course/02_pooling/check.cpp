// Compares with core/reference/pool.cpp, and counts how many inputs get a gradient at all.
#include "course/02_pooling/check.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/reference/pool.h"
#include "course/harness/values.h"

namespace duplex::course {
namespace {

using exercise::PoolShape;

std::size_t inputs(const PoolShape& s) {
  return static_cast<std::size_t>(s.maps * s.height * s.width);
}
std::size_t outputs(const PoolShape& s) {
  return static_cast<std::size_t>(s.maps * s.out_height() * s.out_width());
}

/// The arrays of a call, as the student's function gets them.
struct Arrays {
  Arrays(const PoolShape& s, const std::vector<float>& values)
      : x("x", values),
        dy("dy", random_values(outputs(s), 5)),
        dx("dx", inputs(s), std::numeric_limits<float>::quiet_NaN()) {
    x.seal();
    dy.seal();
  }
  std::string complaint(MaxPoolBackward* solution, const PoolShape& s) {
    return complaint_of_call("max_pool_backward", {&x, &dy, &dx},
                             [&] { solution(s, x.data(), dy.data(), dx.data()); });
  }
  Guarded x, dy, dx;
};

std::vector<float> expected_of(const PoolShape& s, const Arrays& arrays) {
  std::vector<float> dx(inputs(s));
  products_pooling(s, arrays.x.data(), arrays.dy.data(), dx.data());
  return dx;
}

std::string complaint_of(MaxPoolBackward* solution, const PoolShape& s,
                         const std::vector<float>& values) {
  Arrays arrays(s, values);
  if (const std::string complaint = arrays.complaint(solution, s); !complaint.empty())
    return complaint;
  return complaint_of_values(arrays.dx.data(), expected_of(s, arrays), 1e-6F, [&](std::size_t i) {
    return element("dx", i, {s.maps, s.height, s.width});
  });
}

/// Makes most of the values 0, as ReLU (2.3) does.
std::vector<float> rectified(std::vector<float> values) {
  for (float& value : values) value = std::max(value - 0.5F, 0.0F);
  return values;
}
std::vector<float> negative(std::vector<float> values) {
  for (float& value : values) value = -1e30F * (2.0F + value);
  return values;
}

/// Returns the share of the inputs that get a gradient, by the student's function.
double share_of(MaxPoolBackward* solution, const PoolShape& s) {
  Arrays arrays(s, random_values(inputs(s), 7));
  if (const std::string complaint = arrays.complaint(solution, s); !complaint.empty())
    throw Error(complaint);
  const float* dx = arrays.dx.data();
  const auto zeros = std::count(dx, dx + arrays.dx.count(), 0.0F);
  return 1.0 - static_cast<double>(zeros) / static_cast<double>(arrays.dx.count());
}

}  // namespace

void products_pooling(const PoolShape& s, const float* x, const float* dy, float* dx) {
  PoolSpec spec;
  spec.window = {s.window, s.window, s.stride, s.stride, {}};
  const auto pool = reference::make_pool(spec, plain_desc({1, s.maps, s.height, s.width}));
  std::vector<float> y(outputs(s));
  Tensor y_tensor{pool->y, y.data()}, dx_tensor{pool->x, dx};
  pool->forward(y_tensor, {pool->x, const_cast<float*>(x)});
  pool->backward(dx_tensor, {pool->y, const_cast<float*>(dy)});
}

Exercise pooling_exercise(MaxPoolBackward* solution) {
  Exercise exercise;
  exercise.folder = "02_pooling";
  exercise.file = "pooling.cpp";
  exercise.check = [solution] {
    const auto tries = [solution](const PoolShape& s,
                                  std::vector<float> (*change)(std::vector<float>)) {
      return [=] {
        std::vector<float> values = random_values(inputs(s), 6);
        return complaint_of(solution, s, change != nullptr ? change(std::move(values)) : values);
      };
    };
    return check_cases({
        {"windows of 2x2 side by side on a map of 4x6", tries({1, 4, 6, 2, 2}, nullptr)},
        {"values that are all negative", tries({1, 4, 6, 2, 2}, negative)},
        {"three maps", tries({3, 4, 6, 2, 2}, nullptr)},
        {"windows of 3x3 with a stride of 2, which overlap", tries({1, 7, 9, 3, 2}, nullptr)},
        {"equal values, as ReLU leaves them", tries({1, 8, 8, 2, 2}, rectified)},
        {"windows of 2x2 with a stride of 3, which leave inputs out",
         tries({2, 8, 9, 2, 3}, nullptr)},
        {"a row and a column at the end that no window reaches", tries({2, 7, 5, 2, 2}, nullptr)},
    });
  };
  exercise.figures = {
      {"share_2x2",
       "share of the inputs whose gradient is not 0, windows of 2x2 with a stride of 2, random "
       "values",
       "A right share is exact.",
       [solution] {
         return share_of(solution, {64, 112, 112, 2, 2});
       }},
      {"share_3x3", "the same for windows of 3x3 with a stride of 2",
       "One input a window is an upper bound; the page's question is by how much it is too high.",
       [solution] {
         return share_of(solution, {64, 113, 113, 3, 2});
       }},
  };
  return exercise;
}

}  // namespace duplex::course
