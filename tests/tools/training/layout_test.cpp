// Tests that a layout which fails leaves the other one to a training.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/error.h"
#include "core/passing_device.h"
#include "core/reference/device.h"
#include "models/registry.h"
#include "tools/setup/device_spec.h"

namespace duplex::tools {
namespace {

/// It has two layouts, of which some have no convolutions.
class PickyDevice final : public PassingDevice {
 public:
  PickyDevice(Device& inner, bool planes, bool side_by_side)
      : PassingDevice(inner), planes_(planes), side_by_side_(side_by_side) {}

  bool channels_last() const { return last_; }

  bool choose_channels_last(bool last) override {
    last_ = last;
    return true;
  }
  std::unique_ptr<Conv> conv(const ConvSpec& spec, const TensorDesc& x) override {
    if (last_ ? !side_by_side_ : !planes_)
      throw Error(std::string("no engine in ") + (last_ ? "NHWC" : "NCHW"));
    return inner().conv(spec, x);
  }
  Buffer allocate(std::size_t bytes) override { return inner().allocate(bytes); }
  void upload(Tensor& to, const float* from) override { inner().upload(to, from); }
  void download(float* to, const Tensor& from) override { inner().download(to, from); }
  void fill(Tensor& tensor, float value) override { inner().fill(tensor, value); }
  bool finite(const std::vector<Tensor>& tensors) override { return inner().finite(tensors); }
  void accumulate(Tensor& to, const Tensor& from) override { inner().accumulate(to, from); }
  void update(const OptimiserStep& step, Tensor& weights, const Tensor& gradient,
              std::vector<Tensor>& state) override {
    inner().update(step, weights, gradient, state);
  }
  void synchronize() override { inner().synchronize(); }

 private:
  bool planes_, side_by_side_, last_ = false;
};

TEST(Layout, IsTheOneThatWorks) {
  const auto reference = make_reference_device();
  const Model model = models::build("lenet", {});
  for (const bool last : {false, true}) {
    PickyDevice device(*reference, !last, last);
    std::string said;
    const auto network = DeviceSpec().build(model, device, 2, true, &said);
    EXPECT_EQ(device.channels_last(), last);
    const std::string works = last ? "NHWC" : "NCHW", fails = last ? "NCHW" : "NHWC";
    EXPECT_EQ(said.find("layout " + works + ": "), 0U) << said;
    EXPECT_NE(said.find("no engine in " + fails + ") in " + fails), std::string::npos) << said;
  }
}

TEST(Layout, FailsWhereNoneWorks) {
  const auto reference = make_reference_device();
  PickyDevice device(*reference, false, false);
  try {
    DeviceSpec().build(models::build("lenet", {}), device, 2);
    FAIL() << "a network was made";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no engine in NCHW"), std::string::npos);
  }
}

}  // namespace
}  // namespace duplex::tools
