// Reads IDX, the format of MNIST and its kin. Each part has a file of images and a file of labels.
#pragma once
#include <string>
#include <vector>

#include "datasets/dataset.h"

namespace duplex::datasets {

/// Keeps the whole set in memory, as grey images. If there are t10k- files, they hold the samples
/// to test on.
class IdxDataset : public Dataset {
 public:
  /// Reads train-images-idx3-ubyte and train-labels-idx1-ubyte, and the two t10k- files if they are
  /// there, each plain or with ".gz".
  static std::shared_ptr<const Dataset> open(const std::string& folder);
  /// Returns whether a folder holds a train-images file.
  static bool is_there(const std::string& folder);

  std::string source() const override { return "the IDX files in '" + folder_ + "'"; }
  const std::uint8_t* read(std::size_t index, std::uint8_t* scratch) const override;

 private:
  IdxDataset(Catalogue catalogue, std::string folder, std::vector<std::uint8_t> pixels)
      : Dataset(std::move(catalogue)), folder_(std::move(folder)), pixels_(std::move(pixels)) {}

  std::string folder_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace duplex::datasets
