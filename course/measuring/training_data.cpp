#include "course/measuring/training_data.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>

#include "core/error.h"
#include "core/random.h"

namespace duplex::course {
namespace {

constexpr int extent = 28;

void write_file(const std::string& path, const std::vector<std::uint32_t>& header,
                const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  for (const std::uint32_t number : header)
    for (const int shift : {24, 16, 8, 0}) file.put(static_cast<char>(number >> shift));
  file << bytes;
  if (!file.flush()) throw Error(path + ": it cannot be written");
}

void write_part(const std::string& path, int images, std::uint64_t seed) {
  const RandomStream random(seed, stream_of("images"));
  std::string pixels(static_cast<std::size_t>(images) * extent * extent, '\0');
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<char>(random.below(i, 256));
  std::string labels;
  for (int i = 0; i < images; ++i) labels += static_cast<char>(i % 10);
  const auto count = static_cast<std::uint32_t>(images);
  write_file(path + "-images-idx3-ubyte", {0x803, count, extent, extent}, pixels);
  write_file(path + "-labels-idx1-ubyte", {0x801, count}, labels);
}

}  // namespace

void write_random_images(const std::string& folder, int images) {
  write_part(folder + "/train", images, 1);
  write_part(folder + "/t10k", 10, 2);
}

std::vector<float> weights_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::uint64_t header = 0;  // A little-endian number of bytes, the header, and the values.
  if (bytes.size() < sizeof(header)) throw Error(path + ": there are no weights in it");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header > bytes.size() - sizeof(header)) throw Error(path + ": there are no weights in it");
  const std::size_t first = sizeof(header) + static_cast<std::size_t>(header);
  std::vector<float> values((bytes.size() - first) / sizeof(float));
  std::memcpy(values.data(), bytes.data() + first, values.size() * sizeof(float));
  return values;
}

}  // namespace duplex::course
