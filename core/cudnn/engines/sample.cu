#include "core/cudnn/engines/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/cudnn/kernels/convolution.h"
#include "core/cudnn/kernels/elements.h"
#include "core/cudnn/kernels/launch.h"
#include "core/random.h"

namespace duplex::cudnn {
namespace {

constexpr const char* what = "checking an engine";
constexpr std::uint32_t elements_at_most = 512;
/// A GPU runs so many threads for an element, which add up parts of the sum.
constexpr std::uint32_t parts = 256;

const View& result_of(const ConvGraph& graph) {
  return graph.direction == Direction::forward ? graph.y
         : graph.direction == Direction::data  ? graph.x
                                               : graph.weights;
}

/// Returns a coordinate that is the first or the last one as often as it is any.
std::uint32_t drawn(std::uint32_t bits, std::uint32_t extent) {
  const std::uint32_t kind = bits % 4, any = (bits >> 2U) % extent;
  return kind == 0 ? 0 : kind == 1 ? extent - 1 : any;
}

std::vector<Coord> coordinates(const View& view) {
  std::vector<Coord> at;
  if (view.elements() <= elements_at_most) {
    for (std::uint32_t i = 0; i < view.elements(); ++i) at.push_back(view.coord(i));
    return at;
  }
  const RandomStream random(1, 0);
  for (std::uint32_t i = 0; i < elements_at_most; ++i) {
    at.push_back({drawn(random.bits(4 * i), view.n), drawn(random.bits(4 * i + 1), view.c),
                  drawn(random.bits(4 * i + 2), view.h), drawn(random.bits(4 * i + 3), view.w)});
  }
  at.back() = view.coord(view.elements() - 1);
  return at;
}

PoolWindow narrow(const Window& window) {
  const auto number = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  return {number(window.height),   number(window.width),       number(window.stride_y),
          number(window.stride_x), number(window.padding.top), number(window.padding.left)};
}

}  // namespace

double allowed_error(Precision precision) {
  switch (precision) {
    case Precision::float32:
      return 5e-4;
    case Precision::tf32:
      return 5e-3;
    default:
      return 2e-2;
  }
}

Sample::Sample(const Context& context, const ConvGraph& graph, const ConvMemory& memory)
    : context_(context),
      result_(result_of(graph)),
      memory_(graph.direction == Direction::forward ? memory.y
              : graph.direction == Direction::data  ? memory.x
                                                    : memory.weights) {
  const std::vector<Coord> at = coordinates(result_);
  const auto count = static_cast<std::uint32_t>(at.size());
  at_ = context.allocate(at.size() * sizeof(Coord));
  context.copy_in(at_.data(), at.data(), at.size() * sizeof(Coord));
  const auto* const on_gpu = static_cast<const Coord*>(at_.data());
  const Buffer sums = context.allocate(std::size_t{count} * parts * sizeof(double));
  auto* const to = static_cast<double*>(sums.data());

  const Convolved of{graph.x, graph.weights, graph.y, narrow(graph.window)};
  const std::int64_t threads = std::int64_t{count} * parts;
  with_type(
      graph.direction == Direction::weights ? graph.x.type : graph.weights.type, [&](auto number) {
        using Value = decltype(number);
        const auto* const x = static_cast<const Value*>(memory.x);
        const auto* const weights = static_cast<const Value*>(memory.weights);
        const auto* const y = static_cast<const Value*>(memory.y);
        if (graph.direction == Direction::forward) {
          for_each(context, what, threads, ConvolutionAt<Value>{of, x, weights, on_gpu, parts, to});
        } else if (graph.direction == Direction::data) {
          for_each(context, what, threads,
                   DataGradientAt<Value>{of, weights, y, on_gpu, parts, to});
        } else {
          for_each(context, what, threads, WeightsGradientAt<Value>{of, x, y, on_gpu, parts, to});
        }
      });
  std::vector<double> part(std::size_t{count} * parts);
  context.copy_out(part.data(), sums.data(), part.size() * sizeof(double));

  std::vector<float> bias(count);
  if (graph.bias) {
    std::vector<Coord> of_bias;
    for (const Coord& p : at) of_bias.push_back({0, p.c, 0, 0});
    const Buffer where = context.allocate(of_bias.size() * sizeof(Coord));
    context.copy_in(where.data(), of_bias.data(), of_bias.size() * sizeof(Coord));
    bias = collected(graph.bias_view(), memory.bias, where);
  }
  for (std::size_t i = 0; i < at.size(); ++i) {
    double sum = static_cast<double>(bias[i]);
    for (std::size_t j = 0; j < parts; ++j) sum += part[i * parts + j];
    exact_.push_back(graph.relu ? std::max(sum, 0.0) : sum);
  }
}

std::vector<float> Sample::collected(const View& view, const void* from, const Buffer& at) const {
  std::vector<float> values(at.bytes() / sizeof(Coord));
  const Buffer to = context_.allocate(values.size() * sizeof(float));
  with_type(view.type, [&](auto number) {
    using Value = decltype(number);
    for_each(context_, what, static_cast<std::int64_t>(values.size()),
             Collect<Value>{view, static_cast<const Value*>(from),
                            static_cast<const Coord*>(at.data()), static_cast<float*>(to.data())});
  });
  context_.copy_out(values.data(), to.data(), values.size() * sizeof(float));
  return values;
}

void Sample::poison() const {
  with_type(result_.type, [&](auto number) {
    using Value = decltype(number);
    for_each(context_, what, std::int64_t{result_.elements()},
             Fill<Value>{static_cast<Value*>(memory_), std::nanf("")});
  });
}

double Sample::error() const {
  const std::vector<float> values = collected(result_, memory_, at_);
  double error = 0.0, norm = 0.0;
  for (std::size_t i = 0; i < exact_.size(); ++i) {
    const double difference = static_cast<double>(values[i]) - exact_[i];
    error += difference * difference;
    norm += exact_[i] * exact_[i];
  }
  if (!std::isfinite(error)) return std::numeric_limits<double>::infinity();
  return error == 0.0 ? 0.0 : std::sqrt(error / norm);
}

}  // namespace duplex::cudnn
