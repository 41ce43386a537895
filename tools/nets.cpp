// duplex nets [NET]: the networks, or the thesis's table of one (Tables 2.1-2.5).
#include <cstdio>
#include <map>
#include <set>

#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/model_flags.h"
#include "tools/table.h"

namespace duplex::tools {
namespace {

std::string map_size(const Shape& shape) {
  if (shape.rank() == 2) return "1x1x" + std::to_string(shape.c());
  return std::to_string(shape.h()) + "x" + std::to_string(shape.w()) + "x" +
         std::to_string(shape.c());
}

struct Row {
  std::string name, type, geometry, size;
  std::int64_t parameters = 0, macs = 0;
};

/// A row a layer, or with `whole_blocks` a row a block, as the thesis prints modules.
std::vector<Row> rows_of(const Model& model, bool whole_blocks) {
  std::vector<Row> rows;
  for (const Model::Entry& entry : model.nodes()) {
    if (!entry.layer) continue;
    const std::vector<Shape> x = model.input_shapes(entry);
    const bool in_block = entry.block != entry.name;
    const bool continues =
        whole_blocks && in_block && !rows.empty() && rows.back().name == entry.block;
    if (!continues) rows.emplace_back();
    Row& row = rows.back();
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

void print_table(const Model& model, bool whole_blocks) {
  Table table({{"layer", Table::Align::left},
               {"type", Table::Align::left},
               {"filter/stride", Table::Align::left},
               {"output", Table::Align::left},
               {"parameters", Table::Align::right},
               {"MACs", Table::Align::right}});
  std::int64_t macs = 0;
  for (const Row& row : rows_of(model, whole_blocks)) {
    macs += row.macs;
    table.row({row.name, row.type, row.geometry, row.size,
               row.parameters != 0 ? grouped(row.parameters) : "",
               row.macs != 0 ? grouped(row.macs) : ""});
  }
  table.rule();
  const std::int64_t parameters = model.trained_parameters();
  table.row({"total", "", "", "", grouped(parameters), grouped(macs)});
  std::printf("%s, input %s, %lld classes: %s MB of weights\n\n%s", model.title().c_str(),
              map_size(model.entry(0).shape).c_str(), static_cast<long long>(model.classes()),
              fixed(static_cast<double>(parameters) * 4e-6, 1).c_str(), table.str().c_str());
}

void print_all() {
  Table table({{"network", Table::Align::left},
               {"input", Table::Align::left},
               {"classes", Table::Align::right},
               {"parameters", Table::Align::right},
               {"MB", Table::Align::right},
               {"MACs", Table::Align::right}});
  for (const auto& [name, builder] : models::all()) {
    const Model model = builder({});
    table.row({name, map_size(model.entry(0).shape), std::to_string(model.classes()),
               grouped(model.trained_parameters()),
               fixed(static_cast<double>(model.trained_parameters()) * 4e-6, 1),
               grouped(model.macs())});
  }
  std::fputs(table.str().c_str(), stdout);
}

}  // namespace

int nets(int argc, const char* const* argv) {
  CLI::App app{
      "Prints the networks, or one network's table of layers, with a sample's multiply-adds.",
      "duplex nets"};
  ModelFlags model;
  bool layers = false;
  model.add_to(app);
  app.get_option("--net")->required(false);
  app.add_option("NET", model.net, "the same as --net");
  app.add_flag("--layers", layers, "a row for every layer, also inside modules");
  if (const auto done = parse(app, argc, argv)) return *done;
  if (model.net.empty()) {
    print_all();
  } else {
    print_table(model.build(), !layers);
  }
  return 0;
}

}  // namespace duplex::tools
