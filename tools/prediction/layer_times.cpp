#include "tools/prediction/layer_times.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <system_error>

#include "core/error.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools {
namespace {

const std::string prefix = "replay:";

std::int64_t macs_of(const Model& model, const Model::Entry& entry) {
  return entry.layer ? entry.layer->macs(model.input_shapes(entry)) : 0;
}

}  // namespace

double LayerTimes::sum() const {
  return std::accumulate(forward.begin(), forward.end(), 0.0) +
         std::accumulate(backward.begin(), backward.end(), 0.0);
}

void LayerTimes::scale(double factor) {
  for (double& seconds : forward) seconds *= factor;
  for (double& seconds : backward) seconds *= factor;
}

LayerTimes read_profile(const std::string& path, const Model& model,
                        std::optional<std::int64_t> batch) {
  if (std::error_code absent; !std::filesystem::exists(path, absent))
    throw Error(
        "profile " + path +
        " cannot be read: it is not there; local and dist write one with --profile, or give "
        "t_grad in seconds (replay:0.763)");
  return times_of(read_profile_file(path), path, model, batch);
}

LayerTimes times_of(const ProfileFile& profile, const std::string& path, const Model& model,
                    std::optional<std::int64_t> batch) {
  LayerTimes times;
  if (profile.batch > 0) times.batch = profile.batch;  // Old files do not say.
  times.forward.resize(model.nodes().size());
  times.backward.resize(model.nodes().size());
  for (std::size_t node = 1; node < model.nodes().size(); ++node) {
    const std::string& name = model.nodes()[node].name;
    if (profile.layers.size() < node || profile.layers[node - 1].name != name) {
      throw Error("profile " + path + " is of " + profile.network + ", not of this " +
                  model.title() + ": layer " + std::to_string(node) + " is not " + name);
    }
    const std::int64_t profiled = profile.layers[node - 1].macs;  // Old files do not say: 0.
    const std::int64_t here = macs_of(model, model.nodes()[node]);
    if (profiled > 0 && profiled != here)
      throw Error("profile " + path + " is of a " + profile.network + " of other shapes: its " +
                  name + " has " + std::to_string(profiled) + " multiply-adds an image, not " +
                  std::to_string(here) +
                  ": give its --input and --classes, or profile again with these");
    times.forward[node] = profile.layers[node - 1].forward;
    times.backward[node] = profile.layers[node - 1].backward;
    for (const double seconds : {times.forward[node], times.backward[node]}) {
      if (!std::isfinite(seconds)) {
        throw Error("profile " + path + ": " + name + " does not take " + std::to_string(seconds) +
                    " seconds");
      }
    }
  }
  if (profile.layers.size() + 1 != model.nodes().size()) {
    throw Error("profile " + path + " has " + std::to_string(profile.layers.size()) + " layers, " +
                model.title() + " has " + std::to_string(model.nodes().size() - 1));
  }
  if (batch && times.batch && *times.batch != *batch) {
    throw Error("profile " + path + " is of batches of " + std::to_string(profile.batch) +
                ", not of " + std::to_string(*batch) +
                ": give that --batch, or profile again with this one");
  }
  return times;
}

LayerTimes share_out(double t_grad, const Model& model) {
  LayerTimes times;
  const auto total = static_cast<double>(model.macs());
  for (const Model::Entry& entry : model.nodes()) {
    const auto macs = static_cast<double>(macs_of(model, entry));
    times.forward.push_back(t_grad / 3.0 * macs / total);
    times.backward.push_back(t_grad * 2.0 / 3.0 * macs / total);
  }
  return times;
}

std::string replay_source(const std::string& device) {
  return device.rfind(prefix, 0) == 0 ? device.substr(prefix.size()) : "";
}

LayerTimes layer_times(const std::string& source, const Model& model, std::int64_t batch) {
  char* end = nullptr;
  const double seconds = std::strtod(source.c_str(), &end);
  if (end == source.c_str() || *end != '\0') return read_profile(source, model, batch);
  if (!std::isfinite(seconds) || seconds <= 0.0) {
    throw Error("--device replay:" + source + ": t_grad must be above 0 seconds", Exit::usage);
  }
  return share_out(seconds, model);
}

}  // namespace duplex::tools
