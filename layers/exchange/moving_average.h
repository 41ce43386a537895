// Averages the weights of a training over its updates.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/exchange.h"
#include "core/files/state_file.h"
#include "layers/network.h"

namespace duplex {

/// Keeps the exponential moving average of the weights after each update, as PyTorch's
/// AveragedModel with get_ema_multi_avg_fn(decay) has it: the first is those weights, and then
/// average += (1 - decay) (weights - average). Step s takes the weights of s updates as it awaits
/// them, so between two steps the newest are not in it yet.
class MovingAverage {
 public:
  MovingAverage(std::vector<ParameterSpec> parameters, double decay);

  /// Takes a parameter's weights after so many updates, in logical order; those of none are no
  /// part of the average.
  void add(std::size_t parameter, std::uint64_t updates, const float* weights);
  /// Runs `work` while the network has the average, with its own weights of so many updates taken
  /// in, in their place. If `work` throws, it keeps that.
  void replace(Network& network, std::uint64_t updates, const std::function<void()>& work) const;
  /// The averages, as a checkpoint holds them: without the newest weights. This object must outlive
  /// the result.
  std::vector<StateArray> state();

 private:
  void blend(float* average, std::uint64_t updates, const float* weights, std::size_t count) const;

  std::vector<ParameterSpec> parameters_;
  float part_;  ///< 1 - decay.
  std::vector<std::vector<float>> averages_;
};

/// Gives an average the weights of every step as they are awaited.
class MovingAverageExchange final : public Exchange {
 public:
  /// `weights` returns where a parameter's awaited weights lie, in logical order, until it is
  /// called again. All arguments must outlive this object.
  MovingAverageExchange(Exchange& inner, MovingAverage& average, std::size_t parameters,
                        std::function<const float*(std::size_t parameter)> weights)
      : inner_(inner), average_(average), taken_(parameters), weights_(std::move(weights)) {}

  bool works_between_steps() const override { return inner_.works_between_steps(); }
  void begin(std::uint64_t step) override;
  /// A parameter may be awaited again between two steps, and counts once.
  void await(std::size_t parameter) override;
  void computed(std::size_t parameter) override { inner_.computed(parameter); }
  void push(std::size_t parameter) override { inner_.push(parameter); }
  void end() override { inner_.end(); }
  void await_all() override { inner_.await_all(); }

 private:
  Exchange& inner_;
  MovingAverage& average_;
  std::uint64_t step_ = 0;
  std::vector<bool> taken_;  ///< In this step, by parameter.
  std::function<const float*(std::size_t parameter)> weights_;
};

}  // namespace duplex
