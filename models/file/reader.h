// Reads a network from a text file that reads like its table (docs/network-files.md).
#pragma once
#include <string>

#include "layers/model.h"
#include "models/registry.h"

namespace duplex::models::file {

/// Builds the network of a file's text. `path` names it in errors. `options` may ask for other
/// classes, where the file writes `classes` for their number, and for another input; the variants
/// of compiled networks are refused. Throws Error(Exit::usage), with the path, line, column and
/// what was expected, for everything that is no network, and for one that would be larger than
/// words.h allows.
Model read_network(const std::string& text, const std::string& path, const ModelOptions& options);

/// The whole of a network's file. Runs, plans and weights name such files, too, so nothing but a
/// regular file is opened. Throws Error(Exit::usage) where it cannot be read, or is empty.
std::string text_of_file(const std::string& path);

}  // namespace duplex::models::file
