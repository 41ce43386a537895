// A data set at another size or in other colours than its source has.
#pragma once
#include "datasets/dataset.h"

namespace duplex::datasets {

/// Scales every sample of `data` (resample) and makes grey of colour (luma) or colour of grey
/// (repeated). Names, labels and uses are those of `data`.
class ScaledDataset : public Dataset {
 public:
  ScaledDataset(std::shared_ptr<const Dataset> data, const Shape& shape);

  std::string source() const override { return data_->source(); }
  const std::uint8_t* read(std::size_t index, std::uint8_t* scratch) const override;

 private:
  std::shared_ptr<const Dataset> data_;
};

}  // namespace duplex::datasets
