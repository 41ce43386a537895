// What models and networks refuse, and how they say so.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/reference/device.h"
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

TEST(Network, SaysWhichBatchWouldFit) {
  const auto device = make_reference_device();
  const std::size_t for_ten = Network(test::all_kinds(), *device, 10).arena_bytes();
  test::RememberingDevice scarce(*device);
  scarce.limit(for_ten);
  const std::string too_many = message([&] { Network(test::all_kinds(), scarce, 25); });
  expect_in(too_many, {"All kinds", "batch 25", "out of memory", "a batch of "});
  const std::string number = too_many.substr(too_many.find("a batch of ") + 11);
  const std::int64_t fits = std::stoll(number);
  EXPECT_GE(fits, 9);
  EXPECT_LE(Network(test::all_kinds(), *device, fits).arena_bytes(), for_ten);
  EXPECT_NO_THROW(Network(test::all_kinds(), scarce, fits));
  scarce.limit(Network(test::all_kinds(), *device, 1).arena_bytes() / 8);
  expect_in(message([&] { Network(test::all_kinds(), scarce, 25); }), {"not even a batch of 1"});
}

TEST(Network, ErrorsOfARunNameTheLayer) {
  const auto device = make_reference_device();
  Network network(test::all_kinds(), *device, 2);
  network.initialise(1);
  const std::vector<float> images(2 * 3 * 13 * 13, 0.5F);
  const std::vector<std::int32_t> labels{1, 99};
  Pass pass;
  pass.labels = labels.data();
  expect_in(message([&] { network.forward(images.data(), pass); }),
            {"All kinds, layer ", "99", "classes"});
}

}  // namespace
}  // namespace duplex
