// Lists the networks that this program knows, one for each file of models/. make/registry.sh
// generates the table behind all() from the files' names, so that a new network is one new file.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "layers/model.h"

namespace duplex::models {

/// Holds what may be chosen about a network. 0 means the network's own default.
struct ModelOptions {
  std::int64_t classes = 0;
  std::int64_t input = 0;              ///< Height and width of the input.
  std::int64_t channels = 0;           ///< Channels of the input.
  bool auxiliary = false;              ///< Gives GoogLeNet the classifiers of Table 2.3.
  bool zero_padded_shortcuts = false;  ///< Builds Resnet34 by Figure 2.12 instead of 2.11.
  /// The text of the network's file (docs/network-files.md), whose path is then the network's name;
  /// empty: the network is compiled.
  std::string file;

  /// Returns (1, channels, input, input), with the defaults filled in.
  Shape sample(std::int64_t default_channels, std::int64_t default_input) const;
  std::int64_t classes_or(std::int64_t default_classes) const {
    return classes != 0 ? classes : default_classes;
  }
};

/// Builds a network. Throws Error where the options give maps that are too small for it.
using Builder = Model (*)(const ModelOptions&);

const std::vector<std::pair<std::string, Builder>>& all();

/// Returns whether `name` is the path of a network's file: it is not the name of a compiled
/// network, and has a '/' or a '.', or is the name of a file.
bool names_file(const std::string& name);

/// Builds the network of this name, or of the file whose path it is: from options.file, or where
/// that is empty from what the file has now. Throws Error(Exit::usage) for an unknown name, and
/// lists the known ones, and for options out of range; of a file, Error(Exit::usage) as
/// file::read_network does.
Model build(const std::string& name, const ModelOptions& options);

}  // namespace duplex::models
