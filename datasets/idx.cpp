#include "datasets/idx.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "core/error.h"
#include "core/files/crc32c.h"
#include "datasets/decoding/gzip.h"
#include "datasets/file.h"

namespace duplex::datasets {
namespace {

constexpr std::size_t max_file_bytes = std::size_t{1} << 32;
constexpr const char* image_files[] = {"train-images-idx3-ubyte", "t10k-images-idx3-ubyte"};
constexpr const char* label_files[] = {"train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"};

/// Returns the path of the plain file, else of the compressed one, else "".
std::string locate(const std::string& folder, const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    std::error_code ignored;
    std::string path = folder + "/" + name + ending;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return "";
}

/// Holds one IDX file. Its header (two zeros, 8 for bytes, the rank, the extents) fits its length.
struct Array {
  std::string path;
  std::array<std::uint32_t, 3> extents{};
  std::size_t header = 0;
  std::vector<std::uint8_t> content;
};

Array read_array(const std::string& path, unsigned rank) {
  Array array;
  array.path = path;
  try {
    array.content = read_file(path, max_file_bytes);
    if (is_gzip(array.content)) array.content = gunzip(array.content);
    const std::vector<std::uint8_t>& bytes = array.content;
    array.header = 4 + 4 * std::size_t{rank};
    if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0) throw Error("it is no IDX file");
    if (bytes[2] != 8 || bytes[3] != rank) {
      throw Error("it is an IDX file of element type " + std::to_string(bytes[2]) + " and rank " +
                  std::to_string(bytes[3]) + "; needed are type 8 (bytes) and rank " +
                  std::to_string(rank));
    }
    if (bytes.size() < array.header) throw Error("it is truncated");
    std::uint64_t expected = 1;
    for (unsigned axis = 0; axis < rank; ++axis) {
      const std::uint8_t* at = bytes.data() + 4 + 4 * std::size_t{axis};
      const std::uint32_t extent = std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 |
                                   std::uint32_t{at[2]} << 8 | std::uint32_t{at[3]};
      const std::uint32_t limit = axis == 0 ? 0x7FFFFFFF : 0x4000;
      if (extent == 0 || extent > limit) {
        throw Error("its extent " + std::to_string(extent) + " is out of range");
      }
      array.extents[axis] = extent;
      expected *= extent;  // At most 2^31 * 2^14 * 2^14, so it fits.
    }
    const std::size_t have = bytes.size() - array.header;
    if (have != expected) {
      throw Error("it holds " + std::to_string(have) + " bytes, but its header announces " +
                  std::to_string(expected));
    }
  } catch (const Error& error) {
    throw Error("IDX file '" + path + "' cannot be read: " + error.what());
  }
  return array;
}

std::string number_name(const char* part, std::uint32_t number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%s/%05u", part, number);
  return text.data();
}

}  // namespace

bool IdxDataset::is_there(const std::string& folder) {
  return !locate(folder, image_files[0]).empty();
}

std::shared_ptr<const Dataset> IdxDataset::open(const std::string& folder) {
  Catalogue catalogue;
  std::vector<std::uint8_t> pixels;
  int classes = 0;
  const bool tests =
      !locate(folder, image_files[1]).empty() || !locate(folder, label_files[1]).empty();
  for (const Use use : {Use::train, Use::test}) {
    if (use == Use::test && !tests) break;
    const auto part = static_cast<std::size_t>(use == Use::test);
    const std::string image_path = locate(folder, image_files[part]);
    const std::string label_path = locate(folder, label_files[part]);
    if (image_path.empty() || label_path.empty()) {
      throw Error("IDX file '" + folder + "/" +
                  (image_path.empty() ? image_files[part] : label_files[part]) +
                  "' (or with .gz) is missing");
    }
    const Array images = read_array(image_path, 3), labels = read_array(label_path, 1);
    const Shape shape{1, 1, images.extents[1], images.extents[2]};
    if (images.extents[0] != labels.extents[0]) {
      throw Error("IDX files do not fit: " + std::to_string(images.extents[0]) + " images in '" +
                  images.path + "', " + std::to_string(labels.extents[0]) + " labels in '" +
                  labels.path + "'");
    }
    if (use == Use::test && shape != catalogue.shape) {
      throw Error("IDX files do not fit: images of " + shape.str() + " in '" + images.path +
                  "', but of " + catalogue.shape.str() + " to train on");
    }
    catalogue.shape = shape;
    const std::uint8_t* image = images.content.data() + images.header;
    const auto bytes = static_cast<std::size_t>(shape.elements());
    const std::uint8_t* label = labels.content.data() + labels.header;
    for (std::uint32_t i = 0; i < images.extents[0]; ++i) {
      catalogue.samples.push_back({number_name(use == Use::train ? "train" : "test", i), label[i],
                                   tests ? use : Use::any, bytes,
                                   crc32c(0, image + i * bytes, bytes)});
      classes = std::max(classes, label[i] + 1);
    }
    pixels.insert(pixels.end(), images.content.begin() + static_cast<std::ptrdiff_t>(images.header),
                  images.content.end());
  }
  for (int i = 0; i < classes; ++i) catalogue.classes.push_back(std::to_string(i));
  return std::shared_ptr<const Dataset>(
      new IdxDataset(std::move(catalogue), folder, std::move(pixels)));
}

const std::uint8_t* IdxDataset::read(std::size_t index, std::uint8_t* /*scratch*/) const {
  return pixels_.data() + index * sample_bytes();
}

}  // namespace duplex::datasets
