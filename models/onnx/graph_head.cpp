#include "models/onnx/graph_head.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "models/file/words.h"

namespace duplex::models::onnx {

std::string title_of(const Graph& graph) {
  std::string title;
  for (const char letter : graph.name)
    if (letter >= ' ' && letter <= '~' && letter != '#' && title.size() < 64) title += letter;
  return title.find_first_not_of(' ') == std::string::npos ? "network" : title;
}

Shape sample_of(const Graph& graph) {
  std::set<std::string> constants;
  for (const Constant& constant : graph.constants) constants.insert(constant.name);
  const Value* found = nullptr;
  for (const Value& input : graph.inputs) {
    if (constants.count(input.name) > 0) continue;  // Older files name all weights as inputs.
    if (found != nullptr) throw Error("it has several inputs; a network here has one");
    found = &input;
  }
  if (found == nullptr) throw Error("it has no input");
  const std::vector<std::int64_t>& extents = found->extents;
  const bool image =
      extents.size() == 4 && std::all_of(extents.begin() + 1, extents.end(), [](std::int64_t e) {
        return e >= 1 && e <= file::largest_window;
      });
  if (!image || extents[2] != extents[3])
    throw Error("its input '" + found->name +
                "' has to be (N, channels, height, width) with a fixed square of at most " +
                std::to_string(file::largest_window) + " pixels");
  return {1, extents[1], extents[2], extents[3]};
}

}  // namespace duplex::models::onnx
