#include "tests/core/operations/backends.h"

#include <limits>

#include "core/gpu/cuda.h"
#include "core/reference/device.h"
#ifdef DUPLEX_ONEDNN
#include "core/onednn/device.h"
#endif

namespace duplex::test {

std::vector<std::string> backends() {
  std::vector<std::string> names = fast_backends();
  names.insert(names.begin(), "reference");
  return names;
}

std::vector<std::string> fast_backends() {
  std::vector<std::string> names{"onednn"};
  if (has_cuda_device()) names.insert(names.end(), {"cudnn", "cudnn_nhwc"});
  return names;
}

std::vector<std::string> rounding_backends() {
  std::vector<std::string> names = fast_backends();
  if (has_cuda_device()) names.insert(names.end(), {"cudnn_bf16", "cudnn_bf16_nhwc"});
  return names;
}

std::string backend_label(const ::testing::TestParamInfo<std::string>& backend) {
  return backend.param;
}

std::unique_ptr<Device> make_backend(const std::string& name, int threads) {
  if (name == "reference") return make_reference_device();
  if (name == "cudnn") return make_cuda_device();
  if (name == "cudnn_nhwc") return make_cuda_device({0, Precision::float32, true});
  if (name == "cudnn_bf16") return make_cuda_device({0, Precision::bf16, false});
  if (name == "cudnn_bf16_nhwc") return make_cuda_device({0, Precision::bf16, true});
#ifdef DUPLEX_ONEDNN
  if (name == "onednn") return make_onednn_device(threads);
#endif
  (void)threads;
  return nullptr;
}

void BackendTest::SetUp() {
  device = make_backend(GetParam(), threads);
  if (!device) GTEST_SKIP() << GetParam() << " is not built in";
}

void ComparisonTest::SetUp() {
  threads = 2;
  BackendTest::SetUp();
  reference = make_backend("reference");
}

Tensor Memory::poisoned(const TensorDesc& desc) {
  buffers_.push_back(device_.allocate(desc.bytes));
  Tensor tensor{desc, static_cast<float*>(buffers_.back().data())};
  poison(tensor);
  return tensor;
}

Tensor Memory::holding(const TensorDesc& desc, const std::vector<float>& values) {
  Tensor tensor = poisoned(desc);
  EXPECT_EQ(static_cast<std::int64_t>(values.size()), desc.shape.elements());
  device_.upload(tensor, values.data());
  return tensor;
}

void Memory::poison(Tensor& tensor) {
  device_.fill(tensor, std::numeric_limits<float>::quiet_NaN());
}

std::vector<float> Memory::read(const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.shape().elements()));
  device_.download(values.data(), tensor);
  return values;
}

TensorDesc convolved_desc(Device& device, const Shape& shape) {
  ConvSpec spec;
  spec.filters = shape.c();
  spec.window = {3, 3, 1, 1, {1, 1, 1, 1}};
  return device.conv(spec, plain_desc({shape.n(), 16, shape.h(), shape.w()}))->y;
}

}  // namespace duplex::test
