// duplex nets [NET] prints the networks, or the thesis's table of one (Tables 2.1-2.5), or the
// memory that its training takes; or writes it as a file, or draws it.
#include <cstdio>
#include <map>
#include <set>

#include "core/error.h"
#include "core/files/output_file.h"
#include "core/files/own_files.h"
#include "models/file/writer.h"
#include "tools/commands.h"
#include "tools/drawing/network_drawing.h"
#include "tools/flags/command_line.h"
#include "tools/flags/memory_flags.h"
#include "tools/flags/model_flags.h"
#include "tools/memory/memory_table.h"
#include "tools/text/layer_table.h"
#include "tools/text/size.h"
#include "tools/text/table.h"
#include "tools/text/wrap.h"

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

/// "none", "any", "1,024".
std::string largest_text(const ForecastRank& rank) {
  if (!rank.fits) return "none";
  return rank.depends_on_batch ? grouped(*rank.largest) : "any";
}

/// Says which batch fits into `limit`. Throws Error if none does alone or on a worker.
void print_largest(const MemoryForecast& forecast, std::size_t limit, bool gpu) {
  bool some = false;
  std::printf("\nlargest batch that fits in %s MiB of %s:\n", mebibytes(limit).c_str(),
              gpu ? "the GPU" : "memory");
  for (const ForecastRank& rank : forecast.ranks) {
    std::printf("  %-17s%s", rank.memory.role.c_str(), largest_text(rank).c_str());
    if (!rank.fits)
      std::printf(
          ": %s MiB are needed%s", mebibytes(rank.least).c_str(),
          rank.depends_on_batch ? (" for a batch of " + grouped(rank.least_batch)).c_str() : "");
    std::printf("\n");
    some = some || (rank.fits && rank.depends_on_batch);
  }
  std::fflush(stdout);
  if (!some)
    throw Error("nets: not even a batch of 1 fits in " + mebibytes(limit) + " MiB; " +
                mebibytes(forecast.ranks.front().least) + " MiB are needed alone");
}

void print_memory(const Model& model, const MemoryFlags& flags, bool layers) {
  const ForecastSpec& spec = flags.spec;
  const MemoryForecast forecast = forecast_memory(model, spec);
  const std::string asked = model.title() + ", input " + map_size(model.entry(0).shape) +
                            ", batch " + grouped(spec.memory.batch) + ": " + flags.text() + "\n";
  std::printf("%s\n", wrap(asked).c_str());
  std::vector<RankMemory> ranks;
  for (const ForecastRank& rank : forecast.ranks) ranks.push_back(rank.memory);
  std::fputs(memory_table(ranks).c_str(), stdout);
  if (layers) std::printf("\n%s", layer_memory_table(forecast.network).c_str());
  if (spec.limit) print_largest(forecast, *spec.limit, is_gpu(spec.memory.computing));
}

}  // namespace

int nets(int argc, const char* const* argv) {
  CommandLine app{
      "Prints the networks, or one network's table of layers, with a sample's multiply-adds, or "
      "the memory that its training takes. Writes a network as a file for --net, or draws it.",
      "duplex nets"};
  ModelSpec model;
  MemoryFlags memory;
  bool layers = false;
  std::string output, svg, dot;
  add_model_flags(app, model);
  app.flag("--net").required(false);
  read_file_of(app.add_option("NET", model.net, "the same as --net"), model);
  app.add_flag("--layers", layers, "a row for every layer, also inside modules");
  app.add_option("--output", output,
                 "write the network as a text file, which --net takes (docs/network-files.md)");
  app.add_option("--svg", svg, "draw the network there, as a picture for browsers");
  app.add_option("--dot", dot, "write the network there as a graph for Graphviz' dot");
  memory.add_to(app);
  if (const auto done = parse(app, argc, argv)) return *done;
  if (memory.wanted && model.net.empty())
    throw Error("nets: say which network's memory, as in duplex nets lenet --memory", Exit::usage);
  const bool writes = !output.empty() || !svg.empty() || !dot.empty();
  if (writes && model.net.empty())
    throw Error("nets: say which network, as in duplex nets lenet --output lenet.net", Exit::usage);
  if (writes) {
    require_own_files("nets", {{"--net", model.path()}},
                      {{"--output", output}, {"--svg", svg}, {"--dot", dot}});
    const Model written = model.build();
    if (!output.empty()) write_file(output, models::file::network_text(written));
    if (!svg.empty()) write_file(svg, svg_of(written));
    if (!dot.empty()) write_file(dot, dot_of(written));
  } else if (memory.wanted) {
    memory.resolve(app);
    print_memory(model.build(), memory, layers);
  } else if (model.net.empty()) {
    print_all();
  } else {
    print_table(model.build(), !layers);
  }
  return 0;
}

}  // namespace duplex::tools
