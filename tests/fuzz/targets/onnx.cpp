// ONNX files: the graph, the network that is made of it, and its weights.
#include "models/onnx/importer.h"

#include "core/error.h"
#include "models/file/words.h"
#include "tests/fuzz/target.h"

namespace duplex::fuzz {

void onnx(const Bytes& input) {
  // A node of few letters is a layer, which takes two KiB with its name and its place.
  constexpr std::size_t each = 2048;
  reads(input, each, [&] {
    const models::onnx::Graph graph = models::onnx::read_graph({input.data(), input.size()});
    for (const bool blocks : {true, false}) {
      const models::onnx::Imported read = models::onnx::network_of(graph, blocks);
      require(read.model.nodes().size() <= models::file::most_layers + 2,
              "a network has too many layers");
      std::size_t parameters = 0;
      for (const Model::Entry& entry : read.model.nodes()) {
        require(entry.shape.elements() > 0, "a map has overflowed");
        parameters += read.model.parameters(entry).size();
      }
      require(parameters == read.arrays.size(), "a parameter has no values");
      for (const auto& array : read.arrays) {
        std::vector<float> values(static_cast<std::size_t>(array.shape.elements()));
        array.values(values.data());
        touch(reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(float));
      }
    }
  });
}

}  // namespace duplex::fuzz
