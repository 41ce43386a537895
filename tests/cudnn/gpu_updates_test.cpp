// Tests what the GPU's kernels of optimisers and losses do with one element, against the CPU's.
#include "core/cudnn/kernels/updates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/optimiser.h"
#include "tests/cudnn/gpu_elements.h"

namespace duplex::test {
namespace {

TEST(GpuUpdates, HaveTheBitsOfTheOptimisers) {
  const Shape shape{257};
  for (const OptimiserKind kind : {OptimiserKind::sgd, OptimiserKind::adam}) {
    for (const float momentum : {0.0F, 0.9F}) {
      for (const bool nesterov : {false, true}) {
        const bool clips = nesterov == (momentum == 0.0F);
        OptimiserStep step;
        step.scale = clips ? 0.5F : 1.0F;
        step.spec.clip_value = clips ? 0.25F : 0.0F;
        step.spec.kind = kind;
        step.spec.momentum = momentum;
        step.spec.nesterov = nesterov;
        step.spec.weight_decay = 1e-3F;
        step.number = 3;
        const Values gradient = random_values(shape, 30);
        Values weights = random_values(shape, 31), m = random_values(shape, 32),
               v = random_values(shape, 33, 0.0F, 1.0F);
        Values w2 = weights, m2 = m, v2 = v;
        std::vector<float*> state{m.data(), v.data()};
        update(step, weights.size(), weights.data(), gradient.data(), state.data());
        if (kind == OptimiserKind::adam) {
          const auto m_scale =
              static_cast<float>(step.rate / (1.0 - std::pow(static_cast<double>(0.9F), 3.0)));
          const auto v_scale =
              static_cast<float>(1.0 / (1.0 - std::pow(static_cast<double>(0.999F), 3.0)));
          for_each(w2.size(),
                   cudnn::Adam{w2.data(), m2.data(), v2.data(), gradient.data(), m_scale, v_scale,
                               step.spec.beta1, step.spec.beta2, step.spec.epsilon,
                               step.spec.weight_decay, nullptr, step.scale, step.spec.bound()});
        } else {
          for_each(w2.size(),
                   cudnn::Sgd{w2.data(), momentum == 0.0F ? nullptr : m2.data(), gradient.data(),
                              step.rate, momentum, step.spec.weight_decay, nesterov, nullptr,
                              step.scale, step.spec.bound()});
        }
        EXPECT_EQ(w2, weights);
        EXPECT_EQ(m2, m);
        EXPECT_EQ(v2, v);
      }
    }
  }
}

TEST(GpuLosses, AgreeWithTheReference) {
  const Shape shape{5, 7};
  const std::vector<std::int32_t> labels = random_labels(5, 7, 40);
  const Values x = random_values(shape, 41, -3.0F, 3.0F);
  const auto device = make_reference_device();
  Memory memory(*device);
  for (const LossKind kind : {LossKind::softmax_cross_entropy, LossKind::squared_error}) {
    for (const float smoothing : {0.0F, 0.1F, 1.0F}) {
      const LossSpec spec{kind, smoothing};
      const auto loss = device->loss(spec, plain_desc(shape));
      Tensor y = memory.poisoned(loss->y), dx = memory.poisoned(loss->x);
      loss->forward(y, memory.holding(loss->x, x), labels.data());
      loss->backward(dx, y, 0.3F);
      const Values wanted = memory.read(y);

      Values to = x, losses(5), back(x.size()), logarithm(x.size());
      if (kind == LossKind::softmax_cross_entropy) {
        for (std::size_t i = 0; i < x.size(); ++i) logarithm[i] = std::log(wanted[i]);
        for_each(to.size(), cudnn::Exponential{to.data(), logarithm.data()});
        for_each(5,
                 cudnn::CrossEntropy{losses.data(), logarithm.data(), labels.data(), 7, smoothing});
      } else {
        for_each(5, cudnn::SquaredError{losses.data(), to.data(), labels.data(), 7, spec.on(7),
                                        spec.off(7)});
      }
      expect_near(to, wanted, 1e-6);
      double sum = 0.0;
      for (const float value : losses) sum += static_cast<double>(value);
      EXPECT_NEAR(sum / 5.0, loss->value(), 1e-6);
      for_each(back.size(), cudnn::LossBackward<float>{back.data(), to.data(), labels.data(), 7,
                                                       0.3F / 5.0F, spec.on(7), spec.off(7)});
      expect_near(back, memory.read(dx), 1e-6);
    }
  }
}

}  // namespace
}  // namespace duplex::test
