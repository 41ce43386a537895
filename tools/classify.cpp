// duplex classify says what trained weights take images for.
#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "net/wire/frame.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/flags/device_flags.h"
#include "tools/flags/model_flags.h"
#include "tools/inference/classification.h"
#include "tools/inference/trained_network.h"

namespace duplex::tools {
namespace {

struct ClassifyFlags {
  ModelSpec model;
  DeviceSpec computing;
  std::string weights, datadir, output = "text";
  std::vector<std::string> images;
  std::size_t top = 5;
  std::optional<std::int64_t> batch;
};

/// The names of the classes: those that the weights were trained with, or those of --datadir, which
/// must be the same; then `model` gets their number, unless it has one.
std::vector<std::string> class_names(const ClassifyFlags& flags, const WeightsFile& weights,
                                     ModelSpec& model) {
  if (flags.datadir.empty()) return weights.class_names();
  const auto data = datasets::open_dataset(flags.datadir);
  weights.require_classes_of(*data);
  const auto count = static_cast<std::int64_t>(data->classes().size());
  if (model.options.classes == 0) model.options.classes = count;
  if (model.options.classes < count)
    throw Error("--classes " + std::to_string(model.options.classes) + " is less than the " +
                    std::to_string(count) + " classes of " + data->source(),
                Exit::usage);
  return data->classes();
}

int run(const ClassifyFlags& flags) {
  const WeightsFile weights = read_weights_file(flags.weights);
  ModelSpec spec = weights.model(flags.model);
  const std::vector<std::string> names = class_names(flags, weights, spec);
  const Model model = spec.build();
  const std::int64_t batch =
      std::min(flags.batch.value_or(weights.batch().value_or(TrainingSpec().batch)),
               static_cast<std::int64_t>(flags.images.size()));
  const TrainedNetwork trained = load_trained(weights, model, flags.computing, batch);
  PassOptions options;
  options.reading = weights.reading();
  options.doing = "classifying";
  const Classification found = classify_images(*trained.network, flags.images, flags.top, options);
  if (flags.output == "json")
    std::fputs(json_of(found, model, names).c_str(), stdout);
  else if (flags.output == "csv")
    std::fputs(csv_of(found, names).c_str(), stdout);
  else if (!found.images.empty())
    std::printf("%s\n%s", about(weights, model).c_str(), text_of(found, model, names).c_str());
  for (const datasets::LeftOut& image : found.failed)
    std::fprintf(stderr, "duplex: %s\n", net::printable(image.name + ": " + image.reason).c_str());
  return static_cast<int>(found.failed.empty() ? Exit::ok : Exit::failed);
}

}  // namespace

int classify(int argc, const char* const* argv) {
  CommandLine app{
      "Says what a trained network takes images for: the likeliest classes of each, with their "
      "probabilities. The file of weights knows the network and its classes, if local or dist of "
      "this version has written it; else give --net, and --datadir or --classes.",
      "duplex classify"};
  ClassifyFlags flags;
  app.add_option("IMAGE", flags.images,
                 "JPEG or PNG files; they are read as in training. One that cannot be read is "
                 "named, and the exit code is 1")
      .required();
  app.add_option("--weights", flags.weights, "trained weights, such as RUN/checkpoint.safetensors")
      .required();
  app.add_option("--top", flags.top, "how many classes of each image (default 5)")
      .check(between(1, 1 << 24));
  app.add_option("--output", flags.output, "text (default), json or csv, a row a class")
      .check(one_of({"text", "json", "csv"}));
  app.add_option("--batch", flags.batch,
                 "images that are computed at a time (default: as in training)")
      .check(between(1, most_images));
  app.add_option("--datadir", flags.datadir,
                 "a data set with the same classes, for their names, where the weights do not say");
  add_model_flags(app, flags.model, false);
  add_device_flags(app, flags.computing);
  if (const auto done = parse(app, argc, argv)) return *done;
  return run(flags);
}

}  // namespace duplex::tools
