// Defines a device that passes everything on to another and remembers what was allocated, so that a
// test can spoil memory that should not be read.
#pragma once
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/device.h"
#include "core/error.h"

namespace duplex::test {

class RememberingDevice final : public Device {
 public:
  explicit RememberingDevice(Device& inner) : inner_(inner) {}

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

  /// From now on, an allocation of more bytes fails.
  void limit(std::size_t bytes) { limit_ = bytes; }

  Buffer allocate(std::size_t bytes) override {
    if (bytes > limit_) throw OutOfMemory("out of memory", bytes, limit_);
    Buffer buffer = inner_.allocate(bytes);
    allocations_.push_back({plain_desc({static_cast<std::int64_t>(bytes / sizeof(float))}),
                            static_cast<float*>(buffer.data())});
    return buffer;
  }

  std::string name() const override { return inner_.name(); }
  std::string description() const override { return inner_.description(); }
  void upload(Tensor& to, const float* from) override { inner_.upload(to, from); }
  void download(float* to, const Tensor& from) override { inner_.download(to, from); }
  void convert(Tensor& to, const Tensor& from) override { inner_.convert(to, from); }
  void fill(Tensor& tensor, float value) override { inner_.fill(tensor, value); }
  bool finite(const std::vector<Tensor>& tensors) override { return inner_.finite(tensors); }
  void keep_nan(bool on) override { inner_.keep_nan(on); }
  void accumulate(Tensor& to, const Tensor& from) override { inner_.accumulate(to, from); }
  void update(const OptimiserStep& step, Tensor& weights, const Tensor& gradient,
              std::vector<Tensor>& state) override {
    inner_.update(step, weights, gradient, state);
  }
  void synchronize() override { inner_.synchronize(); }

  std::unique_ptr<Conv> conv(const ConvSpec& spec, const TensorDesc& x) override {
    convolutions_.push_back(spec);
    return inner_.conv(spec, x);
  }
  std::unique_ptr<Linear> linear(const LinearSpec& spec, const TensorDesc& x) override {
    return inner_.linear(spec, x);
  }
  std::unique_ptr<Pool> pool(const PoolSpec& spec, const TensorDesc& x) override {
    return inner_.pool(spec, x);
  }
  std::unique_ptr<Lrn> lrn(const LrnSpec& spec, const TensorDesc& x) override {
    return inner_.lrn(spec, x);
  }
  std::unique_ptr<BatchNorm> batch_norm(const BatchNormSpec& spec, const TensorDesc& x) override {
    return inner_.batch_norm(spec, x);
  }
  std::unique_ptr<Activation> activation(ActivationKind kind, const TensorDesc& x) override {
    return inner_.activation(kind, x);
  }
  std::unique_ptr<Dropout> dropout(float rate, const TensorDesc& x) override {
    return inner_.dropout(rate, x);
  }
  std::unique_ptr<Concat> concat(const std::vector<TensorDesc>& x) override {
    return inner_.concat(x);
  }
  std::unique_ptr<Add> add(bool relu, const TensorDesc& a, const TensorDesc& b) override {
    return inner_.add(relu, a, b);
  }
  std::unique_ptr<PadChannels> pad_channels(std::int64_t channels, const TensorDesc& x) override {
    return inner_.pad_channels(channels, x);
  }
  std::unique_ptr<GradientSum> gradient_sum(const TensorDesc& y) override {
    return inner_.gradient_sum(y);
  }
  std::unique_ptr<Loss> loss(LossKind kind, const TensorDesc& x) override {
    return inner_.loss(kind, x);
  }

 private:
  Device& inner_;
  std::size_t limit_ = std::numeric_limits<std::size_t>::max();
  std::vector<Tensor> allocations_;
  std::vector<ConvSpec> convolutions_;
};

}  // namespace duplex::test
