// Writes a network as a text file that reads like its table (docs/network-files.md).
#pragma once
#include <string>

#include "layers/model.h"

namespace duplex::models::file {

/// Returns the text of which read_network makes the same model: the same layers, names, blocks and
/// numbers. Blocks and layers that differ in the last number of their names alone become a repeat;
/// the number of classes becomes `classes` where it decides how many outputs a loss has. Throws
/// Error for a model with a layer of one's own, or with names that a file cannot have.
std::string network_text(const Model& model);

/// Returns the same text for a model that was read from a file, without a check that it can be read
/// again: repeats may have made more layers than a file has room for. Two models have the same text
/// if and only if they are the same, so that it serves to compare them.
std::string canonical_text(const Model& model);

}  // namespace duplex::models::file
