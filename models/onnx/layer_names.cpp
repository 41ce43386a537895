#include "models/onnx/layer_names.h"

#include <cctype>

namespace duplex::models::onnx {
namespace {

std::string cleaned(const std::string& name) {
  std::string result;
  for (const char letter : name)
    result += std::isalnum(static_cast<unsigned char>(letter)) != 0 && (letter & 0x80) == 0 ? letter
                                                                                            : '_';
  constexpr std::size_t longest = 56;
  result = result.substr(0, longest);
  static const std::set<std::string> others{"network", "known", "input", "classes", "block",
                                            "repeat",  "end",   "start", "from",    "training"};
  if (result.empty() || others.count(result) > 0) result += "_";
  return result;
}

}  // namespace

std::string LayerNames::free_name(const std::string& name) {
  std::string free = name;
  for (int number = 2; !names_.insert(block_ + "/" + free).second; ++number)
    free = name + "_" + std::to_string(number);
  return free;
}

void LayerNames::begin(const std::string& block) {
  block_ = block;
  if (!block.empty() && blocks_.insert(block).second) names_.insert("/" + block);
}

LayerNames::Name LayerNames::own(const std::string& name) {
  begin("");
  return {"", free_name(name)};
}

LayerNames::Name LayerNames::of(const std::string& node) {
  const auto slash = node.find('/');
  const std::string first = slash == std::string::npos ? "" : cleaned(node.substr(0, slash));
  const bool in_block = blocks_wanted_ && slash != std::string::npos && slash > 0 &&
                        slash + 1 < node.size() && node.find('/', slash + 1) == std::string::npos &&
                        (first == block_ || names_.count("/" + first) == 0);
  begin(in_block ? first : "");
  const std::string name = free_name(cleaned(in_block ? node.substr(slash + 1) : node));
  return {block_, name};
}

}  // namespace duplex::models::onnx
