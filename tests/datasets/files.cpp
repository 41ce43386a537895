#include "tests/datasets/files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

#include "datasets/decoding/gzip.h"

namespace duplex::datasets::testing {
namespace fs = std::filesystem;
namespace {

Bytes scene(int width, int height, unsigned seed, int channels) {
  Bytes pixels;
  const double turn = 0.7 * seed;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double across = static_cast<double>(x) / width, down = static_cast<double>(y) / height;
      for (int c = 0; c < channels; ++c) {
        const bool box = x < width / 3 && y > height / 2;
        const double value =
            box ? 40.0 * (c + 1) + seed % 50
                : 127 + 100 * std::sin(turn + 5 * across + c) * std::cos(turn + 3 * down - c);
        pixels.push_back(static_cast<std::uint8_t>(value));
      }
    }
  }
  return pixels;
}

void append(Bytes& to, std::uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) to.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

void append_chunk(Bytes& to, const std::string& kind, const Bytes& content) {
  append(to, content.size(), 4);
  const std::size_t begin = to.size();
  to.insert(to.end(), kind.begin(), kind.end());
  to.insert(to.end(), content.begin(), content.end());
  append(to, crc32(to.data() + begin, to.size() - begin), 4);
}

Bytes png_header(int width, int height, int channels) {
  Bytes file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'}, header;
  append(header, static_cast<std::uint64_t>(width), 4);
  append(header, static_cast<std::uint64_t>(height), 4);
  header.insert(header.end(), {8, static_cast<std::uint8_t>(channels == 3 ? 2 : 0), 0, 0, 0});
  append_chunk(file, "IHDR", header);
  return file;
}

Catalogue counted(std::size_t size, int classes, const Shape& shape) {
  Catalogue catalogue;
  catalogue.shape = shape;
  for (int i = 0; i < classes; ++i) catalogue.classes.push_back("class" + std::to_string(i));
  for (std::size_t i = 0; i < size; ++i) {
    const auto label = static_cast<std::int32_t>(i * static_cast<std::size_t>(classes) / size);
    catalogue.samples.push_back({"sample" + std::to_string(i), label, Use::any, 100 + i});
  }
  return catalogue;
}

}  // namespace

void write_bytes(const std::string& path, const Bytes& content) {
  fs::create_directories(fs::path(path).parent_path());
  fs::remove(path);  // Some file systems wait for the disk when a file is overwritten.
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(content.data()),
             static_cast<std::streamsize>(content.size()));
  if (!file.flush()) throw Error("cannot write " + path);
}

Bytes read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("cannot read " + path);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

Bytes recorded(const std::string& name) {
  return read("tests/datasets/images/" + name);
}

Bytes png_around(const Bytes& compressed) {
  Bytes file = png_header(4, 4, 3);
  append_chunk(file, "IDAT", compressed);
  append_chunk(file, "IEND", {});
  return file;
}

Bytes draw_png(int width, int height, unsigned seed, int channels) {
  const Bytes pixels = scene(width, height, seed, channels);
  const auto row = static_cast<std::size_t>(width * channels);
  Bytes file = png_header(width, height, channels);
  // The data are in zlib's format without compression: a block for each row, which is a filter's
  // number (0: none) and the pixels.
  Bytes data{0x78, 0x01};
  std::uint64_t low = 1, high = 0;  // Halves of the Adler-32 checksum.
  for (int y = 0; y < height; ++y) {
    Bytes line{0};
    const std::uint8_t* from = pixels.data() + static_cast<std::size_t>(y) * row;
    line.insert(line.end(), from, from + row);
    data.push_back(y == height - 1 ? 1 : 0);
    for (const std::size_t length : {line.size(), ~line.size()}) {
      data.push_back(static_cast<std::uint8_t>(length));
      data.push_back(static_cast<std::uint8_t>(length >> 8));
    }
    data.insert(data.end(), line.begin(), line.end());
    for (std::uint8_t byte : line) {
      low = (low + byte) % 65521;
      high = (high + low) % 65521;
    }
  }
  append(data, high << 16 | low, 4);
  append_chunk(file, "IDAT", data);
  append_chunk(file, "IEND", {});
  return file;
}

PlainImage read_ppm(const std::string& name) {
  std::ifstream file("tests/datasets/images/" + name, std::ios::binary);
  std::string magic;
  int most = 0;
  PlainImage image{};
  file >> magic >> image.width >> image.height >> most;
  file.get();
  image.pixels.assign(std::istreambuf_iterator<char>(file), {});
  if (magic != "P6" || most != 255 ||
      image.pixels.size() != static_cast<std::size_t>(image.width * image.height * 3)) {
    throw Error("cannot read " + name);
  }
  return image;
}

CountedDataset::CountedDataset(std::size_t size, int classes, const Shape& shape,
                               std::vector<std::size_t> broken)
    : Dataset(counted(size, classes, shape)), broken_(std::move(broken)) {}

const std::uint8_t* CountedDataset::read(std::size_t index, std::uint8_t* scratch) const {
  if (std::find(broken_.begin(), broken_.end(), index) != broken_.end()) {
    throw Error("it is broken");
  }
  std::fill(scratch, scratch + sample_bytes(), value(index));
  return scratch;
}

Subset all_of(const std::shared_ptr<const Dataset>& data) {
  Subset subset{data, std::vector<std::uint32_t>(data->size())};
  std::iota(subset.samples.begin(), subset.samples.end(), 0u);
  return subset;
}

}  // namespace duplex::datasets::testing
