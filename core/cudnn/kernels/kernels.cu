#include "core/cudnn/kernels/kernels.h"

#include <cmath>

#include "core/cudnn/kernels/elements.h"
#include "core/cudnn/kernels/launch.h"
#include "core/cudnn/kernels/sums.h"
#include "core/cudnn/kernels/updates.h"
#include "core/cudnn/layout.h"

namespace duplex::cudnn {

void fill(const Context& context, Tensor& tensor, float value) {
  with_type(view_of(tensor.desc).type, [&](auto number) {
    using Value = decltype(number);
    for_each_group(context, "filling", tensor.desc, Fill<Value>{elements<Value>(tensor), value});
  });
}

void test_pattern(const Context& context, void* to, const View& view, std::uint64_t number) {
  with_type(view.type, [&](auto of_type) {
    using Value = decltype(of_type);
    for_each(context, "filling", std::int64_t{view.elements()},
             TestPattern<Value>{static_cast<Value*>(to), number});
  });
}

bool finite(const Context& context, const std::vector<Tensor>& tensors) {
  const Buffer flag = context.allocate(sizeof(std::uint32_t));
  std::uint32_t found = 0;
  context.copy_in(flag.data(), &found, sizeof found);
  for (const Tensor& tensor : tensors) {
    with_type(view_of(tensor.desc).type, [&](auto number) {
      using Value = decltype(number);
      for_each_group(
          context, "looking for values that are not finite", tensor.desc,
          NotFinite<Value>{static_cast<std::uint32_t*>(flag.data()), elements<Value>(tensor)});
    });
  }
  context.copy_out(&found, flag.data(), sizeof found);
  return found == 0;
}

void accumulate(const Context& context, Tensor& to, const Tensor& from) {
  with_type(view_of(to.desc).type, [&](auto number) {
    using Value = decltype(number);
    for_each_group(context, "accumulating", to.desc,
                   Accumulate<Value>{elements<Value>(to), elements<Value>(from)});
  });
}

void convert(const Context& context, Tensor& to, const Tensor& from) {
  const View to_view = view_like(to.desc, from.desc), from_view = view_like(from.desc, to.desc);
  with_types(to_view, from_view, [&](auto to_number, auto from_number) {
    using To = decltype(to_number);
    using From = decltype(from_number);
    for_each_group(context, "converting a layout", to.desc,
                   Convert<To, From>{to_view, from_view, elements<To>(to), elements<From>(from),
                                     same_layout(to_view, from_view)});
  });
}

void move_map(const Context& context, Tensor& to, const Tensor& from, std::int32_t down,
              std::int32_t right) {
  with_types(view_of(to.desc), view_of(from.desc), [&](auto to_number, auto from_number) {
    using To = decltype(to_number);
    using From = decltype(from_number);
    for_each(context, "moving a map", to.desc,
             MoveMap<To, From>{view_of(to.desc), view_of(from.desc), elements<To>(to),
                               elements<From>(from), down, right});
  });
}

void update(const Context& context, const OptimiserStep& step, Tensor& weights,
            const Tensor& gradient, std::vector<Tensor>& state) {
  const OptimiserSpec& spec = step.spec;
  BFloat16* const rounded = context.rounded().of(weights.data);
  if (spec.kind == OptimiserKind::adam) {
    const auto t = static_cast<double>(step.number);
    const auto m_scale =
        static_cast<float>(step.rate / (1.0 - std::pow(static_cast<double>(spec.beta1), t)));
    const auto v_scale =
        static_cast<float>(1.0 / (1.0 - std::pow(static_cast<double>(spec.beta2), t)));
    for_each_group(context, "updating weights", weights.desc,
                   Adam{weights.data, state[0].data, state[1].data, gradient.data, m_scale, v_scale,
                        spec.beta1, spec.beta2, spec.epsilon, spec.weight_decay, rounded,
                        step.scale, spec.bound()});
  } else {
    float* velocity = spec.states() == 1 ? state[0].data : nullptr;
    for_each_group(context, "updating weights", weights.desc,
                   Sgd{weights.data, velocity, gradient.data, step.rate, spec.momentum,
                       spec.weight_decay, spec.nesterov, rounded, step.scale, spec.bound()});
  }
}

void add_bias(const Context& context, Tensor& y, const Tensor& bias, bool relu) {
  if (!bias && !relu) return;
  with_type(view_of(y.desc).type, [&](auto number) {
    using Value = decltype(number);
    if (bias) {
      for_each_group(context, "adding a bias", y.desc,
                     AddBias<Value>{view_of(y.desc), elements<Value>(y), bias.data, relu});
    } else {
      for_each_group(context, "ReLU", y.desc, Relu<Value>{elements<Value>(y), elements<Value>(y)});
    }
  });
}

void bias_gradient(const Context& context, Tensor& dbias, const Tensor& dy) {
  const View view = view_of(dy.desc);
  with_type(view.type, [&](auto number) {
    using Value = decltype(number);
    sum_channels(context, "summing a bias gradient",
                 BiasSums<Value>{view, elements<Value>(dy), dbias.data});
  });
}

std::size_t bias_workspace(const Context& context, const TensorDesc& dy) {
  return sums_workspace(context, view_of(dy));
}

}  // namespace duplex::cudnn
