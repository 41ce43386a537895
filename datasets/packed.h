// Packed files: a data set decoded and scaled once, to be mapped into memory by later runs.
//
// Little-endian. A header of 48 bytes (packed_format.h), zeros up to 4096, the samples' pixels
// one behind the other, then the table: the classes' names; each sample's label, use, source size
// and name. A name is its length (32 bits) and its bytes. The header is written last, and the
// digest in it is Dataset::digest(), which covers everything but the pixels.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "datasets/dataset.h"
#include "datasets/file.h"

namespace duplex::datasets {

class PackedDataset : public Dataset {
 public:
  /// Checks header, table and length against each other; the pixels' bytes are taken as they are.
  static std::shared_ptr<const Dataset> open(const std::string& path);
  /// Whether a file begins as a packed file does. Throws Error if it cannot be read.
  static bool is_there(const std::string& path);

  std::string source() const override { return "the packed file '" + path_ + "'"; }
  const std::uint8_t* read(std::size_t index, std::uint8_t* scratch) const override;

 private:
  PackedDataset(Catalogue catalogue, std::string path, std::unique_ptr<MappedFile> file)
      : Dataset(std::move(catalogue)), path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  std::unique_ptr<MappedFile> file_;
};

struct PackResult {
  std::uint64_t packed = 0;      ///< Samples.
  std::uint64_t bytes = 0;       ///< Of the file.
  std::vector<LeftOut> skipped;  ///< Not known when the data set was opened: failed to decode.
};

/// Writes `data` to `path` by way of a temporary file beside it, synced and renamed, so that `path`
/// holds its old content or the whole new one. A sample that cannot be read is skipped, or is an
/// error if `strict`. `progress` is told how many samples are done; what it throws ends the work.
PackResult pack_dataset(const Dataset& data, const std::string& path, int threads, bool strict,
                        const std::function<void(std::uint64_t done)>& progress);

}  // namespace duplex::datasets
