#include "tools/scenario/measured_scenario.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace duplex::tools {

const MeasuredMachine& fastest_of(const MachinesFile& file) {
  return *std::min_element(
      file.machines.begin(), file.machines.end(),
      [](const MeasuredMachine& a, const MeasuredMachine& b) { return a.grad < b.grad; });
}

Scenario measured_scenario(const MachinesFile& file, const std::string& path, const Model& model) {
  const MeasuredMachine& fastest = fastest_of(file);
  LayerTimes times = times_of(fastest.profile, path, model, file.batch);
  times.batch = file.batch;
  double rate = 0.0, owner_rate = fastest.owner_rate, reading = 0.0;
  std::optional<double> seal_rate, factor_rate;
  for (const MeasuredMachine& machine : file.machines) {
    reading = std::max(reading, machine.sample_processor.value_or(0.0));
    if (machine.factor_rate)
      factor_rate = std::min(factor_rate.value_or(*machine.factor_rate), *machine.factor_rate);
    rate = std::max(rate, machine.rate());
    owner_rate = std::min(owner_rate, machine.owner_rate);
    if (machine.seal_rate)
      seal_rate = std::min(seal_rate.value_or(*machine.seal_rate), *machine.seal_rate);
  }
  std::shared_ptr<const PartCosts> parts;
  if (!fastest.parts.empty())
    parts = std::make_shared<PartCosts>(model, times, file.batch, fastest.parts, path);
  Scenario found = Scenario::with_rate(model, std::move(times), rate, seal_rate.value_or(0.0));
  found.parts = std::move(parts);
  found.owner_rate = owner_rate;
  found.moving = {fastest.send_processor.value_or(0.0), fastest.receive_processor.value_or(0.0),
                  fastest.frame_processor.value_or(0.0)};
  found.gradients_down = fastest.gradients_down.value_or(0.0);
  found.weights_up = fastest.weights_up.value_or(0.0);
  found.sample_processor = reading;
  found.factor_rate = factor_rate.value_or(0.0);
  found.cores = fastest.cores;
  found.threads = fastest.threads;
  return found;
}

double measured_latency(const MachinesFile& file) {
  double round_trip = 60.0;
  for (const MeasuredMachine& machine : file.machines)
    for (const double seconds : machine.round_trip)
      if (seconds > 0.0) round_trip = std::min(round_trip, seconds);
  return round_trip / 2;
}

std::vector<int> hosts_of(const MachinesFile& file) {
  std::vector<int> hosts;
  for (const MeasuredMachine& machine : file.machines) {
    const auto same =
        std::find_if(file.machines.begin(), file.machines.end(),
                     [&](const MeasuredMachine& other) { return other.is_beside(machine); });
    hosts.push_back(static_cast<int>(same - file.machines.begin()));
  }
  return hosts;
}

}  // namespace duplex::tools
