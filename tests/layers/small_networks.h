// Builds a small network that has every kind of layer and every kind of joint, and a batch for it.
#pragma once
#include <cstdint>
#include <vector>

#include "core/random.h"
#include "layers/network.h"

namespace duplex::test {

inline Model all_kinds() {
  using Node = Model::Node;
  const ConvLayer::Options plain{1, false, false};
  const ConvLayer::Options linear{1, true, false};
  constexpr std::int64_t classes = 5;
  Model net("All kinds", {1, 3, 13, 13});

  // Batch normalisation reads the input, of which no gradient is wanted.
  Node x = net.batch_norm("bn0", net.input(), false);
  x = net.conv("conv1", x, 8, same(3));
  x = net.lrn("norm1", x, {5, 0.5F, 0.75F, 1.0F});
  x = net.max_pool("pool1", x, same(3, 2));

  // One concatenation joins branches with and without ReLU; one of these has a second reader.
  net.block("mixed");
  const Node a = net.conv("a", x, 4, same(1));
  const Node b = net.conv("b", net.conv("b_reduce", x, 5, same(1)), 6, same(5));
  const Node c = net.conv("c", net.max_pool("c_pool", x, same(3)), 3, same(1), linear);
  const Node d = net.batch_norm("d_bn", net.conv("d", x, 3, same(3), plain), true);
  const Node joined = net.concat("concat", {a, b, c, d});
  net.block("");
  const Node side = net.conv("side", a, 16, same(3), {2, true, true});

  // One of these additions gets its gradient through another, and one adds a node to itself.
  const Node sum1 = net.add("sum1", joined, side, true);
  Node y = net.conv("residual2", net.conv("residual1", sum1, 16, same(3)), 16, same(3), linear);
  const Node sum2 = net.add("sum2", y, sum1, false);
  const Node sum3 = net.add("sum3", sum2, sum1, true);
  const Node doubled = net.add("doubled", sum3, sum3, false);

  net.block("helper");
  net.training_only(true);
  y = net.batch_norm("bn", net.average_pool("pool", doubled, valid(3, 2)), false);
  y = net.conv("conv", y, 4, same(1));
  y = net.dropout("dropout", net.linear("fc", y, 12, true), 0.3F);
  net.softmax("softmax", net.linear("classifier", y, classes, false), 0.3F);
  net.squared_error("squared_error", net.linear("regressor", y, classes, false), 0.1F);
  net.training_only(false);
  net.block("");

  // A zero-padded shortcut goes beside a strided convolution.
  y = net.batch_norm("down_bn", net.conv("down", sum3, 24, same(3, 2), plain), false);
  Node shortcut = net.max_pool("shortcut_pool", sum3, valid(1, 2));
  shortcut = net.pad_channels("shortcut_pad", shortcut, 24);
  x = net.add("sum4", y, shortcut, true);

  x = net.sigmoid("sigmoid", net.conv("conv2", x, 10, padded(3, 1, 1), linear));
  x = net.batch_norm("bn2", x, false);
  x = net.relu("relu", net.conv("conv3", x, 12, same(3), linear));
  x = net.dropout("dropout1", x, 0.2F);
  x = net.average_pool("pool2", x, valid(2));
  x = net.linear("fc1", x, 20, true);
  x = net.dropout("dropout2", x, 0.4F);
  x = net.linear("fc2", x, classes, false);
  net.softmax("softmax", x);
  return net;
}

/// Builds a network with convolutions and dropout but no batch normalisation, so that a sample's
/// result does not depend on the other samples.
inline Model by_sample() {
  Model net("By sample", {1, 2, 9, 9});
  Model::Node x = net.conv("conv", net.input(), 6, same(3));
  x = net.dropout("dropout1", x, 0.3F);
  x = net.max_pool("pool", x, valid(3, 2));
  x = net.dropout("dropout2", net.linear("fc1", x, 16, true), 0.5F);
  net.softmax("softmax", net.linear("fc2", x, 4, false));
  return net;
}

/// Holds images in [-1, 1) and labels for a batch of a model.
struct Batch {
  std::vector<float> images;
  std::vector<std::int32_t> labels;

  Batch(const Model& model, std::int64_t batch, std::uint64_t seed = 1) {
    const Shape& sample = model.entry(model.input()).shape;
    images.resize(static_cast<std::size_t>(batch * sample.elements()));
    RandomStream(seed, stream_of("images")).fill_uniform(images.data(), images.size());
    for (float& value : images) value = 2.0F * value - 1.0F;
    const RandomStream random(seed, stream_of("labels"));
    for (std::int64_t i = 0; i < batch; ++i) {
      labels.push_back(static_cast<std::int32_t>(random.below(
          static_cast<std::uint64_t>(i), static_cast<std::uint32_t>(model.classes()))));
    }
  }

  /// Returns a context for training with these labels. Every forward draws dropout for the same
  /// samples.
  ForwardContext training(std::uint64_t seed = 7) const { return {true, seed, 0, labels.data()}; }
  ForwardContext evaluation() const { return {false, 0, 0, labels.data()}; }
};

inline std::vector<float> values_of(Device& device, const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.shape().elements()));
  device.download(values.data(), tensor);
  return values;
}

/// Initialises the network, but moves biases, and the weights and biases of batch normalisation,
/// off their 0 and 1: where a whole branch is 0, a bias of 0 would sit on the kink of a ReLU.
inline void initialise_off_kinks(Network& network, std::uint64_t seed) {
  network.initialise(seed);
  for (Parameter& parameter : network.parameters()) {
    if (parameter.spec.initial.bound != 0.0F) continue;
    std::vector<float> values = values_of(network.device(), parameter.weights);
    const RandomStream random(seed, stream_of(parameter.name));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += 0.4F * (random.uniform(i) - 0.5F);
    network.device().upload(parameter.weights, values.data());
  }
}

/// Returns the gradients of all parameters, one after the other.
inline std::vector<std::vector<float>> gradients_of(Network& network) {
  std::vector<std::vector<float>> all;
  for (const Parameter& parameter : network.parameters()) {
    all.push_back(values_of(network.device(), parameter.gradient));
  }
  return all;
}

/// Returns all weights and statistics.
inline std::vector<std::vector<float>> state_of(Network& network) {
  std::vector<std::vector<float>> all;
  for (const Parameter* parameter : network.state()) {
    all.push_back(values_of(network.device(), parameter->weights));
  }
  return all;
}

}  // namespace duplex::test
