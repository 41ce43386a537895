// Between a network on a device and the wire: parameters as plain floats in host memory, one copy
// of the weights and one of the gradients, which the exchange sends and receives.
#pragma once
#include <vector>

#include "core/mapped_memory.h"
#include "layers/network.h"
#include "net/exchange.h"
#include "tools/push_queue.h"

namespace duplex::tools {

/// Host memory for a model's trained parameters.
class HostParameters {
 public:
  /// With `gradients` off, only weights: a central server.
  HostParameters(const Model& model, bool gradients);

  /// Fills the weights as Network::initialise does, or, if `path` is not empty, from a file
  /// (read_checkpoint). Returns what ranks compare before they train: a digest of these weights and
  /// of the running statistics that belong to them; the optimiser begins with zeros everywhere.
  /// Throws Error for a file with numbers that are not finite.
  net::Fingerprint fill(const Model& model, std::uint64_t seed, const std::string& path);
  /// The name of the first parameter whose weights are not finite; empty: there is none.
  std::string not_finite() const;
  /// Views for the exchange, in forward order. Valid while this object is.
  const std::vector<net::Span>& spans() const { return spans_; }
  const std::vector<ParameterSpec>& specs() const { return specs_; }
  /// As Device::pin, all of it.
  std::vector<std::shared_ptr<void>> pin(Device& device) const;

 private:
  std::vector<ParameterSpec> specs_;
  Buffer weights_, gradients_;  ///< Of all parameters, one after the other.
  std::vector<net::Span> spans_;
};

/// The way between a network's device and the wire, by host memory. Copies run beside the
/// operations where the device can do that.
class Between {
 public:
  Between(Network& network, const HostParameters& host, net::ParameterExchange& wire);

  void begin(std::uint64_t step) { wire_.begin(step); }
  /// Awaits a parameter's weights and uploads them.
  void await(std::size_t parameter);
  /// Downloads `values`, of the parameter's description, and hands them to the wire.
  void push(std::size_t parameter, const Tensor& values);
  /// Returns when all that was pushed has been handed over.
  void end();
  void await_all();

 private:
  Network& network_;
  const HostParameters& host_;
  net::ParameterExchange& wire_;
  std::vector<std::shared_ptr<void>> pinned_;
  PushQueue queue_;  ///< Last: its thread uses the others.
};

/// core's Exchange over net's: await uploads what has come, push downloads what is to go.
class WireExchange final : public Exchange {
 public:
  WireExchange(Network& network, HostParameters& host, net::ParameterExchange& wire)
      : network_(network), between_(network, host, wire) {}

  void begin(std::uint64_t step) override { between_.begin(step); }
  void await(std::size_t parameter) override { between_.await(parameter); }
  void push(std::size_t parameter) override {
    between_.push(parameter, network_.parameters()[parameter].gradient);
  }
  void end() override { between_.end(); }
  void await_all() override { between_.await_all(); }

 private:
  Network& network_;
  Between between_;
};

/// Parameter averaging: the worker updates weights of its own (`local`); after every `every` steps,
/// and after the last of `steps`, all workers go on with the mean of their weights. The optimiser's
/// state stays with the worker. The wire counts rounds, not steps.
class AveragingExchange final : public Exchange {
 public:
  AveragingExchange(Network& network, HostParameters& host, net::ParameterExchange& wire,
                    Exchange& local, std::uint64_t every, std::uint64_t steps)
      : network_(network),
        between_(network, host, wire),
        local_(local),
        every_(every),
        steps_(steps) {}

  void begin(std::uint64_t step) override;
  void await(std::size_t parameter) override;
  void push(std::size_t parameter) override;
  void end() override;
  /// Brings the mean after the last step of a round; does nothing after the others.
  void await_all() override {
    if (last_of_round()) between_.await_all();
  }

 private:
  bool first_of_round() const { return step_ % every_ == 0; }
  bool last_of_round() const { return (step_ + 1) % every_ == 0 || step_ + 1 == steps_; }

  Network& network_;
  Between between_;
  Exchange& local_;
  std::uint64_t every_, steps_, step_ = 0;
};

}  // namespace duplex::tools
