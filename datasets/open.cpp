// Recognises what a path holds.
#include <cerrno>
#include <filesystem>

#include "core/error.h"
#include "datasets/decoding/scaled.h"
#include "datasets/file.h"
#include "datasets/folder.h"
#include "datasets/idx.h"
#include "datasets/packed.h"

namespace duplex::datasets {
namespace fs = std::filesystem;
namespace {

constexpr const char* understood =
    "understood are a packed file (duplex pack), a folder with train-images-idx3-ubyte[.gz] and "
    "its labels, and a folder with a folder of JPEG or PNG images for each class "
    "(001.ak47/001_0001.jpg)";

std::shared_ptr<const Dataset> open_source(const std::string& path, const DatasetOptions& options) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (failure || !fs::exists(status)) {
    throw Error("data set '" + path + "': " + (failure ? failure.message() : error_text(ENOENT)) +
                "; " + understood);
  }
  if (fs::is_directory(status)) {
    if (IdxDataset::is_there(path)) return IdxDataset::open(path);
    return FolderDataset::open(path, options);
  }
  if (PackedDataset::is_there(path)) return PackedDataset::open(path);
  throw Error("data set '" + path + "' is not recognised; " + understood);
}

}  // namespace

std::shared_ptr<const Dataset> open_dataset(const std::string& path,
                                            const DatasetOptions& options) {
  const auto out_of_range = [](int extent) { return extent < 0 || extent > 1 << 14; };
  if (out_of_range(options.height) || out_of_range(options.width) ||
      (options.channels != 0 && options.channels != 1 && options.channels != 3)) {
    throw Error("images can be scaled to sides of 1 to 16384 and 1 or 3 channels, not to " +
                    std::to_string(options.channels) + "x" + std::to_string(options.height) + "x" +
                    std::to_string(options.width),
                Exit::usage);
  }
  std::shared_ptr<const Dataset> data = open_source(path, options);
  const Shape& own = data->shape();
  const Shape wanted{1, options.channels > 0 ? options.channels : own.c(),
                     options.height > 0 ? options.height : own.h(),
                     options.width > 0 ? options.width : own.w()};
  if (wanted != own) data = std::make_shared<ScaledDataset>(std::move(data), wanted);
  return data;
}

}  // namespace duplex::datasets
