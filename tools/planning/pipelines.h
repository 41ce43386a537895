// Pipelines that plan tries: how many machines each stage has, and with which layer it begins.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "tools/partition/strategies.h"
#include "tools/partition/tiles.h"

namespace duplex::tools {

/// Returns the ways to share machines out among two stages or more, none with more than the one
/// before. For more than 8 machines stages have 1, 2, 4, ... of them.
std::vector<std::vector<int>> stage_sizes(int machines);

/// A pipeline, and where its stages begin.
class Pipeline {
 public:
  /// The stages begin where the work is as the ranks' speeds. `tiles` must outlive it.
  Pipeline(const Tiles& tiles, std::vector<int> ranks, const Speeds& speeds);

  const std::vector<int>& ranks() const { return ranks_; }
  std::size_t boundaries() const { return begins_.size(); }
  /// Returns whether every stage has a unit, or a part of one.
  bool possible() const;
  /// Moves the beginning of stage `boundary` + 1 by so many units.
  Pipeline moved(std::size_t boundary, double by) const;
  /// Returns the stages as parse_stages() takes them.
  std::string text() const;

 private:
  const Units* units_;
  std::vector<int> ranks_;
  std::vector<double> begins_;  ///< By stage but the first: its first unit, and the part of it.
};

}  // namespace duplex::tools
