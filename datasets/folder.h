// Reads a folder of images in Caltech256's layout, which has a folder for each class:
// `001.ak47/001_0001.jpg`.
#pragma once
#include <string>

#include "datasets/dataset.h"

namespace duplex::datasets {

/// Numbers classes and images in the order of their names. Every read() decodes the image and
/// scales it without keeping its aspect ratio.
class FolderDataset : public Dataset {
 public:
  /// Reads every image once to check its structure (check_image). An image that fails is skipped,
  /// or is an error if options.strict. Hidden files, files without an image's ending, and folders
  /// in a class's folder are ignored. A class left without images is an error.
  static std::shared_ptr<const Dataset> open(const std::string& folder,
                                             const DatasetOptions& options);

  std::string source() const override { return "the folder '" + folder_ + "'"; }
  const std::uint8_t* read(std::size_t index, std::uint8_t* scratch) const override;
  void read_framed(std::size_t index, const Framer& framer, std::uint8_t* scratch) const override;

 private:
  FolderDataset(Catalogue catalogue, std::string folder)
      : Dataset(std::move(catalogue)), folder_(std::move(folder)) {}

  std::string folder_;
};

}  // namespace duplex::datasets
