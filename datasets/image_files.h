// Reads images by their paths: those that a trained network is asked about.
#pragma once
#include <string>
#include <vector>

#include "datasets/dataset.h"

namespace duplex::datasets {

/// Reads the framing of an image in a file that `framer` chooses, of `shape`, (1, C, H, W), as C
/// planes of H x W bytes. Throws Error with the reason alone.
void read_image(const std::string& path, const Shape& shape, const Framer& framer,
                std::uint8_t* to);
/// Does the same with the whole image, squashed.
void read_image(const std::string& path, const Shape& shape, std::uint8_t* to);

/// Images without classes, in the order of their paths. It opens no file before read().
class ImageFiles : public Dataset {
 public:
  ImageFiles(const std::vector<std::string>& paths, const Shape& shape);

  std::string source() const override { return "the images that were given"; }
  const std::uint8_t* read(std::size_t index, std::uint8_t* scratch) const override;
  void read_framed(std::size_t index, const Framer& framer, std::uint8_t* scratch) const override;
};

}  // namespace duplex::datasets
