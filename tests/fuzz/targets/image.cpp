// JPEG and PNG files. A PNG is read as it is, and with the checksums of its chunks set right, which
// nothing else would pass.
#include "datasets/decoding/image.h"
#include "datasets/decoding/gzip.h"
#include "tests/fuzz/target.h"

namespace duplex::fuzz {
namespace {

void mend_checksums(Bytes& file) {
  for (std::size_t at = 8; file.size() >= at + 12;) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | file[at + i];
    if (file.size() - at - 12 < length) return;
    const std::uint32_t sum = datasets::crc32(file.data() + at + 4, length + 4);
    for (std::size_t i = 0; i < 4; ++i)
      file[at + 8 + length + i] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
    at += 12 + length;
  }
}

void decode(const Bytes& file) {
  datasets::ImageSize size{0, 0};
  if (!reads(file, 1, [&] { size = datasets::check_image(file.data(), file.size()); })) return;
  // Deflate makes 1032 bytes of one, and the densest PNG has eight pixels in a byte. The decoder
  // takes some bytes for each pixel.
  const std::size_t pixels =
      static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height);
  require(pixels <= std::size_t{8} * 1032 * file.size(),
          "an image has more pixels than its file can hold");
  for (const int channels : {1, 3}) {
    reads(file, std::size_t{8} * 1032 * 12, [&] {
      const datasets::Image image = datasets::decode_image(file.data(), file.size(), channels);
      require(image.channels == channels, "an image has other channels");
      touch(image.pixels.get(), pixels * static_cast<std::size_t>(channels));
    });
  }
}

}  // namespace

void image(const Bytes& input) {
  decode(input);
  if (input.empty() || input[0] != 0x89) return;
  Bytes file = input;
  mend_checksums(file);
  if (file != input) decode(file);
}

}  // namespace duplex::fuzz
