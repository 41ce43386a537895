// Forecasts the seconds of a layer that computes some of its channels for some samples, from those
// that were measured: processors take longer for a sample where there are few, and for a channel
// likewise.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "layers/model.h"
#include "tools/prediction/layer_times.h"
#include "tools/run_directory/part_profile.h"

namespace duplex::tools {

/// A line that goes straight from point to point. Beyond the last one it goes on as between the
/// last two, but does not fall; before the first one as between the first two, but not below the
/// line from zero.
class MeasuredLine {
 public:
  void add(double x, double y);
  /// Returns y at x. A single point is taken in proportion to x; without any, y is 0.
  double at(double x) const;

 private:
  std::vector<std::pair<double, double>> points_;  ///< In ascending order of x.
};

struct Seconds {
  double forward = 0.0, backward = 0.0;
};

class PartCosts {
 public:
  /// `times` has all layers as a whole, for `batch` samples. Throws Error, naming `path`, if a part
  /// is damaged.
  PartCosts(const Model& model, const LayerTimes& times, std::int64_t batch,
            const std::vector<PartProfile>& parts, const std::string& path);

  /// Returns the seconds of a layer, which goes by its number in Model::nodes. If no part of it was
  /// measured, they are in proportion to the whole layer's.
  Seconds layer(std::size_t node, std::int64_t samples, std::int64_t channels) const;
  /// Returns the seconds of a layer at a part's edge that reads or writes so many bytes.
  Seconds edge(const std::string& type, std::int64_t bytes) const;
  /// Returns the seconds of adding a micro-batch's gradient of so many bytes to the ones before it.
  double adding(std::int64_t bytes) const { return adding_ * static_cast<double>(bytes); }
  /// Returns the seconds of all layers for so many samples.
  double whole(std::int64_t samples) const;

 private:
  struct Lines {
    MeasuredLine forward, backward;
  };
  /// The seconds of one layer over the samples, by the channels that were computed of it.
  using LayerLines = std::map<std::int64_t, Lines>;

  std::vector<LayerLines> layers_;  ///< By node.
  std::vector<std::int64_t> channels_;
  std::map<std::string, Lines> edges_;  ///< By type: seconds by bytes.
  double adding_ = 0.0;
};

}  // namespace duplex::tools
