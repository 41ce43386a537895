// Gives a data set another size or other colours than its source has.
#pragma once
#include "datasets/dataset.h"

namespace duplex::datasets {

/// Scales every sample of `data` (resample) and turns colour into grey (luma) or grey into colour
/// (repeated). Names, labels and uses are those of `data`.
class ScaledDataset : public Dataset {
 public:
  ScaledDataset(std::shared_ptr<const Dataset> data, const Shape& shape);

  std::string source() const override { return data_->source(); }
  const std::uint8_t* read(std::size_t index, std::uint8_t* scratch) const override;
  void read_framed(std::size_t index, const Framer& framer, std::uint8_t* scratch) const override;

 private:
  std::shared_ptr<const Dataset> data_;
};

}  // namespace duplex::datasets
