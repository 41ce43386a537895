#include "tools/flags/model_flags.h"

#include <nlohmann/json.hpp>

#include "tools/flags/command_line.h"

namespace duplex::tools {

void ModelFlags::add_to(CLI::App& app, bool required) {
  std::string known;
  for (const auto& [name, builder] : models::all()) known += (known.empty() ? "" : ", ") + name;
  app.add_option("--net", net, "network: " + known)->required(required);
  app.add_option("--classes", options.classes,
                 "classes (default: the data set's, else the network's)")
      ->check(positive());
  app.add_option("--input", options.input, "height and width of the input (default: the network's)")
      ->check(between(1, 4096));
  app.add_flag(
      "--auxiliary", options.auxiliary,
      "googlenet: train with the auxiliary classifiers, whose losses the training loss then "
      "includes");
  app.add_flag("--pad-shortcuts", options.zero_padded_shortcuts,
               "resnet34: zero-padded channels instead of 1x1 convolutions");
}

nlohmann::ordered_json ModelFlags::describe(const Model& model) const {
  return {{"version", 1},
          {"network", net},
          {"title", model.title()},
          {"input", model.entry(0).shape.str()},
          {"classes", model.classes()},
          {"parameters", model.trained_parameters()},
          {"auxiliary", options.auxiliary},
          {"pad_shortcuts", options.zero_padded_shortcuts}};
}

}  // namespace duplex::tools
