#include "models/file/writer.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <vector>

#include "core/error.h"
#include "models/file/kind_text.h"
#include "models/file/reader.h"

namespace duplex::models::file {
namespace {

/// A layer or a block, as it stands in the file.
struct Item {
  std::string name;
  std::string what;  ///< It stands behind the name.
  bool block = false;
  std::vector<Item> items{};  ///< A block has them.

  bool is_like(const Item& other) const {
    return what == other.what && block == other.block && items.size() == other.items.size() &&
           std::equal(
               items.begin(), items.end(), other.items.begin(),
               [](const Item& a, const Item& b) { return a.name == b.name && a.is_like(b); });
  }
};

class Writer {
 public:
  explicit Writer(const Model& model) : model_(model), of_classes_(model.nodes().size()) {
    for (const Model::Entry& entry : model.nodes()) {
      names_.insert(entry.name);
      if (entry.layer && entry.layer->loss_kind()) mark_classes(entry);
    }
  }

  std::string text() {
    const Shape& sample = model_.entry(0).shape;
    if (sample.rank() != 4 || sample.h() != sample.w())
      throw Error(model_.title() + ": a network's file has square inputs, not " + sample.str());
    std::string text = "network " + model_.title() + "\n";
    if (!model_.known_as().empty()) text += "known as " + model_.known_as() + "\n";
    text += "input   " + std::to_string(sample.h()) + "x" + std::to_string(sample.w()) + "x" +
            std::to_string(sample.c()) + "\n";
    if (std::find(of_classes_.begin(), of_classes_.end(), true) != of_classes_.end())
      text += "classes " + std::to_string(model_.classes()) + "\n";
    text += "\n";
    append(text, items(), "");
    return text + "end\n";
  }

 private:
  /// Marks the layer that gives a loss its number of values: behind it there are only layers that
  /// leave the channels as they are.
  void mark_classes(const Model::Entry& loss) {
    Model::Node node = loss.inputs[0];
    while (model_.entry(node).layer && own_outputs(*model_.entry(node).layer) == 0) {
      if (model_.entry(node).inputs.size() != 1 ||
          model_.shape(node).c() != model_.shape(model_.entry(node).inputs[0]).c())
        return;
      node = model_.entry(node).inputs[0];
    }
    if (model_.entry(node).layer && own_outputs(*model_.entry(node).layer) == model_.classes())
      of_classes_[static_cast<std::size_t>(node)] = true;
  }

  std::vector<Item> items() {
    std::vector<Item> result;
    const std::vector<Model::Entry>& nodes = model_.nodes();
    for (std::size_t i = 1; i < nodes.size();) {
      const Model::Entry& entry = nodes[i];
      block_ = entry.block == entry.name ? "" : entry.block;
      if (block_.empty()) {
        result.push_back(layer(i, static_cast<Model::Node>(i) - 1, false));
        ++i;
        continue;
      }
      std::size_t end = i;
      bool training_only = true;
      for (; end < nodes.size() && nodes[end].block == block_; ++end)
        training_only = training_only && nodes[end].training_only;
      Item block;
      block.block = true;
      block.name = block_;
      const auto above = static_cast<Model::Node>(i) - 1;
      start_ = entry.inputs[0];
      block.what = training_only ? " training only" : "";
      if (start_ != above) block.what += " from " + outer_name(start_);
      for (std::size_t node = i; node < end; ++node)
        block.items.push_back(
            layer(node, node == i ? start_ : static_cast<Model::Node>(node) - 1, training_only));
      ends_[static_cast<Model::Node>(end) - 1] = block_;
      result.push_back(std::move(block));
      i = end;
    }
    return result;
  }

  /// `above`: what the layer reads where the file does not say.
  Item layer(std::size_t node, Model::Node above, bool training_only) const {
    const Model::Entry& entry = model_.nodes()[node];
    Item item;
    item.name = block_.empty() ? entry.name : entry.name.substr(block_.size() + 1);
    item.what = kind_text(*entry.layer, of_classes_[node]);
    if (entry.training_only && !training_only) item.what += ", training only";
    if (entry.inputs != std::vector<Model::Node>{above}) {
      std::string names;
      for (const Model::Node input : entry.inputs)
        names += (names.empty() ? "" : ", ") + name_of(input);
      item.what += " from " + names;
    }
    return item;
  }

  /// The name of a layer as it is written here: within a block its own layers have short ones.
  std::string name_of(Model::Node node) const {
    const std::string& name = model_.entry(node).name;
    if (block_.empty()) return outer_name(node);
    if (name.rfind(block_ + "/", 0) == 0) return name.substr(block_.size() + 1);
    return node == start_ ? "start" : outer_name(node);
  }

  std::string outer_name(Model::Node node) const {
    const auto block = ends_.find(node);
    const std::string& name = block == ends_.end() ? model_.entry(node).name : block->second;
    const bool hidden = !block_.empty() && names_.count(block_ + "/" + name) > 0;
    return hidden ? "/" + name : name;
  }

  /// Returns how many items from `at` on differ only in the number at the end of their names, which
  /// counts up.
  static std::size_t run_of(const std::vector<Item>& items, std::size_t at) {
    const auto [stem, first] = parts(items[at].name);
    std::size_t count = 1;
    if (first < 0) return count;
    while (at + count < items.size() &&
           items[at + count].name == stem + std::to_string(first + static_cast<long>(count)) &&
           items[at + count].is_like(items[at]))
      ++count;
    const std::size_t least = items[at].block ? 2 : 3;
    return count >= least ? count : 1;
  }

  /// "conv1_12" as "conv1_" and 12; -1: it has no number at its end.
  static std::pair<std::string, long> parts(const std::string& name) {
    constexpr std::size_t most_digits = 4;
    std::size_t at = name.size();
    while (at > 0 && std::isdigit(static_cast<unsigned char>(name[at - 1])) != 0) --at;
    const std::string digits = name.substr(at);
    if (digits.empty() || digits.size() > most_digits || (digits.size() > 1 && digits[0] == '0'))
      return {name, -1};
    return {name.substr(0, at), std::stol(digits)};
  }

  static void append(std::string& text, const std::vector<Item>& items, const std::string& margin) {
    std::size_t widest = 0;
    for (const Item& item : items)
      if (!item.block) widest = std::max(widest, item.name.size());
    for (std::size_t at = 0; at < items.size();) {
      const std::size_t count = run_of(items, at);
      Item item = items[at];
      if (count == 1) {
        append(text, item, margin, widest);
      } else {
        const auto [stem, first] = parts(item.name);
        text += margin + "repeat i = " + std::to_string(first) + " to " +
                std::to_string(first + static_cast<long>(count) - 1) + "\n";
        item.name = stem + "{i}";
        append(text, item, margin + "  ", item.name.size());
        text += margin + "end\n";
      }
      at += count;
    }
  }

  static void append(std::string& text, const Item& item, const std::string& margin,
                     std::size_t widest) {
    if (item.block) {
      text += margin + "block " + item.name + item.what + "\n";
      append(text, item.items, margin + "  ");
      text += margin + "end\n";
      return;
    }
    text += margin + item.name +
            std::string(widest + 2 - std::min(widest + 1, item.name.size()), ' ') + item.what +
            "\n";
  }

  const Model& model_;
  std::set<std::string> names_;
  std::vector<bool> of_classes_;               ///< By node: it has as many outputs as classes.
  std::map<Model::Node, std::string> ends_{};  ///< The blocks that are written, by their last node.
  std::string block_{};                        ///< The block that is being written.
  Model::Node start_ = 0;                      ///< It begins from this node.
};

/// Returns why two models are not the same; empty: they are.
std::string difference(const Model& a, const Model& b) {
  if (a.nodes().size() != b.nodes().size()) return "the number of layers";
  for (std::size_t i = 1; i < a.nodes().size(); ++i) {
    const Model::Entry &x = a.nodes()[i], &y = b.nodes()[i];
    if (x.name != y.name || x.block != y.block || x.inputs != y.inputs || x.shape != y.shape ||
        x.training_only != y.training_only ||
        kind_text(*x.layer, false) != kind_text(*y.layer, false))
      return x.name;
  }
  return "";
}

}  // namespace

std::string canonical_text(const Model& model) {
  return Writer(model).text();
}

std::string network_text(const Model& model) {
  const std::string text = canonical_text(model);
  // Names that a file cannot have, and blocks with others between their layers, do not come back.
  std::string differs;
  try {
    differs = difference(model, read_network(text, model.title(), {}));
  } catch (const Error& error) {
    throw Error(model.title() + " cannot be written as a network's file: " + error.what());
  }
  if (!differs.empty())
    throw Error(model.title() + " cannot be written as a network's file: " + differs +
                " would not be what it is");
  return text;
}

}  // namespace duplex::models::file
