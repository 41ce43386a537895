#include "tools/run_directory/run_files.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "tools/run_directory/json_file.h"
#include "tools/run_directory/schema.h"

namespace duplex::tools {
namespace {

namespace fs = std::filesystem;

/// `indent`: as nlohmann::json::dump has it; -1: one line.
template <class File>
std::string write_json(File& file, int indent = 1) {
  JsonWriter writer;
  describe(writer, file);
  // A path may have bytes that are no UTF-8.
  return writer.take().dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <class File>
File take_json(const nlohmann::json& json, const std::string& path) {
  File file;
  try {
    JsonReader reader(json);
    describe(reader, file);
  } catch (const Error& error) {
    throw Error(path + " " + error.what());
  }
  return file;
}

template <class File>
File read_json(const std::string& path) {
  return take_json<File>(read_json_file(path), path);
}

/// A time that a run can have taken, or a rate.
std::optional<double> measured(double number) {
  if (!std::isfinite(number) || number <= 0.0) return std::nullopt;
  return number;
}

MeasuredCosts costs_of(const TransportSummary& transport) {
  MeasuredCosts costs;
  costs.comm = measured(transport.comm);
  costs.link_rate = transport.link_rate;
  if (transport.owner_rate) costs.owner_rate = measured(*transport.owner_rate);
  if (transport.seal_rate) costs.seal_rate = measured(*transport.seal_rate);
  if (transport.send_processor && transport.receive_processor) {
    costs.send_processor = measured(*transport.send_processor * 1e-9);
    costs.receive_processor = measured(*transport.receive_processor * 1e-9);
    costs.frame_processor = transport.frame_processor;
  }
  costs.what = transport.command + ", " + transport.title;
  return costs;
}

MeasuredCosts costs_of(const Run& run) {
  const RunSummary& summary = *run.summary;
  MeasuredCosts costs;
  const bool whole_batches =
      (!summary.mode || summary.mode->sync != net::Sync::split) &&
      !(run.config.parallel && (run.config.parallel->samples || run.config.parallel->strategy));
  if (whole_batches && !run.config.replayed && summary.training)
    costs.grad = measured(summary.training->gradient.median);
  if (costs.grad) costs.batch = run.config.batch;
  costs.gradients_down = summary.gradients_down;
  costs.weights_up = summary.weights_up;
  costs.sample_processor = summary.sample_processor;
  if (!run.config.parallel) {  // Else the gradient's time has what moving bytes took.
    costs.threads = run.config.threads;
    costs.cores = run.config.cores;
  }
  costs.link_rate = run.config.link_rate;
  if (summary.traffic) costs.comm = measured(summary.traffic->t_comm);
  costs.what =
      run.config.command + ", " + run.config.title + ", batch " + std::to_string(run.config.batch);
  if (summary.rank) costs.what += ", as rank " + std::to_string(*summary.rank) + " timed it";
  return costs;
}

std::string numbered(const char* name, int rank, const char* end) {
  return name + std::to_string(rank) + end;
}

}  // namespace

bool is_run_file(const std::string& name) {
  for (const char* whole :
       {config_file, summary_file, profile_file, metrics_file, accuracy_file, evaluation_file,
        trace_file, checkpoint_file, ema_file, checkpoints_folder})
    if (name == whole) return true;
  for (const auto& [begin, end] :
       {std::pair("rank-", ".json"), std::pair("ledger-", ".csv"), std::pair("traffic-", ".csv"),
        std::pair("staleness-", ".csv"), std::pair("transport-", ".json")}) {
    const std::string first = begin, last = end;
    if (name.size() > first.size() + last.size() && name.rfind(first, 0) == 0 &&
        name.compare(name.size() - last.size(), last.size(), last) == 0)
      return true;
  }
  return false;
}

std::string rank_file(int rank) {
  return numbered("rank-", rank, ".json");
}
std::string ledger_file(int rank) {
  return numbered("ledger-", rank, ".csv");
}
std::string traffic_file(int rank) {
  return numbered("traffic-", rank, ".csv");
}
std::string staleness_file(int rank) {
  return numbered("staleness-", rank, ".csv");
}
std::string transport_file(const std::string& role) {
  return "transport-" + role + ".json";
}

std::string text_of(RunConfig config) {
  return write_json(config) + "\n";
}
std::string text_of(RunSummary summary) {
  return write_json(summary) + "\n";
}
std::string text_of(TransportSummary summary) {
  return write_json(summary) + "\n";
}
std::string text_of(ProfileFile profile) {
  return write_json(profile) + "\n";
}

std::string text_of(EvaluationFile evaluation) {
  return write_json(evaluation) + "\n";
}
std::string text_of(WeightsNote note) {
  return write_json(note, -1);
}

std::string not_finite_text(const AccuracySummary& accuracy) {
  return "the outputs for " + std::to_string(accuracy.not_finite) + " of " +
         std::to_string(accuracy.samples) + " test images are not finite, and count as wrong";
}

RunConfig read_config(const std::string& path) {
  return read_json<RunConfig>(path);
}
RunSummary read_summary(const std::string& path) {
  return read_json<RunSummary>(path);
}
TransportSummary read_transport(const std::string& path) {
  return read_json<TransportSummary>(path);
}
ProfileFile read_profile_file(const std::string& path) {
  return read_json<ProfileFile>(path);
}

EvaluationFile read_evaluation(const std::string& path) {
  EvaluationFile evaluation = read_json<EvaluationFile>(path);
  const auto classes = static_cast<std::int64_t>(evaluation.classes.size());
  const auto require_class = [&](std::int64_t number) {
    if (number < 0 || number >= classes)
      throw Error(path + " is damaged: it has no class " + std::to_string(number));
  };
  for (const ConfusionCell& cell : evaluation.confusion)
    for (const std::int64_t number : {cell.label, cell.said}) require_class(number);
  for (const WrongImage& image : evaluation.worst) {
    for (const std::int64_t number : {image.label, image.said}) require_class(number);
    const std::string picture = image.picture.value_or("");
    const bool base64 = std::all_of(picture.begin(), picture.end(), [](unsigned char digit) {
      return std::isalnum(digit) != 0 || digit == '+' || digit == '/' || digit == '=';
    });
    if (!base64) throw Error(path + " is damaged: a picture is no base64");
  }
  return evaluation;
}

WeightsNote parse_weights_note(const std::string& text, const std::string& path) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded())
    throw Error(path + " is damaged: what it says of its training is no JSON");
  WeightsNote note = take_json<WeightsNote>(json, path);
  const auto refuse = [&](const std::string& what) { throw Error(path + " is damaged: " + what); };
  constexpr std::int64_t most_classes = 1 << 24, most_batch = 1 << 24, most_input = 4096,
                         most_side = 1 << 14;
  long long channels = 0, height = 0, width = 0;
  if (std::sscanf(note.input.c_str(), "1x%lldx%lldx%lld", &channels, &height, &width) != 3 ||
      (channels != 1 && channels != 3) || height < 1 || height > most_input || width != height)
    refuse("its input '" + note.input + "' is not that of a network");
  if (note.classes < 1 || note.classes > most_classes)
    refuse("it has " + std::to_string(note.classes) + " classes");
  if (note.names.size() > static_cast<std::size_t>(note.classes))
    refuse("it has more names than classes");
  if (note.batch < 1 || note.batch > most_batch) refuse("its batch is out of range");
  if (!(note.test_fraction >= 0.0 && note.test_fraction < 1.0))
    refuse("its test_fraction is not from 0 to 1");
  if (note.test_side != 0 && (note.test_side < height || note.test_side > most_side))
    refuse("its test_crop is out of range");
  const auto normalises = [&](float mean, float stddev) {
    return std::isfinite(mean) && std::isfinite(stddev) && stddev > 0.0F;
  };
  const auto of_channels = static_cast<std::size_t>(channels);
  bool good = note.mean.size() == of_channels && note.stddev.size() == of_channels;
  for (std::size_t c = 0; good && c < of_channels; ++c)
    good = normalises(note.mean[c], note.stddev[c]);
  if (!good) refuse("its mean and stddev are not those of the channels");
  return note;
}

std::string name_of_directory(const std::string& directory) {
  const fs::path path = fs::path(directory).lexically_normal();
  const std::string name = (path.has_filename() ? path : path.parent_path()).filename().string();
  return name.empty() ? directory : name;
}

std::string transport_in(const std::string& directory) {
  for (const char* role : {"worker", "ps"}) {
    std::string path = directory + "/" + transport_file(role);
    if (fs::exists(path)) return path;
  }
  return "";
}

Run read_run(const std::string& directory) {
  Run run;
  run.directory = directory;
  run.name = name_of_directory(directory);
  const std::string config = directory + "/" + config_file,
                    summary = directory + "/" + summary_file;
  if (!fs::exists(config))
    throw Error(directory + " is no run directory of local, dist or simulate: it has no " +
                config_file);
  run.config = read_config(config);
  if (fs::exists(summary)) run.summary = read_summary(summary);
  return run;
}

MeasuredCosts measured_costs(const std::string& directory) {
  const std::string transport = transport_in(directory);
  MeasuredCosts costs;
  if (!transport.empty()) {
    costs = costs_of(read_transport(transport));
  } else {
    const Run run = read_run(directory);
    if (!run.summary)
      throw Error(directory + " has no " + summary_file + ": its run has not ended");
    costs = costs_of(run);
  }
  if (!costs.grad && !costs.comm)
    throw Error(directory + " (" + costs.what + ") has measured neither t_grad nor t_comm");
  return costs;
}

}  // namespace duplex::tools
