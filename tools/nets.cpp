// duplex nets [NET] prints the networks, or the thesis's table of one (Tables 2.1-2.5).
#include <cstdio>
#include <map>
#include <set>

#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/flags/model_flags.h"
#include "tools/text/layer_table.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

void print_table(const Model& model, bool whole_blocks) {
  Table table({{"layer", Table::Align::left},
               {"type", Table::Align::left},
               {"filter", Table::Align::left},
               {"output", Table::Align::left},
               {"parameters", Table::Align::right},
               {"MACs", Table::Align::right}});
  std::int64_t macs = 0;
  for (const LayerRow& row : layer_rows(model, whole_blocks)) {
    macs += row.macs;
    table.row({row.name, row.type, row.geometry, row.size,
               row.parameters != 0 ? grouped(row.parameters) : "",
               row.macs != 0 ? grouped(row.macs) : ""});
  }
  table.rule();
  const std::int64_t parameters = model.trained_parameters();
  table.row({"total", "", "", "", grouped(parameters), grouped(macs)});
  const std::string other = model.known_as().empty() ? "" : " (" + model.known_as() + ")";
  std::printf("%s%s, input %s, %lld classes: %s MB of weights\n\n%s", model.title().c_str(),
              other.c_str(), map_size(model.entry(0).shape).c_str(),
              static_cast<long long>(model.classes()),
              fixed(static_cast<double>(parameters) * 4e-6, 1).c_str(), table.str().c_str());
}

void print_all() {
  Table table({{"network", Table::Align::left},
               {"known as", Table::Align::left},
               {"input", Table::Align::left},
               {"classes", Table::Align::right},
               {"parameters", Table::Align::right},
               {"MB", Table::Align::right},
               {"MACs", Table::Align::right}});
  for (const auto& [name, builder] : models::all()) {
    const Model model = builder({});
    table.row({name, model.known_as(), map_size(model.entry(0).shape),
               std::to_string(model.classes()), grouped(model.trained_parameters()),
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
  ModelSpec model;
  bool layers = false;
  add_model_flags(app, model);
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
