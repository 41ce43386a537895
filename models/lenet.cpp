// Builds LeNet for 28x28 grey images: the layout of LeCun et al. 1998, with the widths that Caffe
// made common.
#include "models/registry.h"

namespace duplex::models {

Model lenet(const ModelOptions& options) {
  Model net("LeNet", options.sample(1, 28));
  Model::Node x = net.conv("conv1", net.input(), 20, valid(5));
  x = net.max_pool("pool1", x, valid(2, 2));
  x = net.conv("conv2", x, 50, valid(5));
  x = net.max_pool("pool2", x, valid(2, 2));
  x = net.linear("fc1", x, 500, true);
  x = net.linear("fc2", x, options.classes_or(10), false);
  net.softmax("softmax", x);
  return net;
}

}  // namespace duplex::models
