#include "tools/plan/stage_list.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace duplex::tools {
namespace {

/// Returns what stands between the colons.
std::vector<StageRanks> listed(const std::string& text) {
  const auto refused = [&](const std::string& why) {
    return Error("stages '" + text + "': " + why +
                     "; 3 means so many stages, 6:2 the ranks of each, 6:2@conv5 that the second "
                     "begins with the layer conv5, 6:2@conv5+0.5 in its middle",
                 Exit::usage);
  };
  std::vector<StageRanks> stages;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t at = item.find('@');
    StageRanks stage;
    const std::string count = item.substr(0, at);
    if (count.empty() || count.size() > 5 ||
        count.find_first_not_of("0123456789") != std::string::npos || std::stoi(count) < 1)
      throw refused("'" + count + "' is no number of ranks");
    stage.ranks = std::stoi(count);
    if (at != std::string::npos) stage.first = item.substr(at + 1);
    if (const std::size_t plus = stage.first.rfind('+'); plus != std::string::npos) {
      const std::string part = stage.first.substr(plus + 1);
      char* end = nullptr;
      stage.before = std::strtod(part.c_str(), &end);
      if (part.empty() || *end != '\0' || !(stage.before >= 0.0 && stage.before < 1.0))
        throw refused("'" + part + "' is no part of a layer's samples, 0 or more and below 1");
      stage.first.resize(plus);
    }
    if (at != std::string::npos && (stage.first.empty() || stages.empty()))
      throw refused(stages.empty() ? "the first stage begins with the first layer"
                                   : "no layer stands behind the @");
    if (stages.size() > 1 && stage.first.empty() != stages.back().first.empty())
      throw refused("every stage but the first has a layer, or none has");
    stages.push_back(std::move(stage));
  }
  return stages;
}

}  // namespace

void check_stages(const std::string& text) {
  if (!text.empty()) listed(text);
}

std::vector<StageRanks> parse_stages(const std::string& text, int ranks) {
  if (text.empty()) return std::vector<StageRanks>(static_cast<std::size_t>(ranks));
  std::vector<StageRanks> stages = listed(text);
  if (stages.size() == 1) {
    const int count = stages.front().ranks;
    if (ranks % count != 0)
      throw Error(std::to_string(count) + " stages cannot be shared out evenly among " +
                      std::to_string(ranks) + " ranks: give the ranks of each, as in 2:1",
                  Exit::usage);
    StageRanks each;
    each.ranks = ranks / count;
    return std::vector<StageRanks>(static_cast<std::size_t>(count), each);
  }
  const int all = std::accumulate(stages.begin(), stages.end(), 0,
                                  [](int sum, const StageRanks& each) { return sum + each.ranks; });
  if (all != ranks)
    throw Error("stages " + text + " are for " + std::to_string(all) + " ranks, and there are " +
                    std::to_string(ranks),
                Exit::usage);
  return stages;
}

}  // namespace duplex::tools
