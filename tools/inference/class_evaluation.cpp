#include "tools/inference/class_evaluation.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/error.h"
#include "datasets/decoding/png.h"
#include "datasets/decoding/resample.h"
#include "net/wire/frame.h"

namespace duplex::tools {
namespace {

/// Pixels of a picture's longer side at most.
constexpr std::int64_t largest_picture = 96;

/// The images that a network is most wrong about: the greatest loss first, then by their order.
class Worst {
 public:
  void add(double loss, std::size_t position, const std::function<WrongImage()>& image) {
    const Key key{-loss, position};
    if (images_.size() == worst_at_most && !(key < std::prev(images_.end())->first)) return;
    images_.emplace(key, image());
    if (images_.size() > worst_at_most) images_.erase(std::prev(images_.end()));
  }
  using Key = std::pair<double, std::size_t>;  ///< The loss with its sign turned, the position.
  const std::map<Key, WrongImage>& images() const { return images_; }

 private:
  std::map<Key, WrongImage> images_;
};

class ConfusionMatrix {
 public:
  void add(std::int64_t label, std::int64_t said) { ++cells_[{label, said}]; }
  std::vector<ConfusionCell> cells() const {
    std::vector<ConfusionCell> cells;
    for (const auto& [classes, images] : cells_)
      cells.push_back({classes.first, classes.second, images});
    return cells;
  }

 private:
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint64_t> cells_;
};

/// Takes what was said into the figures of the classes, whose `images` are there.
void add_figures(std::vector<ClassResult>& classes, const std::vector<ConfusionCell>& cells) {
  for (const ConfusionCell& cell : cells) {
    classes[static_cast<std::size_t>(cell.said)].said += cell.images;
    if (cell.label == cell.said) classes[static_cast<std::size_t>(cell.label)].right = cell.images;
  }
  const auto part = [](std::uint64_t of, std::uint64_t all) -> std::optional<double> {
    if (all == 0) return std::nullopt;
    return static_cast<double>(of) / static_cast<double>(all);
  };
  for (ClassResult& each : classes) {
    each.precision = part(each.right, each.said);
    each.recall = part(each.right, each.images);
  }
}

std::string base64(const std::vector<std::uint8_t>& bytes) {
  constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) group = group << 8 | (i < count ? bytes[at + i] : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      text += i <= count ? digits[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

}  // namespace

std::vector<datasets::LeftOut> evaluate_classes(Network& network, const datasets::Subset& images,
                                                const PassOptions& options, bool pictures,
                                                EvaluationFile& evaluation) {
  const LossKind kind = loss_of(network.model());
  const auto count = static_cast<std::size_t>(network.model().classes());
  const std::vector<std::string>& names = images.data->classes();
  evaluation.classes.assign(count, {});
  for (std::size_t i = 0; i < count; ++i)
    evaluation.classes[i].name = i < names.size() ? names[i] : std::to_string(i);
  ConfusionMatrix matrix;
  Worst worst;
  const Accuracy accuracy =
      evaluate(network, images, options, [&](const Output& output, const Judgement& judgement) {
        ++evaluation.classes[static_cast<std::size_t>(output.label)].images;
        if (!judgement.finite) return;
        const auto said = std::max_element(output.logits, output.logits + count) - output.logits;
        matrix.add(output.label, said);
        if (judgement.rank == 0) return;
        worst.add(judgement.loss, output.position, [&] {
          const std::vector<double> values = probabilities(kind, output.logits, count);
          const std::uint32_t sample = images.samples[output.position];
          return WrongImage{images.data->sample(sample).name,
                            output.label,
                            said,
                            values[static_cast<std::size_t>(said)],
                            values[static_cast<std::size_t>(output.label)],
                            judgement.loss,
                            std::nullopt};
        });
      });
  evaluation.accuracy = summary_of(accuracy);
  evaluation.confusion = matrix.cells();
  add_figures(evaluation.classes, evaluation.confusion);
  for (const auto& [key, image] : worst.images()) {
    evaluation.worst.push_back(image);
    if (pictures)
      evaluation.worst.back().picture =
          picture_of(*images.data, images.samples[key.second], options.reading.test_side);
  }
  return accuracy.unreadable;
}

std::string picture_of(const datasets::Dataset& data, std::size_t sample, int test_side) {
  std::vector<std::uint8_t> scratch(data.sample_bytes());
  const Shape& from = data.shape();
  const std::uint8_t* planes = scratch.data();
  if (test_side > 0) {
    const auto height = static_cast<int>(from.h()), width = static_cast<int>(from.w());
    const auto middle = [=](datasets::ImageSize image) {
      return datasets::central(image, test_side, height, width);
    };
    data.read_framed(sample, middle, scratch.data());
  } else {
    planes = data.read(sample, scratch.data());
  }
  const std::int64_t longer = std::max(from.h(), from.w());
  if (longer <= largest_picture) return base64(datasets::encode_png(planes, from));
  const auto scaled = [&](std::int64_t side) {
    return std::max<std::int64_t>(1, side * largest_picture / longer);
  };
  const Shape to{1, from.c(), scaled(from.h()), scaled(from.w())};
  const auto area = static_cast<std::size_t>(from.h() * from.w()),
             small = static_cast<std::size_t>(to.h() * to.w());
  std::vector<std::uint8_t> smaller(static_cast<std::size_t>(to.elements()));
  for (std::size_t c = 0; c < static_cast<std::size_t>(to.c()); ++c)
    datasets::resample(smaller.data() + c * small, static_cast<int>(to.h()),
                       static_cast<int>(to.w()), planes + c * area, static_cast<int>(from.h()),
                       static_cast<int>(from.w()), 1);
  return base64(datasets::encode_png(smaller.data(), to));
}

}  // namespace duplex::tools
