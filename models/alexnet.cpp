// Builds AlexNet (Krizhevsky et al. 2012) as it was trained on two GPUs: convolutions 2, 4 and 5
// have two groups.
#include "models/registry.h"

namespace duplex::models {

Model alexnet(const ModelOptions& options) {
  const ConvLayer::Options grouped{2, true, true};
  const LrnSpec lrn{5, 5e-4F, 0.75F, 2.0F};  // The paper's alpha, 1e-4, is not divided by the size.
  Model net("AlexNet", options.sample(3, 227));
  Model::Node x = net.conv("conv1", net.input(), 96, valid(11, 4));
  x = net.lrn("norm1", x, lrn);
  x = net.max_pool("pool1", x, valid(3, 2));
  x = net.conv("conv2", x, 256, same(5), grouped);
  x = net.lrn("norm2", x, lrn);
  x = net.max_pool("pool2", x, valid(3, 2));
  x = net.conv("conv3", x, 384, same(3));
  x = net.conv("conv4", x, 384, same(3), grouped);
  x = net.conv("conv5", x, 256, same(3), grouped);
  x = net.max_pool("pool5", x, valid(3, 2));
  x = net.linear("fc6", x, 4096, true);
  x = net.dropout("dropout6", x, 0.5F);
  x = net.linear("fc7", x, 4096, true);
  x = net.dropout("dropout7", x, 0.5F);
  x = net.linear("fc8", x, options.classes_or(1000), false);
  net.softmax("softmax", x);
  return net;
}

}  // namespace duplex::models
