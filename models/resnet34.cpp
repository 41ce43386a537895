// Builds Resnet34 (Table 2.5): residual blocks with batch normalisation and one of two kinds of
// shortcut (Figures 2.11, 2.12).
#include "models/registry.h"

namespace duplex::models {
namespace {

/// Adds a residual block: conv3-BN-ReLU-conv3-BN, plus the shortcut, then ReLU. A stride of 2
/// halves the map; the shortcut then is a 1x1/2 convolution, or takes every second pixel and fills
/// the new channels with zeros.
Model::Node residual(Model& net, const std::string& name, Model::Node x, std::int64_t filters,
                     std::int64_t stride, bool zero_padded) {
  const ConvLayer::Options plain{1, false, false};  // Batch normalisation brings the bias.
  net.block(name);
  Model::Node y = net.conv("conv1", x, filters, same(3, stride), plain);
  y = net.batch_norm("bn1", y, true);
  y = net.conv("conv2", y, filters, same(3), plain);
  y = net.batch_norm("bn2", y, false);
  Model::Node shortcut = x;
  if (stride != 1 && zero_padded) {
    shortcut = net.max_pool("shortcut_pool", shortcut, valid(1, stride));
    shortcut = net.pad_channels("shortcut_pad", shortcut, filters);
  } else if (stride != 1) {
    shortcut = net.conv("shortcut_conv", shortcut, filters, same(1, stride), plain);
    shortcut = net.batch_norm("shortcut_bn", shortcut, false);
  }
  y = net.add("add", y, shortcut, true);
  net.block("");
  return y;
}

}  // namespace

Model resnet34(const ModelOptions& options) {
  Model net("Resnet34", options.sample(3, 224));
  Model::Node x = net.conv("conv1", net.input(), 64, same(7, 2), {1, false, false});
  x = net.batch_norm("bn1", x, true);
  x = net.max_pool("pool1", x, same(3, 2));
  const auto stage = [&](int number, std::int64_t filters, int blocks) {
    for (int i = 1; i <= blocks; ++i) {
      const std::string name = "residual" + std::to_string(number) + "_" + std::to_string(i);
      const std::int64_t stride = number > 1 && i == 1 ? 2 : 1;
      x = residual(net, name, x, filters, stride, options.zero_padded_shortcuts);
    }
  };
  stage(1, 64, 3);
  stage(2, 128, 4);
  stage(3, 256, 6);
  stage(4, 512, 3);
  x = net.average_pool("pool2", x, whole_map());
  x = net.linear("classifier", x, options.classes_or(1000), false);
  net.softmax("softmax", x);
  return net;
}

}  // namespace duplex::models
