#include "tools/planning/pipelines.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "tools/text/table.h"

namespace duplex::tools {
namespace {

/// Ways of more machines than this have stages of 1, 2, 4, ... machines.
constexpr int few = 8;

}  // namespace

std::vector<std::vector<int>> stage_sizes(int machines) {
  std::vector<std::vector<int>> found;
  std::vector<int> stages;
  const std::function<void(int, int)> add = [&](int left, int most) {
    if (left == 0) {
      if (stages.size() > 1) found.push_back(stages);
      return;
    }
    for (int ranks = std::min(left, most); ranks >= 1; --ranks) {
      const bool power = (ranks & (ranks - 1)) == 0;
      if (machines > few && (!power || stages.size() == few)) continue;
      stages.push_back(ranks);
      add(left - ranks, ranks);
      stages.pop_back();
    }
  };
  add(machines, machines);
  return found;
}

Pipeline::Pipeline(const Tiles& tiles, std::vector<int> ranks, const Speeds& speeds)
    : units_(&tiles.units()), ranks_(std::move(ranks)) {
  Speeds together;
  auto next = speeds.begin();
  for (const int stage : ranks_) {
    together.push_back(std::accumulate(next, next + stage, 0.0));
    next += stage;
  }
  const std::vector<std::size_t> starts = layer_runs(tiles, together, Idle::none);
  for (std::size_t stage = 1; stage < ranks_.size(); ++stage)
    begins_.push_back(static_cast<double>(starts[stage]));
}

bool Pipeline::possible() const {
  double least = 1.0;
  for (const double begin : begins_) {
    if (begin < least) return false;
    least = std::floor(begin) + 1.0;
  }
  return begins_.back() < static_cast<double>(units_->count());
}

Pipeline Pipeline::moved(std::size_t boundary, double by) const {
  Pipeline other = *this;
  other.begins_[boundary] += by;
  return other;
}

std::string Pipeline::text() const {
  std::string text = std::to_string(ranks_.front());
  for (std::size_t i = 0; i < begins_.size(); ++i) {
    const double whole = std::floor(begins_[i]);
    text +=
        ":" + std::to_string(ranks_[i + 1]) + "@" + (*units_)[static_cast<std::size_t>(whole)].name;
    if (begins_[i] > whole) text += "+" + fixed(begins_[i] - whole, 1);
  }
  return text;
}

}  // namespace duplex::tools
