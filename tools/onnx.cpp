// duplex onnx writes a network with its weights as an ONNX file, and makes a network's file and
// weights of one (docs/onnx.md).
#include <cstdio>

#include "core/error.h"
#include "core/files/output_file.h"
#include "core/files/own_files.h"
#include "core/files/safetensors.h"
#include "datasets/file.h"
#include "layers/checkpoint.h"
#include "models/file/writer.h"
#include "models/onnx/exporter.h"
#include "models/onnx/importer.h"
#include "net/wire/frame.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/flags/model_flags.h"
#include "tools/text/layer_table.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

struct ExportFlags {
  ModelSpec model;
  std::string weights, output;
  std::uint64_t seed = 1;
};

struct ImportFlags {
  std::string file, output, weights;
};

void export_network(const ExportFlags& flags) {
  require_own_files("onnx", {{"--net", flags.model.path()}, {"--weights", flags.weights}},
                    {{"--output", flags.output}});
  const Model model = flags.model.build();
  models::onnx::ParameterValues values = [&](const ParameterSpec& spec, float* to) {
    draw_initial(spec, flags.seed, to);
  };
  std::map<std::string, std::vector<float>> trained;
  if (!flags.weights.empty()) {
    read_checkpoint(flags.weights, model, [&](const ParameterSpec& spec, const float* from) {
      trained[spec.name].assign(from, from + spec.shape.elements());
    });
    values = [&](const ParameterSpec& spec, float* to) {
      const std::vector<float>& from = trained.at(spec.name);
      std::copy(from.begin(), from.end(), to);
    };
  }
  models::onnx::Graph graph = models::onnx::graph_of(model, values);
  const Shape& sample = model.entry(0).shape;
  graph.about = "images: (N, " + std::to_string(sample.c()) + ", " + std::to_string(sample.h()) +
                ", " + std::to_string(sample.w()) +
                "), normalised as docs/onnx.md of Duplex has it. Weights: " +
                (flags.weights.empty() ? "the initial ones." : "trained.");
  models::onnx::write_graph(flags.output, graph);
  std::printf("%s: %s, input %s, %lld classes, %s\n", flags.output.c_str(), model.title().c_str(),
              map_size(sample).c_str(), static_cast<long long>(model.classes()),
              flags.weights.empty() ? "initial weights" : "trained weights");
}

models::onnx::Imported read_network(const models::onnx::Graph& graph, std::string& text) {
  models::onnx::Imported network = models::onnx::network_of(graph, true);
  try {
    text = models::file::network_text(network.model);
    return network;
  } catch (const Error&) {
    // Nodes with names like those of blocks may not be as close together as a block's layers are.
  }
  models::onnx::Imported plain = models::onnx::network_of(graph, false);
  text = models::file::network_text(plain.model);
  return plain;
}

void import_network(const ImportFlags& flags) {
  constexpr std::size_t most_bytes = std::size_t{1} << 31;
  require_own_files("onnx", {{"FILE", flags.file}},
                    {{"--output", flags.output}, {"--save", flags.weights}});
  std::vector<std::uint8_t> bytes;
  std::string text;
  try {
    bytes = datasets::read_file(flags.file, most_bytes);
    const models::onnx::Graph graph = models::onnx::read_graph({bytes.data(), bytes.size()});
    const models::onnx::Imported network = read_network(graph, text);
    OutputFile file(flags.output);  // Without room for it there are no weights, either.
    file.write(text);
    if (!flags.weights.empty()) {
      std::vector<SafetensorsEntry> entries;
      for (const auto& array : network.arrays) entries.push_back({array.name, array.shape});
      save_safetensors(flags.weights, entries, {{"network", network.model.title()}},
                       [&](std::size_t i, float* to) { network.arrays[i].values(to); });
    }
    file.commit();
    std::printf("%s: %s, input %s, %lld classes, %s parameters; duplex nets %s shows it\n",
                flags.output.c_str(), network.model.title().c_str(),
                map_size(network.model.entry(0).shape).c_str(),
                static_cast<long long>(network.model.classes()),
                grouped(network.model.trained_parameters()).c_str(), flags.output.c_str());
  } catch (const Error& error) {
    // Names of nodes and tensors may have any bytes.
    throw Error("onnx: " + net::printable(flags.file + ": " + error.what()), error.code);
  }
}

}  // namespace

int onnx(int argc, const char* const* argv) {
  CommandLine app{
      "Writes a network and its weights as an ONNX file, which other programs run, or makes a "
      "network's file and its weights of an ONNX file.",
      "duplex onnx"};
  ExportFlags out;
  ImportFlags in;
  CommandLine& exporting = app.add_subcommand("export", "write an ONNX file");
  add_model_flags(exporting, out.model);
  exporting.add_option("--weights", out.weights,
                       "the trained weights, such as RUN/checkpoint.safetensors; without them the "
                       "file has those that a training starts with");
  exporting.add_option("--seed", out.seed, "the seed of these (default 1)");
  exporting.add_option("--output", out.output, "the file to write").required();
  CommandLine& importing = app.add_subcommand("import", "read an ONNX file");
  importing.add_option("FILE", in.file, "the ONNX file").required();
  importing.add_option("--output", in.output, "write the network there, for --net").required();
  importing.add_option("--save", in.weights, "write the weights there, for --weights");
  app.require_subcommand();
  if (const auto done = parse(app, argc, argv)) return *done;
  if (exporting.taken())
    export_network(out);
  else
    import_network(in);
  return 0;
}

}  // namespace duplex::tools
