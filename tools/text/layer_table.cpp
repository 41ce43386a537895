#include "tools/text/layer_table.h"

namespace duplex::tools {

std::string map_size(const Shape& shape) {
  if (shape.rank() == 2) return "1x1x" + std::to_string(shape.c());
  return std::to_string(shape.h()) + "x" + std::to_string(shape.w()) + "x" +
         std::to_string(shape.c());
}

std::vector<LayerRow> layer_rows(const Model& model, bool whole_blocks) {
  std::vector<LayerRow> rows;
  for (const Model::Entry& entry : model.nodes()) {
    if (!entry.layer) continue;
    const std::vector<Shape> x = model.input_shapes(entry);
    const bool in_block = entry.block != entry.name;
    const bool continues =
        whole_blocks && in_block && !rows.empty() && rows.back().name == entry.block;
    if (!continues) rows.emplace_back();
    LayerRow& row = rows.back();
    if (whole_blocks && in_block) {
      row.name = entry.block;
      const std::string kind = entry.block.substr(0, entry.block.find_first_of("_0123456789"));
      row.type = kind;
      row.geometry = "";
    } else {
      row.name = entry.name;
      row.type = entry.layer->type();
      row.geometry = entry.layer->geometry(x);
    }
    row.size = map_size(entry.shape);
    row.macs += entry.layer->macs(x);
    for (const ParameterSpec& spec : model.parameters(entry)) {
      if (spec.trained) row.parameters += spec.shape.elements();
    }
  }
  return rows;
}

}  // namespace duplex::tools
