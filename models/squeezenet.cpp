// Builds SqueezeNet (Table 2.4; version 1.0) from fire modules.
#include "models/registry.h"

namespace duplex::models {
namespace {

/// Adds fire(s, e1, e3): s filters of 1x1, then e1 filters of 1x1 and e3 of 3x3 side by side.
Model::Node fire(Model& net, int number, Model::Node x, std::int64_t s, std::int64_t e1,
                 std::int64_t e3) {
  net.block("fire" + std::to_string(number));
  x = net.conv("squeeze", x, s, same(1));
  const auto one = net.conv("expand1x1", x, e1, same(1));
  const auto three = net.conv("expand3x3", x, e3, same(3));
  x = net.concat("concat", {one, three});
  net.block("");
  return x;
}

}  // namespace

Model squeezenet(const ModelOptions& options) {
  Model net("SqueezeNet", options.sample(3, 224));
  Model::Node x = net.conv("conv1", net.input(), 96, same(7, 2));
  x = net.max_pool("pool1", x, same(3, 2));
  x = fire(net, 1, x, 16, 64, 64);
  x = fire(net, 2, x, 16, 64, 64);
  x = fire(net, 3, x, 32, 128, 128);
  x = net.max_pool("pool2", x, same(3, 2));
  x = fire(net, 4, x, 32, 128, 128);
  x = fire(net, 5, x, 48, 192, 192);
  x = fire(net, 6, x, 48, 192, 192);
  x = fire(net, 7, x, 64, 256, 256);
  x = net.max_pool("pool3", x, same(3, 2));
  x = fire(net, 8, x, 64, 256, 256);
  x = net.dropout("dropout", x, 0.5F);
  x = net.conv("conv2", x, options.classes_or(1000), same(1));
  x = net.average_pool("pool4", x, whole_map());
  net.softmax("softmax", x);
  return net;
}

}  // namespace duplex::models
