#include "core/cudnn/kernels.h"

#include <cmath>

#include "core/cudnn/elements.h"
#include "core/cudnn/launch.h"
#include "core/cudnn/layout.h"
#include "core/cudnn/updates.h"

namespace duplex::cudnn {

void fill(const Context& context, Tensor& tensor, float value) {
  for_each(context, "filling", tensor.stored(), Fill{tensor.data, value});
}

void ripple(const Context& context, float* to, std::int64_t count) {
  for_each(context, "filling", count, Ripple{to});
}

void accumulate(const Context& context, Tensor& to, const Tensor& from) {
  for_each(context, "accumulating", to.stored(), Accumulate{to.data, from.data});
}

void convert(const Context& context, Tensor& to, const Tensor& from) {
  for_each(context, "converting a layout", to.stored(),
           Convert{view_of(to.desc), view_of(from.desc), to.data, from.data});
}

void move_map(const Context& context, Tensor& to, const Tensor& from, std::int32_t down,
              std::int32_t right) {
  for_each(context, "moving a map", to.stored(),
           MoveMap{view_of(to.desc), view_of(from.desc), to.data, from.data, down, right});
}

void update(const Context& context, const OptimiserStep& step, Tensor& weights,
            const Tensor& gradient, std::vector<Tensor>& state) {
  const OptimiserSpec& spec = step.spec;
  if (spec.kind == OptimiserKind::adam) {
    const auto t = static_cast<double>(step.number);
    const auto m_scale =
        static_cast<float>(step.rate / (1.0 - std::pow(static_cast<double>(spec.beta1), t)));
    const auto v_scale =
        static_cast<float>(1.0 / (1.0 - std::pow(static_cast<double>(spec.beta2), t)));
    for_each(context, "updating weights", weights.stored(),
             Adam{weights.data, state[0].data, state[1].data, gradient.data, m_scale, v_scale,
                  spec.beta1, spec.beta2, spec.epsilon, spec.weight_decay});
  } else {
    float* velocity = spec.states() == 1 ? state[0].data : nullptr;
    for_each(context, "updating weights", weights.stored(),
             Sgd{weights.data, velocity, gradient.data, step.rate, spec.momentum, spec.weight_decay,
                 spec.nesterov});
  }
}

void add_bias(const Context& context, Tensor& y, const Tensor& bias, bool relu) {
  for_each(context, "adding a bias", y.stored(), AddBias{view_of(y.desc), y.data, bias.data, relu});
}

void rectify(const Context& context, Tensor& y) {
  for_each(context, "ReLU", y.stored(), Relu{y.data, y.data});
}

void bias_gradient(const Context& context, Tensor& dbias, const Tensor& dy) {
  sum_channels(context, "summing a bias gradient", view_of(dy.desc), BiasSums{dy.data, dbias.data});
}

std::size_t bias_workspace(const Context& context, const TensorDesc& dy) {
  return channel_parts(context, view_of(dy)).bytes;
}

}  // namespace duplex::cudnn
