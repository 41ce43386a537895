#include "tools/flags/model_flags.h"

#include "tools/flags/command_line.h"

namespace duplex::tools {

void add_model_flags(CLI::App& app, ModelSpec& spec, bool required) {
  std::string known;
  for (const auto& [name, builder] : models::all()) known += (known.empty() ? "" : ", ") + name;
  app.add_option("--net", spec.net, "network: " + known)->required(required);
  app.add_option("--classes", spec.options.classes,
                 "classes (default: the data set's, else the network's)")
      ->check(positive());
  app.add_option("--input", spec.options.input,
                 "height and width of the input (default: the network's)")
      ->check(between(1, 4096));
  app.add_flag(
      "--auxiliary", spec.options.auxiliary,
      "googlenet: train with the auxiliary classifiers, whose losses the training loss then "
      "includes");
  app.add_flag("--pad-shortcuts", spec.options.zero_padded_shortcuts,
               "resnet34: zero-padded channels instead of 1x1 convolutions");
}

}  // namespace duplex::tools
