#include "tools/replay.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <system_error>

#include "core/clock.h"
#include "core/error.h"

namespace duplex::tools {
namespace {

const std::string prefix = "replay:";

/// An await that took longer has waited for weights, not for the processor.
constexpr std::int64_t waited_ns = 20000;

void sleep_until(std::int64_t deadline) {
  if (clock_ns() >= deadline) return;  // The kernel would give the processor away all the same.
  const timespec time{static_cast<time_t>(deadline / 1000000000), deadline % 1000000000};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
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

Replay::Replay(const Model& model, LayerTimes times) : times_(std::move(times)) {
  std::size_t next = 0;
  for (const Model::Entry& entry : model.nodes()) {
    parameters_.emplace_back();
    if (!entry.layer) continue;
    for (const ParameterSpec& spec : model.parameters(entry)) {
      if (spec.trained) parameters_.back().push_back(next++);
    }
  }
  ::prctl(PR_SET_TIMERSLACK, 1UL);  // Else a sleep ends up to 50 us late.
}

void Replay::pass(std::size_t node, Phase phase) {
  const double seconds = (phase == Phase::forward ? times_.forward : times_.backward)[node];
  if (seconds <= 0.0) return;
  const std::int64_t begin = deadline_;
  deadline_ += static_cast<std::int64_t>(seconds * 1e9);
  sleep_until(deadline_);
  if (observer_) observer_(node, phase, begin, deadline_);
}

void Replay::step(std::uint64_t number, Exchange& exchange) {
  exchange.begin(number);
  deadline_ = clock_ns();
  for (std::size_t node = 0; node < parameters_.size(); ++node) {
    for (const std::size_t parameter : parameters_[node]) {
      const std::int64_t from = clock_ns();
      exchange.await(parameter);
      const std::int64_t to = clock_ns();
      if (to - from > waited_ns) deadline_ = std::max(deadline_, to);
    }
    pass(node, Phase::forward);
  }
  for (std::size_t node = parameters_.size(); node-- > 0;) {
    pass(node, Phase::backward);
    for (const std::size_t parameter : parameters_[node]) exchange.push(parameter);
  }
  exchange.end();
}

}  // namespace duplex::tools
