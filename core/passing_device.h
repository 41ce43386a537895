// A device that makes the operations of another one. Devices that differ from it in their memory
// inherit it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"

namespace duplex {

/// Whatever has no override here is as in Device, and not as the inner device has it.
class PassingDevice : public Device {
 public:
  /// `inner` must outlive this.
  explicit PassingDevice(Device& inner) : inner_(inner) {}

  std::string name() const override { return inner_.name(); }
  std::string description() const override { return inner_.description(); }

  void announce(const std::vector<ConvOn>& convs) override { inner_.announce(convs); }
  std::unique_ptr<Conv> conv(const ConvSpec& spec, const TensorDesc& x) override {
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
  std::unique_ptr<Loss> loss(const LossSpec& spec, const TensorDesc& x) override {
    return inner_.loss(spec, x);
  }

 protected:
  Device& inner() { return inner_; }
  const Device& inner() const { return inner_; }

 private:
  Device& inner_;
};

}  // namespace duplex
