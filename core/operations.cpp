// Computes the shapes that follow from an operation's spec, with checks that hold for all backends,
// and what a backend need not have.
#include "core/operations.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/random.h"

namespace duplex {
namespace {

std::int64_t output_extent(const char* axis, std::int64_t in, std::int64_t before,
                           std::int64_t after, std::int64_t window, std::int64_t stride) {
  if (window < 1 || stride < 1 || before < 0 || after < 0) {
    throw Error(std::string("window: ") + axis + ": window " + std::to_string(window) +
                ", stride " + std::to_string(stride) + ", padding " + std::to_string(before) +
                " and " + std::to_string(after) + " make no sense");
  }
  const std::int64_t slack = in + before + after - window;
  if (slack < 0) {
    throw Error(std::string("window: ") + axis + ": a window of " + std::to_string(window) +
                " does not fit a map of " + std::to_string(in) + " with padding " +
                std::to_string(before) + " and " + std::to_string(after) + "; take a larger input");
  }
  return slack / stride + 1;
}

}  // namespace

std::int64_t Window::output_height(std::int64_t in) const {
  return output_extent("rows", in, padding.top, padding.bottom, height, stride_y);
}

std::int64_t Window::output_width(std::int64_t in) const {
  return output_extent("columns", in, padding.left, padding.right, width, stride_x);
}

Shape weights_shape(const ConvSpec& spec, const Shape& x) {
  if (x.rank() != 4) throw Error("convolution: the input is " + x.str() + ", not N x C x H x W");
  if (spec.groups < 1 || spec.filters < 1 || x.c() % spec.groups != 0 ||
      spec.filters % spec.groups != 0) {
    throw Error("convolution: " + std::to_string(spec.groups) + " groups do not divide " +
                std::to_string(x.c()) + " channels and " + std::to_string(spec.filters) +
                " filters");
  }
  return {spec.filters, x.c() / spec.groups, spec.window.height, spec.window.width};
}

Shape weights_shape(const LinearSpec& spec, const Shape& x) {
  if (x.rank() < 2) throw Error("linear: the input is " + x.str() + ", not a batch of vectors");
  if (spec.outputs < 1) throw Error("linear: no outputs");
  return {spec.outputs, x.c() * x.h() * x.w()};
}

Shape output_shape(const ConvSpec& spec, const Shape& x) {
  weights_shape(spec, x);  // Called for its checks.
  return {x.n(), spec.filters, spec.window.output_height(x.h()), spec.window.output_width(x.w())};
}

Shape output_shape(const LinearSpec& spec, const Shape& x) {
  weights_shape(spec, x);  // Called for its checks.
  return {x.n(), spec.outputs};
}

Shape output_shape(const PoolSpec& spec, const Shape& x) {
  if (x.rank() != 4) throw Error("pooling: the input is " + x.str() + ", not N x C x H x W");
  const Window& window = spec.window;
  const Shape y = {x.n(), x.c(), window.output_height(x.h()), window.output_width(x.w())};
  const Padding& padding = window.padding;
  if (padding.top >= window.height || padding.bottom >= window.height ||
      padding.left >= window.width || padding.right >= window.width) {
    throw Error("pooling: padding as wide as the window; some windows would lie off the map");
  }
  return y;
}

Shape concat_shape(const std::vector<Shape>& x) {
  if (x.empty()) throw Error("concatenation: no inputs");
  std::int64_t channels = 0;
  for (const Shape& part : x) {
    if (part.rank() < 2 || with_channels(part, 1) != with_channels(x[0], 1)) {
      throw Error("concatenation: " + part.str() + " and " + x[0].str() + " do not match");
    }
    channels += part.c();
  }
  return with_channels(x[0], channels);
}

Shape pad_channels_shape(std::int64_t channels, const Shape& x) {
  if (x.rank() < 2 || channels < x.c()) {
    throw Error("padding of channels: " + x.str() + " cannot be padded to " +
                std::to_string(channels) + " channels");
  }
  return with_channels(x, channels);
}

void BatchNorm::backward_sum(Tensor&, Tensor&, Tensor&, const std::vector<Tensor>&, const Tensor*,
                             const Tensor&) {
  throw Error("a batch normalisation that adds nothing was asked for a sum's gradients");
}

Shape with_samples(const Shape& shape, std::int64_t samples) {
  switch (shape.rank()) {
    case 2:
      return {samples, shape[1]};
    case 3:
      return {samples, shape[1], shape[2]};
    case 4:
      return {samples, shape[1], shape[2], shape[3]};
    default:
      throw Error("shape " + shape.str() + " has no samples");
  }
}

Shape with_channels(const Shape& shape, std::int64_t channels) {
  switch (shape.rank()) {
    case 2:
      return {shape[0], channels};
    case 3:
      return {shape[0], channels, shape[2]};
    case 4:
      return {shape[0], channels, shape[2], shape[3]};
    default:
      throw Error("shape " + shape.str() + " has no channels");
  }
}

void DropoutDraw::fill(float* values, std::uint64_t count, std::uint64_t own,
                       std::uint64_t first) const {
  const RandomStream random(seed, stream);
  // Samples follow each other in the numbering of draws, too, unless there is more of each.
  const std::uint64_t run = stride(own) == own ? count : own;
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t sample = (first + done) / own, element = (first + done) % own;
    const std::uint64_t here = std::min(run == count ? count : own - element, count - done);
    random.fill_uniform(values + done, here,
                        (first_sample + sample) * stride(own) + first_element + element);
    done += here;
  }
}

}  // namespace duplex
