// Between a network on a device and the wire: parameters as plain floats in host memory, one copy
// of the weights and one of the gradients, which the exchange sends and receives.
#pragma once
#include <vector>

#include "layers/network.h"
#include "net/exchange.h"

namespace duplex::tools {

/// Host memory for a model's trained parameters.
class HostParameters {
 public:
  /// With `gradients` off, only weights: a central server.
  HostParameters(const Model& model, bool gradients);

  /// Fills the weights as Network::initialise does.
  void initialise(std::uint64_t seed);
  /// Fills the weights from a file (read_checkpoint), whose running statistics are passed over.
  void load(const std::string& path, const Model& model);
  /// Views for the exchange, in forward order. Valid while this object is.
  const std::vector<net::Span>& spans() const { return spans_; }
  const std::vector<ParameterSpec>& specs() const { return specs_; }

 private:
  std::vector<ParameterSpec> specs_;
  std::vector<std::vector<float>> weights_, gradients_;
  std::vector<net::Span> spans_;
};

/// core's Exchange over net's: await uploads what has come, push downloads what is to go.
class WireExchange final : public Exchange {
 public:
  WireExchange(Network& network, HostParameters& host, net::ParameterExchange& wire)
      : network_(network), host_(host), wire_(wire) {}

  void begin(std::uint64_t step) override { wire_.begin(step); }
  void await(std::size_t parameter) override;
  void push(std::size_t parameter) override;
  void end() override { wire_.end(); }

 private:
  Network& network_;
  HostParameters& host_;
  net::ParameterExchange& wire_;
};

}  // namespace duplex::tools
