// Provides files for the tests of data sets: temporary folders, images drawn at run time, and
// recorded images.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"
#include "datasets/dataset.h"
#include "tests/temporary_folder.h"

namespace duplex::datasets::testing {

using Bytes = std::vector<std::uint8_t>;

/// Writes a file, and makes the folders that it lies in.
void write_bytes(const std::string& path, const Bytes& content);
Bytes read(const std::string& path);

/// Returns an image file of tests/datasets/images. The JPEGs are 19x13, but large.jpg is 150x110.
Bytes recorded(const std::string& name);

/// Returns a PNG of smooth colours and one hard edge; images of different seeds differ.
Bytes draw_png(int width, int height, unsigned seed, int channels = 3);

/// Returns a 4x4 PNG with these bytes as its compressed pixels; its checksums are right.
Bytes png_around(const Bytes& compressed);

struct PlainImage {
  int width, height;
  Bytes pixels;  ///< RGB, interleaved.
};
PlainImage read_ppm(const std::string& name);

/// Keeps a data set in memory whose pixels tell the sample: every byte of sample i is (i * 7) mod
/// 251. Reading a sample of `broken` throws.
class CountedDataset : public Dataset {
 public:
  CountedDataset(std::size_t size, int classes, const Shape& shape,
                 std::vector<std::size_t> broken = {});
  std::string source() const override { return "the counted set"; }
  const std::uint8_t* read(std::size_t index, std::uint8_t* scratch) const override;
  static std::uint8_t value(std::size_t index) {
    return static_cast<std::uint8_t>(index * 7 % 251);
  }

 private:
  std::vector<std::size_t> broken_;
};

/// Selects all samples of a data set.
Subset all_of(const std::shared_ptr<const Dataset>& data);

/// Returns the message of the Error that `run` throws, or "" if it throws none.
template <typename Run>
std::string error_of(const Run& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace duplex::datasets::testing
