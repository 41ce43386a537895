#include "datasets/dataset.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/random.h"
#include "datasets/decoding/resample.h"

namespace duplex::datasets {
namespace {

/// Computes the 64-bit FNV-1a hash of what it is fed piece by piece.
class Digest {
 public:
  void number(std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) add(static_cast<std::uint8_t>(value >> (8 * byte)));
  }
  void text(const std::string& value) {
    number(value.size());
    for (char letter : value) add(static_cast<std::uint8_t>(letter));
  }
  std::uint64_t value() const { return value_; }

 private:
  void add(std::uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001B3u; }

  std::uint64_t value_ = 0xCBF29CE484222325u;
};

/// Returns the sample's draw: the samples with the lowest draws of a class go to the test set.
std::uint64_t draw(const Sample& sample, std::uint64_t seed) {
  const RandomStream stream(seed, stream_of(sample.name));
  return std::uint64_t{stream.bits(0)} << 32 | stream.bits(1);
}

}  // namespace

std::uint64_t digest(const Catalogue& catalogue) {
  Digest digest;
  const Shape& shape = catalogue.shape;
  for (std::int64_t extent : {shape.c(), shape.h(), shape.w()}) {
    digest.number(static_cast<std::uint64_t>(extent));
  }
  digest.number(catalogue.classes.size());
  for (const std::string& name : catalogue.classes) digest.text(name);
  digest.number(catalogue.samples.size());
  for (const Sample& sample : catalogue.samples) {
    digest.text(sample.name);
    digest.number(static_cast<std::uint64_t>(sample.label));
    digest.number(static_cast<std::uint64_t>(sample.use));
    digest.number(sample.source_bytes);
    digest.number(sample.checksum);
  }
  return digest.value();
}

std::string Dataset::contents() const {
  const Shape& s = shape();
  return with_commas(size()) + " images of " + std::to_string(s.c()) + "x" + std::to_string(s.h()) +
         "x" + std::to_string(s.w()) + " in " + with_commas(classes().size()) + " classes";
}

std::string Dataset::description() const {
  return contents() + ", from " + source();
}

void Dataset::read_framed(std::size_t index, const Framer& framer, std::uint8_t* scratch) const {
  std::vector<std::uint8_t> own(sample_bytes());
  const std::uint8_t* planes = read(index, own.data());
  const ImageSize image{static_cast<int>(shape().w()), static_cast<int>(shape().h())};
  const Framing framing = framer(image);
  const auto area = static_cast<std::size_t>(shape().h() * shape().w());
  for (std::size_t c = 0; c < static_cast<std::size_t>(shape().c()); ++c)
    resample(scratch + c * area, image.height, image.width, planes + c * area, image, 1, framing);
}

Error unreadable(const Dataset& data, std::size_t index, const std::string& reason) {
  return Error("image '" + data.sample(index).name + "' of " + data.source() +
               " cannot be read: " + reason);
}

std::string with_commas(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

Split split(const std::shared_ptr<const Dataset>& data, double test_fraction, std::uint64_t seed) {
  if (!(test_fraction >= 0 && test_fraction < 1)) {
    throw Error("the fraction of a data set to test on must be at least 0 and below 1, not " +
                    std::to_string(test_fraction),
                Exit::usage);
  }
  Split result{{data, {}}, {data, {}}};
  std::vector<std::vector<std::uint32_t>> open(data->classes().size());
  for (std::uint32_t index = 0; index < data->size(); ++index) {
    const Sample& sample = data->sample(index);
    if (sample.use == Use::train) result.train.samples.push_back(index);
    if (sample.use == Use::test) result.test.samples.push_back(index);
    if (sample.use == Use::any) open[static_cast<std::size_t>(sample.label)].push_back(index);
  }
  for (std::vector<std::uint32_t>& members : open) {
    if (members.empty()) continue;
    const auto wanted = static_cast<std::size_t>(
        std::floor(test_fraction * static_cast<double>(members.size()) + 0.5));
    const std::size_t least = test_fraction > 0 && members.size() > 1 ? 1 : 0;
    const std::size_t tests = std::min(std::max(wanted, least), members.size() - 1);
    std::vector<std::tuple<std::uint64_t, std::string, std::uint32_t>> order;
    order.reserve(members.size());
    for (std::uint32_t index : members) {
      order.emplace_back(draw(data->sample(index), seed), data->sample(index).name, index);
    }
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i) {
      (i < tests ? result.test : result.train).samples.push_back(std::get<2>(order[i]));
    }
  }
  std::sort(result.train.samples.begin(), result.train.samples.end());
  std::sort(result.test.samples.begin(), result.test.samples.end());
  if (result.train.samples.empty()) throw Error(data->source() + " has no images to train on");
  return result;
}

}  // namespace duplex::datasets
