#include "models/onnx/node_attributes.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "models/file/words.h"

namespace duplex::models::onnx {
namespace {

using file::largest_window;

/// Rows, or columns, behind the map, where the last window may reach over the padding's end
/// (ceil_mode): that window counts if it begins on the map or in the padding before it.
std::int64_t behind(std::int64_t in, std::int64_t before, std::int64_t after, std::int64_t kernel,
                    std::int64_t stride) {
  std::int64_t outputs = (in + before + after - kernel + stride - 1) / stride + 1;
  if ((outputs - 1) * stride >= in + before) --outputs;
  return std::max((outputs - 1) * stride + kernel - in - before, after);
}

/// Returns the shortest decimal that leaves `stays` of 1 in float32: 1 - 0.9F itself is
/// 0.100000024.
float rest_of(float stays) {
  constexpr int most_digits = 9;  // These tell all floats apart.
  const float rest = 1.0F - stays;
  for (int digits = 1; digits < most_digits; ++digits) {
    char text[40];
    std::snprintf(text, sizeof text, "%.*g", digits, static_cast<double>(rest));
    const auto shorter = static_cast<float>(file::decimal_number(text));
    if (1.0F - shorter == stays) return shorter;
  }
  return rest;
}

}  // namespace

const Attribute* NodeAttributes::find(const std::string& name, Attribute::Type type) const {
  const auto found = node_.attributes.find(name);
  if (found == node_.attributes.end()) return nullptr;
  const Attribute::Type given = found->second.type;
  if (given != type && given != Attribute::Type::none)
    throw Error("its attribute '" + name + "' is of another type than ONNX gives it");
  return &found->second;
}

std::int64_t NodeAttributes::number(const std::string& name, std::int64_t otherwise) const {
  const Attribute* found = find(name, Attribute::Type::number);
  return found != nullptr ? found->number : otherwise;
}

float NodeAttributes::decimal(const std::string& name, float otherwise) const {
  const Attribute* found = find(name, Attribute::Type::decimal);
  if (found == nullptr) return otherwise;
  if (!std::isfinite(found->decimal)) throw Error("its attribute '" + name + "' is not finite");
  return found->decimal;
}

float NodeAttributes::decimal(const std::string& name, float otherwise, float most) const {
  const float value = decimal(name, otherwise);
  if (!(value >= 0.0F && value <= most))
    throw Error("its attribute '" + name + "' has to be from 0 to " +
                std::to_string(static_cast<std::int64_t>(most)));
  return value;
}

std::vector<std::int64_t> NodeAttributes::numbers(const std::string& name) const {
  const Attribute* found = find(name, Attribute::Type::numbers);
  return found != nullptr ? found->numbers : std::vector<std::int64_t>{};
}

std::string NodeAttributes::text(const std::string& name) const {
  const Attribute* found = find(name, Attribute::Type::text);
  return found != nullptr && found->text != "constant" && found->text != "NOTSET" ? found->text
                                                                                  : "";
}

Geometry NodeAttributes::geometry(const Shape& x, bool average) const {
  const Geometry geometry = window(x, numbers("kernel_shape"));
  const bool padded = geometry.mode == Geometry::Mode::same || geometry.padding > 0;
  if (average && padded && number("count_include_pad", 0) != 0)
    throw Error("here padding does not count in an average (count_include_pad 0)");
  return geometry;
}

Geometry NodeAttributes::geometry(const Shape& x, const Constant& weights) const {
  const std::vector<std::int64_t> kernel = numbers("kernel_shape");
  if (!kernel.empty() &&
      kernel != std::vector<std::int64_t>{weights.extents[2], weights.extents[3]})
    throw Error("its kernel_shape is not that of its weights");
  return window(x, {weights.extents[2], weights.extents[3]});
}

Geometry NodeAttributes::window(const Shape& x, std::vector<std::int64_t> kernel) const {
  if (x.rank() != 4) throw Error("it reads values that are no map");
  std::vector<std::int64_t> strides = numbers("strides"), pads = numbers("pads");
  if (strides.empty()) strides = {1, 1};
  if (pads.empty()) pads = {0, 0, 0, 0};
  const auto usual = [](std::int64_t value) { return value >= 0 && value <= largest_window; };
  if (kernel.size() != 2 || strides.size() != 2 || pads.size() != 4 ||
      !std::all_of(kernel.begin(), kernel.end(), usual) ||
      !std::all_of(strides.begin(), strides.end(), usual) ||
      !std::all_of(pads.begin(), pads.end(), usual) || kernel[0] < 1 || strides[0] < 1)
    throw Error("its window has to have two extents, and strides and pads of at most " +
                std::to_string(largest_window));
  for (const std::int64_t dilation : numbers("dilations"))
    if (dilation != 1) throw Error("only dilations of 1 are known");
  if (kernel[0] != kernel[1] || strides[0] != strides[1])
    throw Error("only square windows with one stride are known");
  const std::int64_t side = kernel[0], stride = strides[0];
  const std::string automatic = text("auto_pad");
  if (automatic == "SAME_UPPER") return same(side, stride);
  if (automatic == "VALID") return valid(side, stride);
  if (!automatic.empty()) throw Error("auto_pad " + automatic.substr(0, 20) + " is not known");
  if (number("ceil_mode", 0) != 0) {
    pads[2] = behind(x.h(), pads[0], pads[2], side, stride);
    pads[3] = behind(x.w(), pads[1], pads[3], side, stride);
  }
  if (std::all_of(pads.begin(), pads.end(), [](std::int64_t pad) { return pad == 0; }))
    return valid(side, stride);
  const Padding wanted = same(side, stride).window(x).padding;
  if (pads == std::vector<std::int64_t>{wanted.top, wanted.left, wanted.bottom, wanted.right})
    return same(side, stride);
  if (std::all_of(pads.begin(), pads.end(), [&](std::int64_t pad) { return pad == pads[0]; }))
    return padded(side, stride, pads[0]);
  throw Error("its pads are neither alike on all sides nor those of 'same'");
}

LrnSpec NodeAttributes::lrn() const {
  LrnSpec spec;
  spec.size = number("size", 0);
  if (spec.size < 1 || spec.size > largest_window || spec.size % 2 == 0)
    throw Error("its size has to be odd");
  constexpr float most = 1e6F;  // A network's file has no larger ones.
  spec.alpha = decimal("alpha", 1e-4F, most);
  spec.beta = decimal("beta", 0.75F, most);
  spec.k = decimal("bias", 1.0F, most);
  return spec;
}

BatchNormSpec NodeAttributes::batch_norm() const {
  BatchNormSpec spec;
  spec.epsilon = decimal("epsilon", 1e-5F, 1.0F);
  spec.momentum = rest_of(decimal("momentum", 0.9F, 1.0F));
  return spec;
}

}  // namespace duplex::models::onnx
