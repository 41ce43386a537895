// Builds GoogLeNet (Tables 2.2 and 2.3): inception modules, LRN, no batch normalisation.
#include "models/registry.h"

namespace duplex::models {
namespace {

/// Holds the numbers of filters of a row of Table 2.2.
struct Inception {
  std::int64_t one, reduce_three, three, reduce_five, five, project;
};

Model::Node inception(Model& net, const std::string& name, Model::Node x,
                      const Inception& filters) {
  net.block("inception_" + name);
  const auto a = net.conv("1x1", x, filters.one, same(1));
  const auto b_reduced = net.conv("3x3_reduce", x, filters.reduce_three, same(1));
  const auto b = net.conv("3x3", b_reduced, filters.three, same(3));
  const auto c_reduced = net.conv("5x5_reduce", x, filters.reduce_five, same(1));
  const auto c = net.conv("5x5", c_reduced, filters.five, same(5));
  const auto d_pooled = net.max_pool("pool", x, same(3));
  const auto d = net.conv("pool_proj", d_pooled, filters.project, same(1));
  const auto y = net.concat("concat", {a, b, c, d});
  net.block("");
  return y;
}

/// Adds an auxiliary classifier (Table 2.3), which only training runs; its loss has the weight 0.3.
void auxiliary(Model& net, const std::string& name, Model::Node x, std::int64_t classes) {
  net.block(name);
  net.training_only(true);
  x = net.average_pool("pool", x, valid(5, 3));
  x = net.conv("conv", x, 128, same(1));
  x = net.linear("fc", x, 1024, true);
  x = net.dropout("dropout", x, 0.7F);
  x = net.linear("classifier", x, classes, false);
  net.softmax("softmax", x, 0.3F);
  net.training_only(false);
  net.block("");
}

}  // namespace

Model googlenet(const ModelOptions& options) {
  Model net("GoogLeNet", options.sample(3, 224));
  const std::int64_t classes = options.classes_or(1000);
  Model::Node x = net.conv("conv1", net.input(), 64, same(7, 2));
  x = net.max_pool("pool1", x, same(3, 2));
  x = net.lrn("norm1", x);
  x = net.conv("conv2_reduce", x, 64, same(1));
  x = net.conv("conv2", x, 192, same(3));
  x = net.lrn("norm2", x);
  x = net.max_pool("pool2", x, same(3, 2));
  x = inception(net, "3a", x, {64, 96, 128, 16, 32, 32});
  x = inception(net, "3b", x, {128, 128, 192, 32, 96, 64});
  x = net.max_pool("pool3", x, same(3, 2));
  x = inception(net, "4a", x, {192, 96, 208, 16, 48, 64});
  if (options.auxiliary) auxiliary(net, "auxiliary1", x, classes);
  x = inception(net, "4b", x, {160, 112, 224, 24, 64, 64});
  x = inception(net, "4c", x, {128, 128, 256, 24, 64, 64});
  x = inception(net, "4d", x, {112, 144, 288, 32, 64, 64});
  if (options.auxiliary) auxiliary(net, "auxiliary2", x, classes);
  x = inception(net, "4e", x, {256, 160, 320, 32, 128, 128});
  x = net.max_pool("pool4", x, same(3, 2));
  x = inception(net, "5a", x, {256, 160, 320, 32, 128, 128});
  x = inception(net, "5b", x, {384, 192, 384, 48, 128, 128});
  x = net.average_pool("pool5", x, whole_map());
  x = net.dropout("dropout", x, 0.4F);
  x = net.linear("classifier", x, classes, false);
  net.softmax("softmax", x);
  return net;
}

}  // namespace duplex::models
