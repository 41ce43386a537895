// Defines a data set: images of one size, each with a class, whatever they are read from.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/shape.h"
#include "datasets/decoding/framing.h"

namespace duplex::datasets {

/// Says what a sample may be used for. Most sources leave it open (`any`), and split() decides.
enum class Use : std::uint8_t { any = 0, train = 1, test = 2 };

struct Sample {
  std::string name;  ///< Name within the source: "001.ak47/001_0001.jpg".
  std::int32_t label = 0;
  Use use = Use::any;
  std::uint64_t source_bytes = 0;  ///< Size in the source: that of an image's file.
  std::uint32_t checksum = 0;      ///< CRC32C of these bytes.
};

/// Names a file that is not part of a data set, and says why.
struct LeftOut {
  std::string name;
  std::string reason;
};

/// Holds everything about a data set but the pixels.
struct Catalogue {
  Shape shape;  ///< Shape of one sample: (1, C, H, W).
  std::vector<std::string> classes;
  std::vector<Sample> samples;
  std::vector<LeftOut> skipped;  ///< Images that cannot be read.
  std::vector<LeftOut> ignored;  ///< Files and folders that are not taken for images.
};

/// Returns a hash of the shape, the classes and the samples (names, labels, uses, sizes and
/// checksums in the source, in this order). A folder and its packed file have the same digest.
std::uint64_t digest(const Catalogue& catalogue);

/// Samples are addressed by index, 0 to size() - 1. All functions may be called by several threads
/// at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  std::size_t size() const { return catalogue_.samples.size(); }
  const Shape& shape() const { return catalogue_.shape; }  ///< Shape of one sample: (1, C, H, W).
  std::size_t sample_bytes() const { return static_cast<std::size_t>(shape().elements()); }
  const std::vector<std::string>& classes() const { return catalogue_.classes; }
  const Sample& sample(std::size_t index) const { return catalogue_.samples[index]; }
  const Catalogue& catalogue() const { return catalogue_; }
  std::uint64_t digest() const { return datasets::digest(catalogue_); }

  std::string contents() const;            ///< "30,607 images of 3x224x224 in 257 classes".
  std::string description() const;         ///< "CONTENTS, from SOURCE".
  virtual std::string source() const = 0;  ///< "the folder ...".

  /// Returns the sample's pixels, C planes of H x W bytes: either in `scratch`, which has room for
  /// sample_bytes(), or where the data set itself keeps them. Throws Error with the reason alone if
  /// they cannot be read.
  virtual const std::uint8_t* read(std::size_t index, std::uint8_t* scratch) const = 0;
  /// Does the same with the framing of the image that `framer` chooses, in `scratch` always. The
  /// image is what the data set has of it: a file's as it is decoded, a packed file's as packed.
  virtual void read_framed(std::size_t index, const Framer& framer, std::uint8_t* scratch) const;

 protected:
  explicit Dataset(Catalogue catalogue) : catalogue_(std::move(catalogue)) {}

 private:
  Catalogue catalogue_;
};

/// Returns the error "image 'NAME' of SOURCE cannot be read: REASON".
Error unreadable(const Dataset& data, std::size_t index, const std::string& reason);

struct DatasetOptions {
  /// Images are scaled to this size, with 3 channels for colour or 1 for grey. 0 keeps what the
  /// source has; a folder of images has 3x224x224.
  int channels = 0, height = 0, width = 0;
  bool strict = false;  ///< An image that cannot be read is an error, not skipped.
  int threads = 0;      ///< Threads that check a folder's images. 0: one for each core.
};

/// Opens a packed file, a folder with IDX files, or a folder with a folder of images for each
/// class. Throws Error, saying what is understood, if `path` is none of them.
std::shared_ptr<const Dataset> open_dataset(const std::string& path,
                                            const DatasetOptions& options = {});

/// Selects some of a data set's samples, by index.
struct Subset {
  std::shared_ptr<const Dataset> data;
  std::vector<std::uint32_t> samples;

  std::size_t size() const { return samples.size(); }
};

struct Split {
  Subset train, test;
};

/// Divides a data set into samples to train on and samples to test on. If the source says what a
/// sample is for, the sample goes there. From every class, split() sets the share `test_fraction`
/// of the other samples aside for testing: those with the lowest draws. A draw depends on the seed
/// and the sample's name alone, so that all ranks agree, and one file more or less moves at most
/// one other. The number of tests is rounded to nearest; a class of two or more samples gives at
/// least one (unless `test_fraction` is 0), and no class gives all.
Split split(const std::shared_ptr<const Dataset>& data, double test_fraction = 0.2,
            std::uint64_t seed = 0);

/// Returns the number with commas: "1,234,567".
std::string with_commas(std::uint64_t number);

}  // namespace duplex::datasets
