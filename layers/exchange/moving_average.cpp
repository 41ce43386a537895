#include "layers/exchange/moving_average.h"

#include <algorithm>
#include <utility>

#include "layers/checkpoint.h"

namespace duplex {

MovingAverage::MovingAverage(std::vector<ParameterSpec> parameters, double decay)
    : parameters_(std::move(parameters)), part_(static_cast<float>(1.0 - decay)) {
  for (const ParameterSpec& parameter : parameters_)
    averages_.emplace_back(static_cast<std::size_t>(parameter.shape.elements()));
}

void MovingAverage::blend(float* average, std::uint64_t updates, const float* weights,
                          std::size_t count) const {
  if (updates < 2) {
    std::copy_n(weights, count, average);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) average[i] += part_ * (weights[i] - average[i]);
}

void MovingAverage::add(std::size_t parameter, std::uint64_t updates, const float* weights) {
  std::vector<float>& average = averages_[parameter];
  if (updates > 0) blend(average.data(), updates, weights, average.size());
}

void MovingAverage::replace(Network& network, std::uint64_t updates,
                            const std::function<void()>& work) const {
  Device& device = network.device();
  std::vector<std::vector<float>> kept;
  for (std::size_t p = 0; p < averages_.size(); ++p) {
    Tensor& weights = network.parameters()[p].weights;
    std::vector<float>& own = kept.emplace_back(averages_[p].size());
    std::vector<float> average = averages_[p];
    network.named({}, [&] { device.download(own.data(), weights); });
    blend(average.data(), updates, own.data(), own.size());
    network.named({}, [&] { device.upload(weights, average.data()); });
  }
  work();
  for (std::size_t p = 0; p < kept.size(); ++p)
    network.named({}, [&] { device.upload(network.parameters()[p].weights, kept[p].data()); });
}

std::vector<StateArray> MovingAverage::state() {
  std::vector<StateArray> arrays;
  for (std::size_t p = 0; p < averages_.size(); ++p) {
    std::vector<float>& average = averages_[p];
    arrays.push_back(
        {optimiser_prefix + "ema." + parameters_[p].name, parameters_[p].shape,
         [&average](float* to) { std::copy(average.begin(), average.end(), to); },
         [&average](const float* from) { std::copy_n(from, average.size(), average.begin()); }});
  }
  return arrays;
}

void MovingAverageExchange::begin(std::uint64_t step) {
  step_ = step;
  std::fill(taken_.begin(), taken_.end(), false);
  inner_.begin(step);
}

void MovingAverageExchange::await(std::size_t parameter) {
  inner_.await(parameter);
  if (taken_[parameter]) return;
  taken_[parameter] = true;
  average_.add(parameter, step_, weights_(parameter));
}

}  // namespace duplex
