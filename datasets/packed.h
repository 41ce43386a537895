// Writes and reads packed files: a data set is decoded and scaled once; later runs read its pixels.
//
// All numbers are little-endian. The file holds a header of 52 bytes (packed_format.h), zeros up to
// 4096, the pixels of one sample after the other, then the table: the classes' names, and each
// sample's label, use, size and checksum in the source, checksum of its pixels, and name. A name is
// its length (32 bits) and its bytes. The header is written last, and the digest in it is
// Dataset::digest(), which covers all but the checksums of pixels; the table has a checksum, too.
// All checksums are CRC32C.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "datasets/dataset.h"
#include "datasets/file.h"

namespace duplex::datasets {

class PackedDataset : public Dataset {
 public:
  /// Checks header, table and length against each other; the pixels are checked as they are read.
  static std::shared_ptr<const Dataset> open(const std::string& path);
  /// Returns whether a file begins as a packed file does. Throws Error if it cannot be read.
  static bool is_there(const std::string& path);

  std::string source() const override { return "the packed file '" + path_ + "'"; }
  const std::uint8_t* read(std::size_t index, std::uint8_t* scratch) const override;

 private:
  PackedDataset(Catalogue catalogue, std::vector<std::uint32_t> checksums, std::string path,
                std::unique_ptr<ReadFile> file)
      : Dataset(std::move(catalogue)),
        checksums_(std::move(checksums)),
        path_(std::move(path)),
        file_(std::move(file)) {}

  std::vector<std::uint32_t> checksums_;  ///< Those of the pixels, by sample.
  std::string path_;
  std::unique_ptr<ReadFile> file_;
};

struct PackResult {
  std::uint64_t packed = 0;      ///< Number of samples.
  std::uint64_t bytes = 0;       ///< Size of the file.
  std::vector<LeftOut> skipped;  ///< Samples that passed opening, but failed to decode.
};

/// Writes `data` to a temporary file beside `path`, syncs it and renames it, so that `path` holds
/// its old content or the whole new one. A sample that cannot be read is skipped, or is an error if
/// `strict`. `progress` is called with the number of samples done; its exception ends the work.
PackResult pack_dataset(const Dataset& data, const std::string& path, int threads, bool strict,
                        const std::function<void(std::uint64_t done)>& progress);

}  // namespace duplex::datasets
