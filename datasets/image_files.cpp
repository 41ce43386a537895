#include "datasets/image_files.h"

#include "datasets/decoding/image.h"
#include "datasets/decoding/resample.h"
#include "datasets/file.h"

namespace duplex::datasets {
namespace {

Catalogue catalogue_of(const std::vector<std::string>& paths, const Shape& shape) {
  Catalogue catalogue;
  catalogue.shape = shape;
  for (const std::string& path : paths) catalogue.samples.push_back({path, 0, Use::test, 0, 0});
  return catalogue;
}

}  // namespace

void read_image(const std::string& path, const Shape& shape, const Framer& framer,
                std::uint8_t* to) {
  const std::vector<std::uint8_t> file = read_file(path, max_image_bytes);
  const auto channels = static_cast<int>(shape.c());
  const Image image = decode_image(file.data(), file.size(), channels);
  resample(to, static_cast<int>(shape.h()), static_cast<int>(shape.w()), image.pixels.get(),
           image.size, channels, framer(image.size));
}

void read_image(const std::string& path, const Shape& shape, std::uint8_t* to) {
  const auto height = static_cast<int>(shape.h()), width = static_cast<int>(shape.w());
  read_image(
      path, shape, [=](ImageSize image) { return squashed(image, height, width); }, to);
}

ImageFiles::ImageFiles(const std::vector<std::string>& paths, const Shape& shape)
    : Dataset(catalogue_of(paths, shape)) {}

const std::uint8_t* ImageFiles::read(std::size_t index, std::uint8_t* scratch) const {
  read_image(sample(index).name, shape(), scratch);
  return scratch;
}

void ImageFiles::read_framed(std::size_t index, const Framer& framer, std::uint8_t* scratch) const {
  read_image(sample(index).name, shape(), framer, scratch);
}

}  // namespace duplex::datasets
