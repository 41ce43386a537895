// Compares with core/reference/conv.cpp, and measures what a multiply-add takes.
#include "course/01_convolution/check.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "core/reference/conv.h"
#include "course/harness/values.h"

namespace duplex::course {
namespace {

using exercise::ConvShape;

std::size_t count(std::int64_t product) {
  return static_cast<std::size_t>(product);
}

std::int64_t multiply_adds(const ConvShape& s) {
  return s.images * s.filters * s.out_height() * s.out_width() * s.channels * s.window * s.window;
}

/// The arrays of a call, as the student's function gets them.
struct Arrays {
  explicit Arrays(const ConvShape& s)
      : x("x", random_values(count(s.images * s.channels * s.height * s.width), 1)),
        w("w", random_values(count(s.filters * s.channels * s.window * s.window), 2)),
        b("b", random_values(count(s.filters), 3)),
        y("y", count(s.images * s.filters * s.out_height() * s.out_width()),
          std::numeric_limits<float>::quiet_NaN()) {
    for (Guarded* input : {&x, &w, &b}) input->seal();
  }
  std::string complaint(Convolve* solution, const ConvShape& s, const Limits& limits = {}) {
    return complaint_of_call(
        "convolve", {&x, &w, &b, &y}, [&] { solution(s, x.data(), w.data(), b.data(), y.data()); },
        limits);
  }
  Guarded x, w, b, y;
};

std::vector<float> expected_of(const ConvShape& s, const Arrays& a) {
  std::vector<float> values(a.y.count());
  products_convolution(s, a.x.data(), a.w.data(), a.b.data(), values.data());
  return values;
}

std::string complaint_of(Convolve* solution, const ConvShape& s) {
  Arrays arrays(s);
  if (const std::string complaint = arrays.complaint(solution, s); !complaint.empty())
    return complaint;
  return complaint_of_values(arrays.y.data(), expected_of(s, arrays), 1e-5F, [&](std::size_t i) {
    return element("y", i, {s.images, s.filters, s.out_height(), s.out_width()});
  });
}

/// Returns the processor seconds that the fastest of three calls takes.
double seconds_of(Convolve* solution, const ConvShape& s) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    Arrays a(s);
    least = std::min(
        least, seconds_of_call("convolve", {&a.x, &a.w, &a.b, &a.y},
                               [&] { solution(s, a.x.data(), a.w.data(), a.b.data(), a.y.data()); },
                               {std::chrono::seconds(60)}));
  }
  return least;
}

// The second layer of Resnet34 for one image, and a smaller one.
constexpr ConvShape layer{1, 64, 56, 56, 64, 3, 1, 1};
constexpr ConvShape small_layer{1, 16, 56, 56, 16, 3, 1, 1};

}  // namespace

void products_convolution(const ConvShape& s, const float* x, const float* w, const float* b,
                          float* y) {
  ConvSpec spec;
  spec.filters = s.filters;
  spec.window = {
      s.window, s.window, s.stride, s.stride, {s.padding, s.padding, s.padding, s.padding}};
  const auto conv =
      reference::make_conv(spec, plain_desc({s.images, s.channels, s.height, s.width}));
  Tensor out{conv->y, y};
  conv->forward(out, {conv->x, const_cast<float*>(x)}, {conv->weights, const_cast<float*>(w)},
                {conv->bias, const_cast<float*>(b)});
}

Exercise convolution_exercise(Convolve* solution) {
  Exercise exercise;
  exercise.folder = "01_convolution";
  exercise.file = "convolution.cpp";
  const auto tries = [solution](const ConvShape& shape) {
    return [solution, shape] { return complaint_of(solution, shape); };
  };
  exercise.check = [tries] {
    return check_cases({
        {"one weight on a map of 3x4, so that y = w x + b", tries({1, 1, 3, 4, 1, 1, 1, 0})},
        {"a window of 3x3 on a map of 5x6", tries({1, 1, 5, 6, 1, 3, 1, 0})},
        {"two filters on three channels", tries({1, 3, 5, 6, 2, 3, 1, 0})},
        {"two images", tries({2, 3, 5, 6, 2, 3, 1, 0})},
        {"a padding of 1", tries({1, 1, 5, 6, 1, 3, 1, 1})},
        {"a stride of 2", tries({1, 1, 6, 8, 1, 3, 2, 0})},
        {"a window of 5x5 with a padding of 2 and a stride of 3, images, channels and filters",
         tries({2, 3, 13, 10, 4, 5, 3, 2})},
    });
  };
  exercise.known = [solution] {
    const double rate =
        static_cast<double>(multiply_adds(small_layer)) / seconds_of(solution, small_layer);
    return "convolve() makes " + number_text(rate) +
           " multiply-adds a second on 16 channels of 56x56 with 16 filters of 3x3";
  };
  exercise.figures = {
      {"multiply_adds",
       "multiply-adds of 64 filters of 3x3 on 64 channels of 56x56, padding 1, one image",
       "A right count of the loops of (2.7) is exact.",
       [] { return static_cast<double>(multiply_adds(layer)); }},
      {"seconds", "seconds that convolve() takes for that layer",
       "Multiply-adds over the rate above come within a third, unless the loops run through memory "
       "in another order.",
       [solution] { return seconds_of(solution, layer); }},
  };
  return exercise;
}

}  // namespace duplex::course
