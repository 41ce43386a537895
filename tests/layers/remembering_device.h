// Defines a device that passes everything on to another and remembers what was allocated, so that a
// test can spoil memory that should not be read.
#pragma once
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/error.h"
#include "core/passing_device.h"

namespace duplex::test {

class RememberingDevice final : public PassingDevice {
 public:
  explicit RememberingDevice(Device& inner) : PassingDevice(inner) {}

  /// Returns the one allocation of this size, as a plain tensor of rank 1.
  Tensor allocation_of(std::size_t bytes) const {
    std::vector<Tensor> found;
    for (const Tensor& tensor : allocations_) {
      if (tensor.desc.bytes == bytes) found.push_back(tensor);
    }
    EXPECT_EQ(found.size(), 1U) << "allocations of " << bytes << " bytes";
    return found.at(0);
  }

  /// Returns the specs of the convolutions, in the order in which they were made.
  const std::vector<ConvSpec>& convolutions() const { return convolutions_; }

  /// Returns the convolutions that were announced before the first of them.
  const std::vector<ConvOn>& announced() const { return announced_; }
  /// Returns the shapes of the convolutions' x.
  const std::vector<Shape>& convolved() const { return convolved_; }

  /// From now on, an allocation of more bytes fails.
  void limit(std::size_t bytes) { limit_ = bytes; }

  Buffer allocate(std::size_t bytes) override {
    if (bytes > limit_) throw OutOfMemory("out of memory", bytes, limit_);
    Buffer buffer = inner().allocate(bytes);
    allocations_.push_back({plain_desc({static_cast<std::int64_t>(bytes / sizeof(float))}),
                            static_cast<float*>(buffer.data())});
    return buffer;
  }

  void upload(Tensor& to, const float* from) override { inner().upload(to, from); }
  void download(float* to, const Tensor& from) override { inner().download(to, from); }
  void convert(Tensor& to, const Tensor& from) override { inner().convert(to, from); }
  void fill(Tensor& tensor, float value) override { inner().fill(tensor, value); }
  bool finite(const std::vector<Tensor>& tensors) override { return inner().finite(tensors); }
  void keep_nan(bool on) override { inner().keep_nan(on); }
  void accumulate(Tensor& to, const Tensor& from) override { inner().accumulate(to, from); }
  void update(const OptimiserStep& step, Tensor& weights, const Tensor& gradient,
              std::vector<Tensor>& state) override {
    inner().update(step, weights, gradient, state);
  }
  void synchronize() override { inner().synchronize(); }

  void announce(const std::vector<ConvOn>& convs) override {
    if (convolutions_.empty()) announced_.insert(announced_.end(), convs.begin(), convs.end());
  }
  std::unique_ptr<Conv> conv(const ConvSpec& spec, const TensorDesc& x) override {
    convolutions_.push_back(spec);
    convolved_.push_back(x.shape);
    return inner().conv(spec, x);
  }

 private:
  std::size_t limit_ = std::numeric_limits<std::size_t>::max();
  std::vector<Tensor> allocations_;
  std::vector<ConvSpec> convolutions_;
  std::vector<Shape> convolved_;
  std::vector<ConvOn> announced_;
};

}  // namespace duplex::test
