// Tests what models and networks refuse, and how they say so.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/reference/device.h"
#include "layers/exchange/local_exchange.h"
#include "layers/network.h"
#include "tests/layers/remembering_device.h"
#include "tests/layers/small_networks.h"

namespace duplex {
namespace {

std::string message(const std::function<void()>& build) {
  try {
    build();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_in(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
  }
}

TEST(Model, RefusesTwoLayersOfOneName) {
  Model net("Twins", {1, 3, 8, 8});
  net.conv("conv", 0, 4, same(3));
  expect_in(message([&] { net.conv("conv", 0, 4, same(3)); }), {"Twins", "conv"});
}

TEST(Model, RefusesWhatDoesNotFit) {
  Model net("Misfit", {1, 3, 8, 8});
  const auto a = net.conv("a", 0, 4, same(3)), b = net.conv("b", 0, 6, valid(3));
  const auto fc = net.linear("fc", a, 10, false);
  expect_in(message([&] { net.add("add", a, b, true); }), {"Misfit", "layer add", "1x4x8x8"});
  expect_in(message([&] { net.concat("concat", {a, b}); }), {"layer concat", "1x6x6x6"});
  expect_in(message([&] { net.concat("nothing", {}); }), {"layer nothing", "no inputs"});
  expect_in(message([&] {
              net.conv("grouped", a, 8, same(3), {3, true, true});
            }),
            {"layer grouped", "3 groups"});
  expect_in(message([&] { net.conv("flat", fc, 8, same(3)); }), {"layer flat", "1x10"});
  expect_in(message([&] { net.max_pool("pool", a, valid(9)); }), {"layer pool", "9", "8"});
  expect_in(message([&] { net.pad_channels("pad", b, 4); }), {"layer pad", "4"});
  expect_in(message([&] { net.softmax("softmax", a); }), {"layer softmax", "1x4x8x8"});
  expect_in(message([&] { net.conv("still", a, 4, same(3, 0)); }), {"layer still", "stride 0"});
}

/// PyTorch refuses it, too: the gradient would be 0, and the running variance wrong.
TEST(Network, RefusesToNormaliseOneValueAChannel) {
  Model net("Lone", {1, 3, 8, 8});
  const auto pooled = net.average_pool("pool", 0, valid(8));
  net.softmax("softmax", net.linear("fc", net.batch_norm("bn", pooled, true), 5, false));
  const auto device = make_reference_device();
  expect_in(message([&] { Network(net, *device, 1); }),
            {"Lone", "layer bn", "single value of each channel", "--batch"});
  EXPECT_EQ(message([&] { Network(net, *device, 2); }), "no error");
  EXPECT_EQ(message([&] { Network(net, *device, 1, false); }), "no error");
}

TEST(Model, NamesLayersOfABlockAfterIt) {
  Model net("Blocks", {1, 3, 8, 8});
  net.block("module");
  net.conv("conv", 0, 4, same(3));
  net.block("");
  net.conv("conv", 0, 4, same(3));
  EXPECT_EQ(net.nodes()[1].name, "module/conv");
  EXPECT_EQ(net.nodes()[1].block, "module");
  EXPECT_EQ(net.nodes()[2].name, "conv");
  EXPECT_EQ(net.parameters(net.nodes()[1])[0].name, "module/conv.weight");
}

/// Returns the number in "a batch of 7 would fit", or 0 if there is none.
std::int64_t batch_in(const std::string& text) {
  const std::string before = "; a batch of ";
  const std::size_t begin = text.find(before);
  return begin == std::string::npos ? 0 : std::stoll(text.substr(begin + before.size()));
}

TEST(Network, SaysWhichBatchWouldFit) {
  const auto device = make_reference_device();
  const auto arena = [&](std::int64_t batch) {
    return Network(test::all_kinds(), *device, batch).arena_bytes();
  };
  test::RememberingDevice scarce(*device);
  scarce.limit(arena(10));
  const std::string too_many = message([&] { Network(test::all_kinds(), scarce, 25); });
  expect_in(too_many, {"All kinds", "batch 25", "out of memory", "a batch of "});
  const std::int64_t fits = batch_in(too_many);
  EXPECT_GE(fits, 9);
  EXPECT_LE(arena(fits), arena(10));
  EXPECT_NO_THROW(Network(test::all_kinds(), scarce, fits));
  scarce.limit(arena(1) / 8);
  expect_in(message([&] { Network(test::all_kinds(), scarce, 25); }), {"not even a batch of 1"});
}

TEST(Network, SaysWhichBatchWouldLeaveRoomForTheOptimiser) {
  const auto device = make_reference_device();
  test::RememberingDevice scarce(*device);
  Network network(test::all_kinds(), scarce, 25);
  const std::size_t lacking = network.weights().desc.bytes / 4;
  scarce.limit(network.weights().desc.bytes - lacking);
  OptimiserSpec momentum;
  momentum.momentum = 0.9F;
  const std::string text = message([&] { LocalExchange(network, momentum, {0.01, {}, 0.1, 0}); });
  expect_in(text, {"All kinds", "batch 25", "out of memory"});
  const auto arena = [&](std::int64_t batch) {
    return Network(test::all_kinds(), *device, batch).arena_bytes();
  };
  const std::int64_t fits = batch_in(text);
  EXPECT_LE(arena(fits) + lacking, arena(25));
  EXPECT_GT(arena(fits + 2) + lacking, arena(25));
}

TEST(Network, ErrorsOfARunNameTheLayer) {
  const auto device = make_reference_device();
  Network network(test::all_kinds(), *device, 2);
  network.initialise(1);
  const std::vector<float> images(2 * 3 * 13 * 13, 0.5F);
  const std::vector<std::int32_t> labels{1, 99};
  ForwardContext context;
  context.labels = labels.data();
  expect_in(message([&] { network.forward(images.data(), context); }),
            {"All kinds, layer ", "99", "classes"});
}

}  // namespace
}  // namespace duplex
