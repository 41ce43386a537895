#include "tools/prediction/layer_times.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <system_error>

#include "core/error.h"

namespace duplex::tools {
namespace {

const std::string prefix = "replay:";

}  // namespace

double LayerTimes::sum() const {
  return std::accumulate(forward.begin(), forward.end(), 0.0) +
         std::accumulate(backward.begin(), backward.end(), 0.0);
}

void LayerTimes::scale(double factor) {
  for (double& seconds : forward) seconds *= factor;
  for (double& seconds : backward) seconds *= factor;
}

LayerTimes read_profile(const std::string& path, const Model& model) {
  std::ifstream file(path);
  if (!file) {
    throw Error("profile " + path + " cannot be read: " + std::generic_category().message(errno) +
                "; local --profile writes one, or give t_grad in seconds (replay:0.763)");
  }
  LayerTimes times;
  times.forward.resize(model.nodes().size());
  times.backward.resize(model.nodes().size());
  try {
    const nlohmann::json profile = nlohmann::json::parse(file);
    if (profile.at("version").get<int>() != 1) {
      throw Error("profile " + path + " is of another version of duplex");
    }
    const nlohmann::json& layers = profile.at("layers");
    for (std::size_t node = 1; node < model.nodes().size(); ++node) {
      const std::string& name = model.nodes()[node].name;
      if (layers.size() < node || layers[node - 1].at("name").get<std::string>() != name) {
        throw Error("profile " + path + " is of " + profile.at("network").get<std::string>() +
                    ", not of this " + model.title() + ": layer " + std::to_string(node) +
                    " is not " + name);
      }
      times.forward[node] = layers[node - 1].at("forward_s").get<double>();
      times.backward[node] = layers[node - 1].at("backward_s").get<double>();
      for (const double seconds : {times.forward[node], times.backward[node]}) {
        if (!std::isfinite(seconds) || seconds < 0.0) {
          throw Error("profile " + path + ": " + name + " does not take " +
                      std::to_string(seconds) + " seconds");
        }
      }
    }
    if (layers.size() + 1 != model.nodes().size()) {
      throw Error("profile " + path + " has " + std::to_string(layers.size()) + " layers, " +
                  model.title() + " has " + std::to_string(model.nodes().size() - 1));
    }
  } catch (const nlohmann::json::exception&) {
    throw Error("profile " + path + " is damaged: it is not what local --profile writes");
  }
  return times;
}

LayerTimes share_out(double t_grad, const Model& model) {
  LayerTimes times;
  const auto total = static_cast<double>(model.macs());
  for (const Model::Entry& entry : model.nodes()) {
    const double macs =
        entry.layer ? static_cast<double>(entry.layer->macs(model.input_shapes(entry))) : 0.0;
    times.forward.push_back(t_grad / 3.0 * macs / total);
    times.backward.push_back(t_grad * 2.0 / 3.0 * macs / total);
  }
  return times;
}

std::string replay_source(const std::string& device) {
  return device.rfind(prefix, 0) == 0 ? device.substr(prefix.size()) : "";
}

LayerTimes layer_times(const std::string& source, const Model& model) {
  char* end = nullptr;
  const double seconds = std::strtod(source.c_str(), &end);
  if (end == source.c_str() || *end != '\0') return read_profile(source, model);
  if (!std::isfinite(seconds) || seconds <= 0.0) {
    throw Error("--device replay:" + source + ": t_grad must be above 0 seconds", Exit::usage);
  }
  return share_out(seconds, model);
}

}  // namespace duplex::tools
