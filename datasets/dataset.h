// A data set: pictures of one size, each with a class, whatever they are read from.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/shape.h"

namespace duplex::datasets {

/// What a sample may be used for. Most sources leave it open (`any`), and split() decides.
enum class Use : std::uint8_t { any = 0, train = 1, test = 2 };

struct Sample {
  std::string name;  ///< Relative to the source: "001.ak47/001_0001.jpg".
  std::int32_t label = 0;
  Use use = Use::any;
  std::uint64_t source_bytes = 0;  ///< What it takes in its source: the size of a picture's file.
};

/// A file that is not part of a data set, and why.
struct LeftOut {
  std::string name;
  std::string reason;
};

/// Everything about a data set but the pixels.
struct Catalogue {
  Shape shape;  ///< Of one sample: (1, C, H, W).
  std::vector<std::string> classes;
  std::vector<Sample> samples;
  std::vector<LeftOut> skipped;  ///< Pictures that cannot be read.
  std::vector<LeftOut> ignored;  ///< What lies beside the pictures and claims to be none.
};

/// Equal for two data sets of the same shape, classes and samples (names, labels, uses, source
/// sizes, in this order), whether read from a folder or from its packed file. Pixels are not looked
/// at.
std::uint64_t digest(const Catalogue& catalogue);

/// Samples are addressed by index, 0 to size() - 1. All functions may be called by several threads
/// at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  std::size_t size() const { return catalogue_.samples.size(); }
  const Shape& shape() const { return catalogue_.shape; }  ///< Of one sample: (1, C, H, W).
  std::size_t sample_bytes() const { return static_cast<std::size_t>(shape().elements()); }
  const std::vector<std::string>& classes() const { return catalogue_.classes; }
  const Sample& sample(std::size_t index) const { return catalogue_.samples[index]; }
  const Catalogue& catalogue() const { return catalogue_; }
  std::uint64_t digest() const { return datasets::digest(catalogue_); }

  std::string contents() const;            ///< "30,607 pictures of 3x224x224 in 257 classes".
  std::string description() const;         ///< "CONTENTS, from SOURCE".
  virtual std::string source() const = 0;  ///< "the folder ...".

  /// The sample's pixels, C planes of H x W bytes: either in `scratch`, which has room for
  /// sample_bytes(), or where the data set itself keeps them. Throws Error if they
  /// cannot be read; it holds the reason alone.
  virtual const std::uint8_t* read(std::size_t index, std::uint8_t* scratch) const = 0;

 protected:
  explicit Dataset(Catalogue catalogue) : catalogue_(std::move(catalogue)) {}

 private:
  Catalogue catalogue_;
};

/// "picture 'NAME' of SOURCE cannot be read: REASON".
Error unreadable(const Dataset& data, std::size_t index, const std::string& reason);

struct DatasetOptions {
  /// The size to scale to, and 3 for colour or 1 for grey. 0: the source's own, which for a folder
  /// of pictures is 3x224x224.
  int channels = 0, height = 0, width = 0;
  bool strict = false;  ///< A picture that cannot be read is an error; else it is skipped.
  int threads = 0;      ///< For looking through a folder. 0: one for each core.
};

/// Opens a packed file, a folder with IDX files, or a folder with a folder of pictures for each
/// class. Throws Error, saying what is understood, if `path` is none of them.
std::shared_ptr<const Dataset> open_dataset(const std::string& path,
                                            const DatasetOptions& options = {});

/// Some of a data set's samples, by index.
struct Subset {
  std::shared_ptr<const Dataset> data;
  std::vector<std::uint32_t> samples;

  std::size_t size() const { return samples.size(); }
};

struct Split {
  Subset train, test;
};

/// Divides a data set. A sample whose source says what it is for goes there. Of the others the
/// share `test_fraction` of every class is set aside: those whose draw, a function of seed and name
/// alone, is lowest. So all ranks agree, and a file more or less moves at most one other. Rounded
/// to nearest; at least one where the class has two, and never the whole class.
Split split(const std::shared_ptr<const Dataset>& data, double test_fraction = 0.2,
            std::uint64_t seed = 0);

/// "1,234,567".
std::string with_commas(std::uint64_t number);

}  // namespace duplex::datasets
