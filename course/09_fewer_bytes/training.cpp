#include "course/09_fewer_bytes/training.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"

namespace duplex::course {
namespace {

constexpr std::size_t steps = 120, batch = 8;
constexpr float rate = 0.05F, noise = 3.0F;

/// Returns what each class has of a sample; w is [classes][inputs].
std::vector<float> scores(const std::vector<float>& w, const float* x) {
  std::vector<float> all(SmallTraining::classes);
  for (std::size_t c = 0; c < all.size(); ++c)
    for (std::size_t i = 0; i < SmallTraining::inputs; ++i)
      all[c] += w[c * SmallTraining::inputs + i] * x[i];
  return all;
}

}  // namespace

SmallTraining::Samples SmallTraining::draw(std::size_t count, std::uint64_t seed) const {
  const RandomStream centre(9, stream_of("centre")), around(seed, stream_of("sample"));
  Samples samples;
  for (std::size_t n = 0; n < count; ++n) {
    const std::size_t label = around.below(n + (std::uint64_t{1} << 40), classes);
    samples.label.push_back(label);
    for (std::size_t i = 0; i < inputs; ++i)
      samples.x.push_back(0.5F * centre.normal(label * inputs + i) +
                          noise * around.normal(n * inputs + i));
  }
  return samples;
}

std::vector<float> SmallTraining::gradient_of(const std::vector<float>& w,
                                              const Samples& samples) const {
  std::vector<float> gradient(weights);
  for (std::size_t n = 0; n < samples.label.size(); ++n) {
    const float* x = samples.x.data() + n * inputs;
    std::vector<float> p = scores(w, x);
    const float most = *std::max_element(p.begin(), p.end());
    float sum = 0.0F;
    for (float& each : p) sum += each = std::exp(each - most);
    for (std::size_t c = 0; c < classes; ++c) {
      const float error = p[c] / sum - (c == samples.label[n] ? 1.0F : 0.0F);
      for (std::size_t i = 0; i < inputs; ++i)
        gradient[c * inputs + i] += error * x[i] / static_cast<float>(batch);
    }
  }
  return gradient;
}

double SmallTraining::accuracy(const Sends& sends) const {
  std::vector<float> w(weights);
  for (std::size_t step = 0; step < steps; ++step) {
    std::vector<float> sum(weights);
    for (std::size_t worker = 0; worker < workers; ++worker) {
      std::vector<float> gradient = gradient_of(w, draw(batch, 100 + step * workers + worker));
      sends(worker, gradient);
      for (std::size_t i = 0; i < weights; ++i) sum[i] += gradient[i];
    }
    for (std::size_t i = 0; i < weights; ++i) w[i] -= rate * sum[i] / static_cast<float>(workers);
  }
  const Samples test = draw(2000, 7);
  std::size_t right = 0;
  for (std::size_t n = 0; n < test.label.size(); ++n) {
    const std::vector<float> all = scores(w, test.x.data() + n * inputs);
    const auto best = std::max_element(all.begin(), all.end()) - all.begin();
    right += static_cast<std::size_t>(best) == test.label[n];
  }
  return static_cast<double>(right) / static_cast<double>(test.label.size());
}

}  // namespace duplex::course
