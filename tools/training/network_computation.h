// The training loop's computation on a device: batches from a loader go through a network.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "datasets/loader.h"
#include "layers/network.h"
#include "tools/training/computation.h"

namespace duplex::tools {

/// The source of batches.
struct BatchSource {
  std::function<const datasets::Batch&()> next;    ///< Gives a batch; takes back the last one.
  std::size_t bytes = 0;                           ///< Bytes of a batch's pixels.
  std::vector<datasets::BatchLoader::Room> rooms;  ///< Memory of pixels, pinned for the device.
};
BatchSource batches_of(datasets::BatchLoader& loader);

class NetworkComputation final : public LayerComputation {
 public:
  /// `seed` is dropout's. `looks` says in which steps it looks for NaN (divergence.h). The network
  /// and what `source` refers to must outlive it.
  NetworkComputation(Network& network, BatchSource source, std::uint64_t seed,
                     std::function<bool(std::uint64_t step)> looks);
  ~NetworkComputation() override;
  /// From now on counts the hits of every batch, unless the device computes while the host goes on:
  /// its outputs would have to be waited for.
  void count_hits();

  std::size_t layers() const override { return network_.layers(); }
  const std::vector<std::size_t>& parameters_of(std::size_t layer) const override {
    return network_.parameters_of(layer);
  }
  void begin(std::uint64_t step) override;
  void forward(std::size_t layer) override;
  void backward(std::size_t layer) override;
  void forward_all() override;
  void backward_all() override;
  /// On a device that computes while the host goes on, also gets the next batch and copies it in
  /// the meantime.
  void synchronize() override;
  StepOutcome outcome() override;

 private:
  ForwardContext context() const { return {true, seed_, batch_->first_sample, batch_->labels}; }
  void begin_forward();
  void end_forward();
  void next_batch();
  Hits hits() const;

  Network& network_;
  BatchSource source_;
  std::uint64_t seed_;
  std::function<bool(std::uint64_t step)> looks_;
  std::vector<std::shared_ptr<void>> pinned_;
  std::uint64_t step_ = 0;
  bool look_ = false, counts_hits_ = false;
  Hits hits_;                              ///< Those of the step, if they are counted.
  std::optional<KeepingNan> keeping_nan_;  ///< Set in the forward of a step that looks.
  const datasets::Batch* batch_ = nullptr;
  std::unique_ptr<Transfer> copy_;
};

}  // namespace duplex::tools
