#include "tools/report/thesis/networks.h"

#include <algorithm>
#include <string>
#include <vector>

#include "models/registry.h"
#include "tools/text/layer_table.h"
#include "tools/text/table.h"

namespace duplex::tools::reports {
namespace {

struct TableOfLayers {
  const char* number;
  const char* network;
  bool auxiliary;
  const char* caption;
};

/// The rows whose names `known` does not have.
std::vector<LayerRow> rows_beyond(std::vector<LayerRow> rows, const std::vector<LayerRow>& known) {
  const auto is_known = [&](const LayerRow& row) {
    return std::any_of(known.begin(), known.end(),
                       [&](const LayerRow& other) { return other.name == row.name; });
  };
  rows.erase(std::remove_if(rows.begin(), rows.end(), is_known), rows.end());
  return rows;
}

}  // namespace

void add_networks(Page& page) {
  page.heading(2, "Chapter 2: the networks", "chapter-2");
  page.paragraph(
      "Printed from the models that are trained. Input 224x224x3, 1000 classes; a module is a "
      "row.");
  for (const TableOfLayers& each :
       {TableOfLayers{"2.1", "vgg16e", false, "VGG16E"},
        TableOfLayers{"2.2", "googlenet", false, "GoogLeNet"},
        TableOfLayers{"2.3", "googlenet", true, "GoogLeNet's auxiliary classifiers"},
        TableOfLayers{"2.4", "squeezenet", false, "SqueezeNet"},
        TableOfLayers{"2.5", "resnet34", false, "Resnet34"}}) {
    std::vector<LayerRow> layers;
    if (each.auxiliary) {
      models::ModelOptions options;
      options.auxiliary = true;
      layers = rows_beyond(layer_rows(models::build(each.network, options), false),
                           layer_rows(models::build(each.network, {}), false));
    } else {
      layers = layer_rows(models::build(each.network, {}), true);
    }
    std::vector<Page::Row> rows;
    std::int64_t parameters = 0;
    for (const LayerRow& row : layers) {
      rows.push_back({row.name, row.type, row.geometry, row.size,
                      row.parameters > 0 ? grouped(row.parameters) : ""});
      parameters += row.parameters;
    }
    rows.push_back({"in all", "", "", "", grouped(parameters)});
    page.heading(3, std::string("Table ") + each.number + ": " + each.caption,
                 std::string("table-") + each.number);
    if (std::string(each.number) == "2.1")
      page.paragraph(
          "The thesis's table prints the sizes for an input of 128x128 (fc6: 8192x4096); its "
          "text and its t_comm are those of 224x224 (fc6: 25088x4096), as here. --input 128 gives "
          "the other.");
    page.begin_fold(std::to_string(layers.size()) + " rows, " + grouped(parameters) +
                    " parameters, " + fixed(static_cast<double>(parameters) * 4e-6, 1) + " MB");
    page.table({"layer", "type", "filter/stride", "output", "parameters"}, rows, 4);
    page.end_fold();
  }
}

}  // namespace duplex::tools::reports
