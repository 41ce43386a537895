#include "models/file/reader.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <system_error>

#include "models/file/kinds.h"
#include "models/file/statements.h"

namespace duplex::models::file {
namespace {

using Values = std::vector<std::pair<std::string, std::int64_t>>;

double elements_of(const Shape& shape) {
  return static_cast<double>(shape.c()) * static_cast<double>(shape.h()) *
         static_cast<double>(shape.w());
}

/// Builds a model of statements, layer by layer in the order of the file.
class Builder {
 public:
  Builder(const std::string& path, const Statements& file, const ModelOptions& options)
      : path_(path),
        file_(file),
        classes_(file.header.classes == 0 ? 0 : options.classes_or(file.header.classes)),
        model_(file.header.title.text, options.sample(file.header.channels, file.header.side)),
        last_(model_.input()),
        read_(1, true) {
    if (!file.header.known_as.text.empty()) model_.known_as(file.header.known_as.text);
    check_map(file.header.title, model_.entry(0).shape);
  }

  Model build(const ModelOptions& options) {
    collect(file_.statements, {}, "");
    add(file_.statements, {}, false);
    check_ends();
    if (options.classes != 0 && options.classes != model_.classes())
      throw Error(path_ + ": the network has " + std::to_string(model_.classes()) +
                      " classes, not " + std::to_string(options.classes) +
                      (used_classes_ ? ""
                                     : "; write 'classes' for their number at its last layer "
                                       "with weights, and 'classes N' below 'input'"),
                  Exit::usage);
    return std::move(model_);
  }

 private:
  // ---- Names, all of them before any layer is built: a name that stands below is another mistake
  // than one that stands nowhere.

  void collect(const std::vector<Statement>& statements, const Values& values,
               const std::string& block) {
    for (const Statement& statement : statements) {
      if (statement.kind == Statement::Kind::repeat) {
        for (std::int64_t i = statement.first; i <= statement.last; ++i)
          collect(statement.statements, with(values, statement, i), block);
        continue;
      }
      const std::string name = block + full_name(statement.name, values);
      const auto [place, is_new] = places_.emplace(name, statement.name);
      if (!is_new)
        throw error_at(path_, statement.name,
                       "the name '" + name + "' is given twice; the first is in line " +
                           std::to_string(place->second.line) +
                           " (within a repeat, write its variable into the name, as in conv{i})");
      if (statement.kind == Statement::Kind::layer) {
        if (++layers_ > most_layers)
          throw error_at(path_, statement.name,
                         "the network has more than " + std::to_string(most_layers) + " layers");
        continue;
      }
      if (!block.empty()) throw error_at(path_, statement.name, "a block has no block within it");
      // Blocks without layers count too, so that repeats of them end.
      if (places_.size() > 2 * most_layers)
        throw error_at(path_, statement.name, "the network has too many blocks");
      collect(statement.statements, values, name + "/");
    }
  }

  Values with(Values values, const Statement& repeat, std::int64_t value) {
    // A repeat of repeats that hold nothing would go on for ever.
    if (++rounds_ > 4 * most_layers)
      throw error_at(path_, repeat.name, "the repeats go round too often");
    for (const auto& [name, other] : values)
      if (name == repeat.name.text)
        throw error_at(path_, repeat.name, "a repeat around this one has the same variable");
    values.emplace_back(repeat.name.text, value);
    return values;
  }

  std::string full_name(const Word& word, const Values& values) const {
    Word filled = word;
    filled.text = filled_in(word, values, path_);
    if (filled.text.find_first_of("{}+") != std::string::npos)
      throw error_at(path_, word, "a name has letters, digits, '_' and '-' alone");
    check_name(path_, filled);
    return filled.text;
  }

  // ---- Layers.

  void add(const std::vector<Statement>& statements, const Values& values, bool training_only) {
    for (const Statement& statement : statements) {
      switch (statement.kind) {
        case Statement::Kind::repeat:
          for (std::int64_t i = statement.first; i <= statement.last; ++i) {
            Values more = values;
            more.emplace_back(statement.name.text, i);
            add(statement.statements, more, training_only);
          }
          break;
        case Statement::Kind::block:
          add_block(statement, values);
          break;
        case Statement::Kind::layer:
          add_layer(statement, values, training_only || statement.training_only);
          break;
      }
    }
  }

  void add_block(const Statement& block, const Values& values) {
    start_ = last_ = block.from.empty() ? last_ : node_of(block.from[0], values);
    block_ = full_name(block.name, values);
    const Model::Node before = model_.output();
    model_.block(block_);
    add(block.statements, values, block.training_only);
    model_.block("");
    if (model_.output() == before)
      throw error_at(path_, block.name, "the block '" + block_ + "' has no layers");
    nodes_[block_] = model_.output();
    block_.clear();
  }

  void add_layer(const Statement& statement, const Values& values, bool training_only) {
    std::vector<Model::Node> inputs;
    for (const Word& word : statement.from) {
      inputs.push_back(node_of(word, values));
      for (std::size_t i = 0; i + 1 < inputs.size(); ++i)
        if (inputs[i] == inputs.back()) throw error_at(path_, word, "the layer reads this twice");
    }
    if (statement.from.empty()) inputs.push_back(last_);
    std::vector<Shape> shapes;
    for (const Model::Node input : inputs) {
      check_input(statement, model_.entry(input), training_only);
      shapes.push_back(model_.shape(input));
      read_[static_cast<std::size_t>(input)] = true;
    }
    const auto layer = layer_of(statement, shapes, classes_, used_classes_, path_);
    const std::string name = full_name(statement.name, values);
    model_.training_only(training_only);
    try {
      last_ = model_.layer(name, layer, inputs);
    } catch (const Error& error) {
      throw error_at(path_, statement.name, error.what());
    }
    read_.push_back(layer->loss_kind().has_value());
    nodes_[block_.empty() ? name : block_ + "/" + name] = last_;
    check_size(statement, shapes);
  }

  void check_input(const Statement& statement, const Model::Entry& input,
                   bool training_only) const {
    if (input.layer && input.layer->loss_kind())
      throw error_at(path_, statement.name,
                     "the layer reads '" + input.name +
                         "', which is a loss, and these are read by none; say what it reads "
                         "behind 'from'");
    if (input.training_only && !training_only)
      throw error_at(path_, statement.name,
                     "the layer reads '" + input.name +
                         "', which runs in training only; say what it reads behind 'from'");
  }

  /// The layer of this name: within the block, then in the whole network. A name that begins with
  /// '/' is one of the network.
  Model::Node node_of(const Word& word, const Values& values) const {
    const std::string name = filled_in(word, values, path_);
    if (name == "input") return model_.input();
    if (name == "start") {
      if (block_.empty())
        throw error_at(path_, word, "'start' is what a block begins from; no block is around this");
      return start_;
    }
    if (!block_.empty())
      if (const auto own = nodes_.find(block_ + "/" + name); own != nodes_.end())
        return own->second;
    const auto other = nodes_.find(name.rfind('/', 0) == 0 ? name.substr(1) : name);
    if (other != nodes_.end()) return other->second;
    auto below = places_.find(block_ + "/" + name);
    if (below == places_.end()) below = places_.find(name);
    if (below == places_.end())
      throw error_at(path_, word, "there is no layer or block '" + name.substr(0, 80) + "' above");
    throw error_at(path_, word,
                   "'" + below->first + "' is not above this line but in line " +
                       std::to_string(below->second.line) +
                       "; a layer reads what is above it, so that a network has no loop");
  }

  // ---- Sizes.

  void check_map(const Word& place, const Shape& shape) const {
    if (elements_of(shape) > most_values)
      throw error_at(
          path_, place,
          "the layer would give more than 2^31 values for one sample (" + shape.str() + ")");
  }

  void check_size(const Statement& statement, const std::vector<Shape>& x) {
    const Model::Entry& entry = model_.entry(last_);
    check_map(statement.name, entry.shape);
    double macs = 0.0;
    for (const ParameterSpec& spec : entry.layer->parameters(x)) {
      const auto values = static_cast<double>(spec.shape.elements());
      parameters_ += spec.trained ? values : 0.0;
      trained_ = trained_ || spec.trained;
      // Layer::macs, but without overflow.
      if (spec.shape.rank() == 4)
        macs = values * static_cast<double>(entry.shape.h()) * static_cast<double>(entry.shape.w());
      if (spec.shape.rank() == 2) macs = values;
    }
    macs_ += macs;
    if (parameters_ > most_parameters || macs_ > most_macs)
      throw error_at(path_, statement.name,
                     parameters_ > most_parameters
                         ? "up to here the network has more than 2^36 parameters"
                         : "up to here the network multiplies too often for one sample");
  }

  /// The network ends in a loss, everything in it is read, and losses agree about the classes.
  void check_ends() const {
    const Model::Entry& end = model_.entry(model_.output());
    if (!end.layer || !end.layer->loss_kind() || end.training_only)
      throw error_at(path_, file_.end,
                     "the network's last layer has to be softmax or squared error, and to run "
                     "outside training, too");
    if (!trained_) throw error_at(path_, file_.end, "the network has no weights to train");
    for (std::size_t i = 0; i < read_.size(); ++i) {
      const Model::Entry& entry = model_.nodes()[i];
      if (!read_[i])
        throw error_at(path_, places_.at(entry.name), "no layer reads '" + entry.name + "'");
      if (entry.layer && entry.layer->loss_kind() && entry.shape.c() != end.shape.c())
        throw error_at(path_, places_.at(entry.name),
                       "the loss '" + entry.name + "' has " + std::to_string(entry.shape.c()) +
                           " classes, and the network's last layer has " +
                           std::to_string(end.shape.c()));
    }
  }

  const std::string& path_;
  const Statements& file_;
  std::int64_t classes_;
  Model model_;
  std::map<std::string, Word> places_;        ///< All names are in it.
  std::map<std::string, Model::Node> nodes_;  ///< Layers and blocks that have been added.
  std::string block_;                         ///< Around the layer that is being added.
  Model::Node start_ = 0, last_;              ///< The block begins from it; the layer above.
  std::vector<bool> read_;                    ///< By node; losses count as read.
  std::size_t layers_ = 0, rounds_ = 0;
  double parameters_ = 0.0, macs_ = 0.0;
  bool trained_ = false, used_classes_ = false;
};

}  // namespace

Model read_network(const std::string& text, const std::string& path, const ModelOptions& options) {
  if (options.auxiliary || options.zero_padded_shortcuts)
    throw Error(path +
                    ": --auxiliary and --pad-shortcuts choose between forms of compiled "
                    "networks; a network's file has one form",
                Exit::usage);
  const Statements statements = statements_of(text, path);
  return Builder(path, statements, options).build(options);
}

std::string text_of_file(const std::string& path) {
  const auto unreadable = [&](const char* why) {
    return Error("network file " + path + ": cannot be read: " + why, Exit::usage);
  };
  // Opening a pipe would wait for somebody who writes to it.
  if (std::error_code none;
      std::filesystem::exists(path, none) && !std::filesystem::is_regular_file(path, none))
    throw unreadable("it is no regular file");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw unreadable(std::strerror(errno));
  std::string text(most_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.fail() && !file.eof())) throw unreadable("it is no file of text");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.empty()) throw unreadable("it is empty");
  return text;
}

}  // namespace duplex::models::file
