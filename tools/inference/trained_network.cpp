#include "tools/inference/trained_network.h"

#include <algorithm>
#include <cstdlib>

#include "core/error.h"
#include "layers/checkpoint.h"
#include "net/wire/frame.h"
#include "tools/text/table.h"

namespace duplex::tools {

TrainedNetwork load_trained(const WeightsFile& weights, const Model& model,
                            const DeviceSpec& computing, std::int64_t batch) {
  const Shape& sample = model.entry(0).shape;
  const int side = weights.reading().test_side;
  if (side != 0 && side < std::max(sample.h(), sample.w()))
    throw Error("--input " + std::to_string(sample.h()) + ": " + weights.path +
                    " was tested with --test-crop " + std::to_string(side) +
                    ", which is smaller: leave --input out",
                Exit::usage);
  TrainedNetwork trained;
  trained.device = computing.make();
  trained.network = computing.build(model, *trained.device, batch, false);
  load_checkpoint(weights.path, *trained.network);
  const std::string spoilt = trained.network->not_finite();
  if (!spoilt.empty())
    throw Error(weights.path + ": " + spoilt + " is not finite; use other weights");
  return trained;
}

std::string about(const WeightsFile& weights, const Model& model) {
  std::string text = model.title() + ", " + grouped(model.classes()) + " classes, ";
  char* end = nullptr;
  const long long steps = std::strtoll(weights.steps.c_str(), &end, 10);
  if (end != weights.steps.c_str() && *end == '\0' && steps >= 0)
    text += "after " + grouped(steps) + (steps == 1 ? " step, " : " steps, ");
  return text + "from " + weights.path;
}

std::string name_of_class(const std::vector<std::string>& names, std::size_t number) {
  return number < names.size() ? net::printable(names[number]) : std::to_string(number);
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  return quoted + "\"";
}

}  // namespace duplex::tools
