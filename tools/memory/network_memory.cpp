#include "tools/memory/network_memory.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/device_name.h"
#include "tools/memory/planning_device.h"
#include "tools/memory/resident.h"

namespace duplex::tools {
namespace {

/// A parameter's gradient takes as much as it, and its rounded copy half of that; running
/// statistics have neither.
void add_parameters(Network& network, bool rounded, std::vector<LayerMemory>& layers) {
  for (Parameter* parameter : network.state()) {
    const std::size_t bytes = parameter->weights.desc.bytes;
    layers[parameter->node].parameters +=
        parameter->spec.trained ? 2 * bytes + (rounded ? bytes / 2 : 0) : bytes;
  }
}

/// A block of memory that several layers use counts for the first of them in forward order: the
/// gradients of an addition are those of its inputs, for instance.
void add_activations(const Network& network, std::vector<LayerMemory>& layers) {
  const BackwardPlan& plan = network.plan();
  std::vector<bool> counted(plan.blocks.size());
  const auto count = [&](int block, std::size_t& bytes) {
    if (block == BackwardPlan::none || counted[static_cast<std::size_t>(block)]) return;
    counted[static_cast<std::size_t>(block)] = true;
    bytes += plan.blocks[static_cast<std::size_t>(block)].bytes;
  };
  for (std::size_t node = 0; node < plan.nodes.size(); ++node)
    count(plan.nodes[node].y, layers[node].activation);
  for (std::size_t node = 0; node < plan.nodes.size(); ++node) {
    for (const int block : plan.nodes[node].contributions) count(block, layers[node].gradient);
    count(plan.nodes[node].dy, layers[node].gradient);
  }
  // What is left are gradients that nobody reads: an operation writes them in any case.
  for (std::size_t node = 0; node < plan.nodes.size(); ++node)
    for (const int block : plan.nodes[node].dx) count(block, layers[node].gradient);
}

}  // namespace

bool is_gpu(const DeviceSpec& computing) {
  return duplex::is_gpu(computing.device);
}

NetworkMemory network_memory(const Model& model, const DeviceSpec& computing,
                             const NetworkCopies& copies) {
  std::optional<GpuSizes> gpu;
  std::unique_ptr<Device> cpu;
  if (is_gpu(computing)) {
    // Where the layout is still to be measured, this is the one that needs more.
    gpu.emplace(precision_of(computing.precision), computing.layout != "nchw");
  } else {
    cpu = computing.make();
  }
  const std::size_t before = resident_now();
  PlanningDevice device(gpu ? gpu->device() : *cpu);
  Network network(model, device, copies.batch, copies.training);
  const auto kept = device.kept_by_layer();
  std::vector<std::unique_ptr<Network>> others;
  while (others.size() + 1 < copies.count) others.push_back(network.with_own_activations());
  const std::size_t after = resident_now();

  NetworkMemory memory;
  memory.batch = copies.batch;
  memory.weights = network.weights().desc.bytes;
  memory.rounded = gpu ? gpu->memory().rounded : 0;
  memory.gradients = network.gradients().desc.bytes;
  for (const Parameter& statistic : network.statistics())
    memory.statistics += statistic.weights.desc.bytes;
  memory.arena = network.arena_bytes();
  if (copies.count > 1) memory.arena = copies.count * in_pages(memory.arena);
  memory.operations = device.operation_memory();
  memory.copies = gpu ? gpu->memory().copies : 0;
  memory.code = after - std::min(before, after);
  memory.pixels = plain_desc(model.entry(0).shape).bytes * static_cast<std::size_t>(copies.batch);
  for (const ParameterSpec& spec : model.trained())
    memory.largest = std::max(memory.largest, plain_desc(spec.shape).bytes);

  for (const Model::Entry& entry : model.nodes()) memory.layers.push_back({entry.name});
  add_parameters(network, memory.rounded > 0, memory.layers);
  add_activations(network, memory.layers);
  for (std::size_t layer = 0; layer < kept.size(); ++layer)
    memory.layers[layer + 1].kept = kept[layer].second;
  return memory;
}

}  // namespace duplex::tools
