// A device to plan with: a network is made on it to see what memory it would take.
#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/device.h"

namespace duplex::tools {

/// It makes the operations of another device, and gives out addresses that have no memory: what is
/// made on it has every size that it would have on the other, and takes no memory for it. Nothing
/// can be computed, and to read or write what it has allocated ends the program.
class PlanningDevice final : public Device {
 public:
  /// `operations` makes the operations, and must outlive this.
  explicit PlanningDevice(Device& operations) : operations_(operations) {}

  std::string name() const override { return operations_.name(); }
  std::string description() const override { return operations_.description(); }

  Buffer allocate(std::size_t bytes) override;
  OperationMemory operation_memory() const override { return operations_.operation_memory(); }
  /// Returns the bytes that the operations of each layer keep, in the order in which the layers
  /// were bound.
  std::vector<std::pair<std::string, std::size_t>> kept_by_layer() const;

  void upload(Tensor&, const float*) override { refuse(); }
  void download(float*, const Tensor&) override { refuse(); }
  void convert(Tensor&, const Tensor&) override { refuse(); }
  void fill(Tensor&, float) override {}
  bool finite(const std::vector<Tensor>&) override { refuse(); }
  void accumulate(Tensor&, const Tensor&) override { refuse(); }
  void update(const OptimiserStep&, Tensor&, const Tensor&, std::vector<Tensor>&) override {
    refuse();
  }
  bool choose_channels_last(bool last) override { return operations_.choose_channels_last(last); }
  void synchronize() override {}
  void begin_layer(const std::string& name) override;

  std::unique_ptr<Conv> conv(const ConvSpec& spec, const TensorDesc& x) override {
    return operations_.conv(spec, x);
  }
  std::unique_ptr<Linear> linear(const LinearSpec& spec, const TensorDesc& x) override {
    return operations_.linear(spec, x);
  }
  std::unique_ptr<Pool> pool(const PoolSpec& spec, const TensorDesc& x) override {
    return operations_.pool(spec, x);
  }
  std::unique_ptr<Lrn> lrn(const LrnSpec& spec, const TensorDesc& x) override {
    return operations_.lrn(spec, x);
  }
  std::unique_ptr<BatchNorm> batch_norm(const BatchNormSpec& spec, const TensorDesc& x) override {
    return operations_.batch_norm(spec, x);
  }
  std::unique_ptr<Activation> activation(ActivationKind kind, const TensorDesc& x) override {
    return operations_.activation(kind, x);
  }
  std::unique_ptr<Dropout> dropout(float rate, const TensorDesc& x) override {
    return operations_.dropout(rate, x);
  }
  std::unique_ptr<Concat> concat(const std::vector<TensorDesc>& x) override {
    return operations_.concat(x);
  }
  std::unique_ptr<Add> add(bool relu, const TensorDesc& a, const TensorDesc& b) override {
    return operations_.add(relu, a, b);
  }
  std::unique_ptr<PadChannels> pad_channels(std::int64_t channels, const TensorDesc& x) override {
    return operations_.pad_channels(channels, x);
  }
  std::unique_ptr<GradientSum> gradient_sum(const TensorDesc& y) override {
    return operations_.gradient_sum(y);
  }
  std::unique_ptr<Loss> loss(LossKind kind, const TensorDesc& x) override {
    return operations_.loss(kind, x);
  }

 private:
  [[noreturn]] static void refuse();

  Device& operations_;
  std::vector<std::pair<std::string, std::size_t>> layers_;  ///< What was kept as each was begun.
};

}  // namespace duplex::tools
