#include "tools/flags/model_flags.h"

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

RunConfig ModelFlags::config(const Model& model) const {
  RunConfig config;
  config.network = net;
  config.title = model.title();
  config.input = model.entry(0).shape.str();
  config.classes = model.classes();
  config.parameters = model.trained_parameters();
  config.auxiliary = options.auxiliary;
  config.pad_shortcuts = options.zero_padded_shortcuts;
  return config;
}

}  // namespace duplex::tools
