// A network as a table of layers, as the thesis prints it (Tables 2.1-2.5).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "layers/model.h"

namespace duplex::tools {

struct LayerRow {
  std::string name, type, geometry, size;
  /// Trained parameters, and multiply-adds of one sample's forward.
  std::int64_t parameters = 0, macs = 0;
};

/// A row for each layer, or with `whole_blocks` one for each block, as the thesis prints modules.
std::vector<LayerRow> layer_rows(const Model& model, bool whole_blocks);

/// "224x224x3".
std::string map_size(const Shape& shape);

}  // namespace duplex::tools
