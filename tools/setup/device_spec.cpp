#include "tools/setup/device_spec.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "tools/text/quartiles.h"

namespace duplex::tools {
namespace {

constexpr int untimed_steps = 2, timed_steps = 5;

/// Seconds of the fastest of some steps: forward and backward, without an update.
double step_seconds(const Model& model, Device& device, std::int64_t batch) {
  Network network(model, device, batch);
  network.initialise(1);
  std::vector<float> images(
      static_cast<std::size_t>(network.model().entry(0).shape.elements() * batch));
  RandomStream(1, stream_of("images")).fill_uniform(images.data(), images.size());
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(batch));
  ForwardContext context;
  context.labels = labels.data();
  double best = std::numeric_limits<double>::infinity();
  for (int step = 0; step < untimed_steps + timed_steps; ++step) {
    const std::int64_t begin = clock_ns();
    network.forward(images.data(), context);
    network.backward();
    device.synchronize();
    if (step >= untimed_steps) best = std::min(best, seconds(clock_ns() - begin));
  }
  return best;
}

/// A layout that was tried.
struct Trial {
  std::optional<double> seconds;  ///< Of a step; none: it failed.
  std::string error;

  std::string text() const {
    return seconds ? "takes " + duration_text(*seconds) : "fails (" + error + ")";
  }
};

/// A layout may fail alone: an older GPU has no engines for one of them, or its memory is too small
/// for what one of them needs. A GPU that has broken down computes in none.
Trial tried(const Model& model, Device& device, std::int64_t batch, bool channels_last) {
  device.choose_channels_last(channels_last);
  try {
    return {step_seconds(model, device, batch), ""};
  } catch (const Error& error) {
    if (!device.broken_in().empty()) throw;
    return {std::nullopt, error.what()};
  }
}

}  // namespace

Precision precision_of(const std::string& name) {
  for (const Precision known : {Precision::tf32, Precision::bf16})
    if (name == name_of(known)) return known;
  return Precision::float32;
}

std::unique_ptr<Device> DeviceSpec::make() const {
  GpuOptions gpu;
  gpu.precision = precision_of(precision);
  gpu.graphs = graphs;
  return make_device(device, threads, gpu);
}

std::unique_ptr<Network> DeviceSpec::build(const Model& model, Device& on, std::int64_t batch,
                                           bool training, std::string* said) const {
  bool channels_last = layout == "nhwc";
  if (layout == "measured" && training && on.choose_channels_last(false)) {
    const Trial planes = tried(model, on, batch, false);
    const Trial side_by_side = tried(model, on, batch, true);
    if (!planes.seconds && !side_by_side.seconds) throw Error(planes.error);
    channels_last =
        side_by_side.seconds && (!planes.seconds || *side_by_side.seconds < *planes.seconds);
    if (said != nullptr)
      *said = "layout " + std::string(channels_last ? "NHWC" : "NCHW") + ": a step " +
              side_by_side.text() + " in NHWC, " + planes.text() + " in NCHW";
  }
  on.choose_channels_last(channels_last);
  return std::make_unique<Network>(model, on, batch, training);
}

}  // namespace duplex::tools
