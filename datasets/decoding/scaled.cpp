#include "datasets/decoding/scaled.h"

#include <algorithm>
#include <cstring>

#include "datasets/decoding/resample.h"

namespace duplex::datasets {
namespace {

Catalogue at_shape(Catalogue catalogue, const Shape& shape) {
  catalogue.shape = shape;
  return catalogue;
}

}  // namespace

ScaledDataset::ScaledDataset(std::shared_ptr<const Dataset> data, const Shape& shape)
    : Dataset(at_shape(data->catalogue(), shape)), data_(std::move(data)) {}

const std::uint8_t* ScaledDataset::read(std::size_t index, std::uint8_t* scratch) const {
  const auto height = static_cast<int>(shape().h()), width = static_cast<int>(shape().w());
  read_framed(
      index, [=](ImageSize image) { return squashed(image, height, width); }, scratch);
  return scratch;
}

void ScaledDataset::read_framed(std::size_t index, const Framer& framer,
                                std::uint8_t* scratch) const {
  const Shape& from = data_->shape();
  const ImageSize image{static_cast<int>(from.w()), static_cast<int>(from.h())};
  const Framing framing = framer(image);
  std::vector<std::uint8_t> own(data_->sample_bytes());
  const std::uint8_t* planes = data_->read(index, own.data());
  const auto area = static_cast<std::size_t>(from.h() * from.w());
  std::vector<std::uint8_t> grey;
  if (from.c() == 3 && shape().c() == 1) {
    grey.resize(area);
    for (std::size_t i = 0; i < area; ++i) {
      // This is the luma of Rec. 601, in 256ths, as decode_image computes it.
      grey[i] = static_cast<std::uint8_t>(
          (77 * planes[i] + 150 * planes[area + i] + 29 * planes[2 * area + i]) >> 8);
    }
    planes = grey.data();
  }
  const std::int64_t scaled = std::min(from.c(), shape().c());
  const auto plane = static_cast<std::size_t>(shape().h() * shape().w());
  for (std::int64_t c = 0; c < shape().c(); ++c) {
    std::uint8_t* to = scratch + static_cast<std::size_t>(c) * plane;
    if (c < scaled) {
      resample(to, static_cast<int>(shape().h()), static_cast<int>(shape().w()),
               planes + static_cast<std::size_t>(c) * area, image, 1, framing);
    } else {
      std::memcpy(to, scratch, plane);
    }
  }
}

}  // namespace duplex::datasets
