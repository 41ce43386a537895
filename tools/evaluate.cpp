// duplex evaluate tests trained weights on a data set, class by class.
#include <algorithm>
#include <cstdio>
#include <sstream>

#include "core/error.h"
#include "core/files/output_file.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/flags/device_flags.h"
#include "tools/flags/model_flags.h"
#include "tools/inference/class_evaluation.h"
#include "tools/inference/evaluation_text.h"
#include "tools/inference/trained_network.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools {
namespace {

struct EvaluateFlags {
  ModelSpec model;
  DeviceSpec computing;
  std::string weights, datadir, logdir, part = "test", output = "text";
  std::optional<double> test_fraction;
  std::optional<std::int64_t> batch;
  bool strict = false;
};

/// The specification that a training of the same data and network has.
TrainingSpec training_of(const EvaluateFlags& flags, const WeightsFile& weights) {
  TrainingSpec spec;
  spec.model = weights.model(flags.model);
  // open_training() takes the data set's number unless it is given; run() compares it with the
  // weights'.
  spec.model.options.classes = flags.model.options.classes;
  spec.datadir = flags.datadir;
  spec.strict = flags.strict;
  spec.accuracy = flags.part == "test";
  spec.test_fraction =
      flags.test_fraction.value_or(weights.test_fraction().value_or(spec.test_fraction));
  spec.batch = flags.batch.value_or(weights.batch().value_or(spec.batch));
  return spec;
}

datasets::Subset part_of(const datasets::Split& split, const std::string& part) {
  if (part == "test") return split.test;
  datasets::Subset images = split.train;
  if (part == "train") return images;
  images.samples.insert(images.samples.end(), split.test.samples.begin(), split.test.samples.end());
  std::sort(images.samples.begin(), images.samples.end());
  return images;
}

/// Says which images are evaluated, and where the split is from.
std::string images_line(const EvaluateFlags& flags, const WeightsFile& weights,
                        const TrainingSetup& setup, double fraction) {
  const auto is_open = [&](const datasets::Subset& images) {
    return std::any_of(images.samples.begin(), images.samples.end(), [&](std::uint32_t sample) {
      return setup.data->sample(sample).use == datasets::Use::any;
    });
  };
  std::ostringstream text;
  text << setup.data->contents() << ", from " << setup.data->source() << ";\nevaluated: ";
  if (flags.part == "all") {
    text << "all of them";
    return text.str();
  }
  text << "its " << (flags.part == "test" ? "test" : "training") << " part";
  if (!is_open(setup.split.train) && !is_open(setup.split.test)) {
    text << ", as the data set itself says";
    return text.str();
  }
  text << ", by --test-fraction " << fraction;
  const std::optional<double> trained = weights.test_fraction();
  if (!trained)
    text << "; the weights do not say by which they were trained";
  else if (*trained == fraction)
    text << ", as in training";
  else
    text << "; training had " << *trained << ", so it has seen other images";
  return text.str();
}

/// Throws Error unless the directory is that of a run of this network.
void require_run(const std::string& directory, const Model& model) {
  const Run run = read_run(directory);
  if (run.config.title != model.title())
    throw Error("--logdir " + directory + " is of a run of " + run.config.title +
                    ", and these weights are of " + model.title(),
                Exit::usage);
}

int run(const EvaluateFlags& flags) {
  const WeightsFile weights = read_weights_file(flags.weights);
  TrainingSpec spec = training_of(flags, weights);
  TrainingSetup setup = open_training(spec);
  weights.require_classes_of(*setup.data);
  if (weights.note && spec.model.options.classes == 0)
    spec.model.options.classes = weights.note->classes;
  if (spec.model.options.classes != 0) setup.model = spec.model.build();
  const Model& model = setup.model;
  const auto classes = static_cast<std::int64_t>(setup.data->classes().size());
  if (model.classes() < classes)
    throw Error(weights.path + ": its " + std::to_string(model.classes()) +
                " classes are fewer than the " + std::to_string(classes) + " of " +
                setup.data->source());
  if (!flags.logdir.empty()) require_run(flags.logdir, model);
  const datasets::Subset images = part_of(setup.split, flags.part);
  const TrainedNetwork trained = load_trained(weights, model, flags.computing, spec.batch);

  EvaluationFile evaluation;
  evaluation.network = spec.model.net;
  evaluation.title = model.title();
  evaluation.weights = weights.path;
  evaluation.steps = weights.steps;
  evaluation.data = setup.data->description();
  evaluation.part = flags.part;
  evaluation.test_fraction = spec.test_fraction;
  evaluation.batch = spec.batch;
  evaluation.device = trained.device->description();
  PassOptions options;
  options.reading = weights.reading();
  options.reading.strict = flags.strict;
  options.doing = "evaluating";
  report_unreadable(
      evaluate_classes(*trained.network, images, options, !flags.logdir.empty(), evaluation));

  if (flags.output == "json") {
    EvaluationFile without_pictures = evaluation;
    for (WrongImage& image : without_pictures.worst) image.picture.reset();
    std::fputs(text_of(without_pictures).c_str(), stdout);
  } else if (flags.output == "csv") {
    std::fputs(csv_of(evaluation).c_str(), stdout);
  } else {
    std::printf("%s\n%s\n%s", about(weights, model).c_str(),
                images_line(flags, weights, setup, spec.test_fraction).c_str(),
                text_of_evaluation(evaluation).c_str());
  }
  if (!flags.logdir.empty()) {
    const std::string path = flags.logdir + "/" + evaluation_file;
    write_file(path, text_of(evaluation));
    std::fprintf(flags.output == "text" ? stdout : stderr, "\n%s; duplex report %s shows it\n",
                 path.c_str(), flags.logdir.c_str());
  }
  if (evaluation.accuracy.not_finite > 0) throw Error(not_finite_text(evaluation.accuracy));
  return 0;
}

}  // namespace

int evaluate(int argc, const char* const* argv) {
  CommandLine app{
      "Tests trained weights on a data set, class by class: accuracy, the confusion matrix, "
      "precision and recall. The file of weights knows the network, its classes and the split, if "
      "local or dist of this version has written it.",
      "duplex evaluate"};
  EvaluateFlags flags;
  app.add_option("--weights", flags.weights, "trained weights, such as RUN/checkpoint.safetensors")
      .required();
  app.add_option("--datadir", flags.datadir,
                 "folder of images (a folder a class), packed file, or folder of IDX files")
      .required();
  app.add_option("--part", flags.part,
                 "test (default): the images that training leaves out; train: the others; all")
      .check(one_of({"test", "train", "all"}));
  app.add_option("--test-fraction", flags.test_fraction,
                 "part of each class kept for testing, where the data set does not say (default: "
                 "as in training, by the weights' file, else 0.2)")
      .check(between(0.0, 0.9));
  app.add_option("--output", flags.output,
                 "text (default); json: as evaluation.json, without pictures; csv: a row a class")
      .check(one_of({"text", "json", "csv"}));
  app.add_option(
      "--logdir", flags.logdir,
      "the directory of the run that has trained the weights: evaluation.json goes "
      "there, and report shows it, with the images that the network is most wrong about");
  app.add_option("--batch", flags.batch,
                 "images that are computed at a time (default: as in training)")
      .check(between(1, most_images));
  app.add_flag("--strict", flags.strict, "an image that cannot be read is an error");
  add_model_flags(app, flags.model, false);
  add_device_flags(app, flags.computing);
  add_graphs_flag(app, flags.computing);
  if (const auto done = parse(app, argc, argv)) return *done;
  return run(flags);
}

}  // namespace duplex::tools
