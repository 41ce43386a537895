// A folder of pictures in Caltech256's layout: a folder for each class, `001.ak47/001_0001.jpg`.
#pragma once
#include <string>

#include "datasets/dataset.h"

namespace duplex::datasets {

/// Classes and pictures are numbered in the order of their names. Pictures are decoded and scaled,
/// the aspect ratio given up, whenever they are read.
class FolderDataset : public Dataset {
 public:
  /// Reads every picture once to check its structure (check_picture). One that fails is skipped, or
  /// is an error if options.strict. Hidden files, files that no picture's ending, and folders in a
  /// class's folder are ignored. A class left without pictures is an error.
  static std::shared_ptr<const Dataset> open(const std::string& folder,
                                             const DatasetOptions& options);

  std::string source() const override { return "the folder '" + folder_ + "'"; }
  const std::uint8_t* read(std::size_t index, std::uint8_t* scratch) const override;

 private:
  FolderDataset(Catalogue catalogue, std::string folder)
      : Dataset(std::move(catalogue)), folder_(std::move(folder)) {}

  std::string folder_;
};

}  // namespace duplex::datasets
