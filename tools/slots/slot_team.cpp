#include "tools/slots/slot_team.h"

#include <algorithm>
#include <exception>
#include <thread>

#include "core/device.h"
#include "core/processor/cores.h"
#include "layers/checkpoint.h"
#include "layers/exchange/slot_sums.h"

namespace duplex::tools {
namespace {

/// Threads that add gradients, beside those that compute.
constexpr int most_adding = 4;

/// ", cores 2, 3"; "" where it is bound to none.
std::string cores_text(const std::vector<int>& cores) {
  std::string text;
  for (const int core : cores) text += (text.empty() ? "" : ", ") + std::to_string(core);
  if (text.empty()) return "";
  return (cores.size() == 1 ? ", core " : ", cores ") + text;
}

}  // namespace

SlotTeam::SlotTeam(const TrainingSpec& training, const Model& model, std::int64_t batch,
                   const std::vector<SlotPlace>& places, HostParameters& first)
    : first_(first), first_cores_(places.front().cores) {
  for (std::size_t number = 1; number < places.size(); ++number) {
    Slot& slot = slots_.emplace_back();
    slot.number = static_cast<int>(number);
    slot.place = places[number];
    run_bound(slot.place.cores, [&] {
      slot.host = std::make_unique<HostParameters>(model, first);
      if (training.replays()) return;
      DeviceSpec computing = training.computing;
      computing.device = slot.place.device;
      slot.device = computing.make();
      slot.network = computing.build(model, *slot.device, batch);
      slot.network->initialise(training.seed);
      if (!training.weights.empty()) load_checkpoint(training.weights, *slot.network);
    });
  }
}

void SlotTeam::train(Exchange& wire, float factor, const std::function<void(Exchange& inner)>& lead,
                     const TrainSlot& others) {
  std::vector<const HostParameters*> hosts{&first_};
  for (const Slot& slot : slots_) hosts.push_back(slot.host.get());
  SlotSums sums(wire, hosts, std::min(static_cast<int>(hosts.size()), most_adding), factor);
  std::vector<std::thread> threads;
  for (Slot& slot : slots_)
    threads.emplace_back([&sums, &slot, &others] {
      bind_thread(slot.place.cores);
      try {
        others(slot, sums.slot(static_cast<std::size_t>(slot.number)),
               [&sums](std::uint64_t step) { return sums.await_step(step); });
      } catch (...) {
        sums.fail(std::current_exception());
      }
    });
  try {
    run_bound(first_cores_, [&] { lead(sums.slot(0)); });
  } catch (...) {
    sums.fail(std::current_exception());
  }
  sums.end();
  for (std::thread& thread : threads) thread.join();
  sums.check();
}

std::vector<std::string> SlotTeam::lines() const {
  std::vector<std::string> lines;
  for (const Slot& slot : slots_)
    lines.push_back(
        "slot " + std::to_string(slot.number) +
        (slot.device ? " computes on " + slot.device->description() : std::string(" replays")) +
        cores_text(slot.place.cores));
  return lines;
}

}  // namespace duplex::tools
