// The kinds of layers that a network's file has, and what is written behind each.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "layers/layer.h"
#include "models/file/statements.h"

namespace duplex::models::file {

/// Makes the layer of a statement. `classes`: what the word `classes` stands for; 0: the file does
/// not say. Throws Error(Exit::usage), with place and what was expected, where it is unknown, and
/// where it would be larger than a network may be on inputs of these shapes. `used`: becomes true
/// where the word `classes` was read.
std::shared_ptr<const Layer> layer_of(const Statement& statement, const std::vector<Shape>& x,
                                      std::int64_t classes, bool& used, const std::string& path);

}  // namespace duplex::models::file
