// Builds VGG16E (Table 2.1; the VGG19 of Simonyan and Zisserman). Its images are 224x224 by
// default; the table has 128x128.
#include "models/registry.h"

namespace duplex::models {

Model vgg16e(const ModelOptions& options) {
  Model net("VGG16E", options.sample(3, 224));
  net.known_as("VGG-19");  // It has 16 convolutions and 3 linear layers.
  Model::Node x = net.input();
  const auto convolutions = [&](int stage, std::int64_t filters, int count) {
    const std::string number = std::to_string(stage);
    for (int i = 1; i <= count; ++i) {
      x = net.conv("conv" + number + "_" + std::to_string(i), x, filters, same(3));
    }
    x = net.max_pool("pool" + number, x, valid(2, 2));
  };
  convolutions(1, 64, 2);
  convolutions(2, 128, 2);
  convolutions(3, 256, 4);
  convolutions(4, 512, 4);
  convolutions(5, 512, 4);
  x = net.linear("fc6", x, 4096, true);
  x = net.linear("fc7", x, 4096, true);
  x = net.linear("fc8", x, options.classes_or(1000), false);
  net.softmax("softmax", x);
  return net;
}

}  // namespace duplex::models
