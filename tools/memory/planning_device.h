// A device to plan with: a network is made on it to see what memory it would take.
#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/passing_device.h"

namespace duplex::tools {

/// It makes the operations of another device, and gives out addresses that have no memory: what is
/// made on it has every size that it would have on the other, and takes no memory for it. Nothing
/// can be computed, and to read or write what it has allocated ends the program.
class PlanningDevice final : public PassingDevice {
 public:
  /// `operations` makes the operations, and must outlive this.
  explicit PlanningDevice(Device& operations) : PassingDevice(operations) {}

  Buffer allocate(std::size_t bytes) override;
  OperationMemory operation_memory() const override { return inner().operation_memory(); }
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
  std::shared_ptr<void> keep_rounded(const Tensor& weights) override {
    return inner().keep_rounded(weights);
  }
  bool choose_channels_last(bool last) override { return inner().choose_channels_last(last); }
  void synchronize() override {}
  void begin_layer(const std::string& name) override;

 private:
  [[noreturn]] static void refuse();

  std::vector<std::pair<std::string, std::size_t>> layers_;  ///< What was kept as each was begun.
};

}  // namespace duplex::tools
