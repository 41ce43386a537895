// Takes the layers of a model together into units, which are what is placed on ranks: a layer with
// those behind it that work channel by channel on its output (batch normalisation, ReLU, pooling,
// dropout, the addition of a shortcut). Between them nothing ever has to cross a wire.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "layers/model.h"

namespace duplex {

struct Unit {
  std::string name;                 ///< The name of its first layer.
  std::vector<Model::Node> layers;  ///< In forward order. Others read the last one's output alone.
  std::int64_t channels = 0;        ///< The number of channels of its output.
  std::int64_t groups = 1;          ///< A run of channels lies in one of them, or has whole ones.
  bool whole = false;               ///< All channels are computed at once, as those of a loss.
  std::int64_t macs = 0;            ///< Multiply-adds of a sample's forward.
  std::int64_t parameters = 0;      ///< Trained ones. Each channel has as many as any other.
  std::int64_t channel_bytes = 0;   ///< One channel of one sample of its output has them (float32).
  std::int64_t activations = 0;     ///< All of its layers' outputs of a sample have these elements.
  bool gradient = false;  ///< Backward wants the gradient of its output from those who read it.
};

/// Cuts a unit's channels into about equal blocks, `most` or fewer: every group in as many as any
/// other, or groups stay together.
std::vector<Channels> channel_blocks(const Unit& unit, std::int64_t most);

/// Some channels of a unit's output, or of the images, as a part of a map.
struct MapPart {
  static constexpr int images = -1;

  int unit = images;
  Channels channels;
  std::int64_t at = 0;  ///< The number that the first of them has in the map.
};

/// The units of a model, each behind all that it reads.
class Units {
 public:
  explicit Units(Model model);

  const std::vector<Unit>& all() const { return units_; }
  std::size_t count() const { return units_.size(); }
  const Unit& operator[](std::size_t unit) const { return units_[unit]; }

  /// Returns what a unit reads of others to compute these channels, of another one once or
  /// more. Concatenations and added channels of zeros are looked through: they belong to no unit,
  /// and whoever reads them reads what they are made of. The input is not among them, since every
  /// rank has the images.
  std::vector<MapPart> reads(std::size_t unit, const Channels& channels) const;
  /// Returns what these channels of a node's output are made of. Between the parts are zeros.
  std::vector<MapPart> parts_of(Model::Node node, const Channels& channels) const;

  const Model& model() const { return model_; }
  /// The unit that a node belongs to; -1: it is the input, or belongs to none.
  int unit_of(Model::Node node) const { return unit_of_[static_cast<std::size_t>(node)]; }

 private:
  void read_node(Model::Node node, const Channels& channels, std::int64_t at,
                 std::vector<MapPart>& parts) const;

  Model model_;
  std::vector<Unit> units_;
  std::vector<int> unit_of_;  ///< By node; -1: it belongs to none.
};

}  // namespace duplex
