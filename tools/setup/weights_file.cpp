#include "tools/setup/weights_file.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/safetensors.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools {
namespace {

const std::string network_key = "network", steps_key = "steps", settings_key = "settings",
                  note_key = "training";

WeightsNote note_of(const TrainingSpec& spec, const TrainingSetup& setup, std::int64_t batch) {
  const Shape& sample = setup.model.entry(0).shape;
  datasets::Normalisation pixels = test_options(spec).normalisation;
  if (pixels.stddev[0] == 0.0F) pixels = datasets::Normalisation::standard(sample.c());
  WeightsNote note;
  note.network = spec.model.net;
  note.title = setup.model.title();
  note.input = sample.str();
  note.classes = setup.model.classes();
  note.names = setup.data->classes();
  for (std::size_t c = 0; c < static_cast<std::size_t>(sample.c()); ++c) {
    note.mean.push_back(pixels.mean.at(c));
    note.stddev.push_back(pixels.stddev.at(c));
  }
  note.auxiliary = spec.model.options.auxiliary;
  note.pad_shortcuts = spec.model.options.zero_padded_shortcuts;
  note.network_file = spec.model.file();
  note.data = setup.data->contents();
  note.test_fraction = spec.test_fraction;
  note.test_side = spec.test_side;
  note.batch = batch;
  return note;
}

/// Reads the number behind a word of the settings, which stand between commas: "batch 32".
std::optional<double> number_of(const std::string& settings, const std::string& word) {
  const std::string text = ", " + settings, before = ", " + word + " ";
  const std::size_t at = text.rfind(before);
  if (at == std::string::npos) return std::nullopt;
  const char* begin = text.c_str() + at + before.size();
  char* end = nullptr;
  const double number = std::strtod(begin, &end);
  if (end == begin) return std::nullopt;
  return number;
}

bool is_compiled(const std::string& network) {
  const auto& all = models::all();
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& known) { return known.first == network; });
}

/// "class 3 is 'cat'", or "there is no class 3".
std::string class_text(const std::vector<std::string>& names, std::size_t number) {
  if (number >= names.size()) return "there is no class " + std::to_string(number);
  return "class " + std::to_string(number) + " is '" + names[number] + "'";
}

}  // namespace

std::map<std::string, std::string> weights_metadata(const TrainingSpec& spec,
                                                    const TrainingSetup& setup, std::int64_t batch,
                                                    const std::string& steps,
                                                    const std::string& settings) {
  return {{network_key, spec.model.net},
          {steps_key, steps},
          {settings_key, settings},
          {note_key, text_of(note_of(spec, setup, batch))}};
}

ModelSpec WeightsFile::model(const ModelSpec& asked) const {
  ModelSpec model = asked;
  if (!model.net.empty() && is_compiled(model.net) && is_compiled(network) &&
      model.net != network) {
    throw Error("--net " + model.net + ": " + path + " has weights of " + network +
                    "; leave --net out, or give other --weights",
                Exit::usage);
  }
  if (note && (model.net.empty() || model.net == note->network)) {
    model.take_kept(note->network, note->network_file, path);
  } else if (model.net.empty()) {
    // Other programs, and onnx import, have titles there.
    if (!is_compiled(network) && !models::names_file(network))
      throw Error(path + " does not say which network its weights are of: give --net", Exit::usage);
    model.take(network);
  }
  if (!note) return model;
  model.set_input(note->input);
  if (model.options.classes == 0) model.options.classes = note->classes;
  model.options.auxiliary = model.options.auxiliary || note->auxiliary;
  model.options.zero_padded_shortcuts = model.options.zero_padded_shortcuts || note->pad_shortcuts;
  return model;
}

std::optional<double> WeightsFile::test_fraction() const {
  if (note) return note->test_fraction;
  const std::optional<double> fraction = number_of(settings, "test fraction");
  if (fraction && !(*fraction >= 0.0 && *fraction < 1.0)) return std::nullopt;
  return fraction;
}

std::optional<std::int64_t> WeightsFile::batch() const {
  if (note) return note->batch;
  const std::optional<double> batch = number_of(settings, "batch");
  if (!batch || !(*batch >= 1.0 && *batch <= 1 << 24)) return std::nullopt;
  return static_cast<std::int64_t>(*batch);
}

std::vector<std::string> WeightsFile::class_names() const {
  return note ? note->names : std::vector<std::string>{};
}

datasets::LoaderOptions WeightsFile::reading() const {
  datasets::LoaderOptions reading;
  reading.threads = loader_threads();
  if (!note) return reading;
  std::copy(note->mean.begin(), note->mean.end(), reading.normalisation.mean.begin());
  std::copy(note->stddev.begin(), note->stddev.end(), reading.normalisation.stddev.begin());
  reading.test_side = note->test_side;
  return reading;
}

void WeightsFile::require_classes_of(const datasets::Dataset& data) const {
  const std::vector<std::string> ours = class_names();
  const std::vector<std::string>& theirs = data.classes();
  // A name that is no UTF-8 was noted with other characters in place of these bytes.
  const auto noted = [](const std::vector<std::string>& names) {
    return nlohmann::json(names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  if (ours.empty() || noted(ours) == noted(theirs)) return;
  std::size_t first = 0;
  while (first < ours.size() && first < theirs.size() && ours[first] == theirs[first]) ++first;
  throw Error("the " + std::to_string(theirs.size()) + " classes of " + data.source() +
              " are not the " + std::to_string(ours.size()) + " that " + path +
              " was trained with: " + class_text(theirs, first) + " in the data set, and " +
              class_text(ours, first) + " in the weights");
}

WeightsFile read_weights_file(const std::string& path) {
  const SafetensorsFile file(path);
  WeightsFile weights;
  weights.path = path;
  const auto take = [&](const std::string& key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  weights.network = take(network_key);
  weights.steps = take(steps_key);
  weights.settings = take(settings_key);
  const std::string note = take(note_key);
  if (!note.empty()) weights.note = parse_weights_note(note, path);
  return weights;
}

}  // namespace duplex::tools
