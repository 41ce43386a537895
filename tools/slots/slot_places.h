// The places where the slots of a rank compute.
#pragma once
#include <string>
#include <vector>

#include "tools/setup/device_spec.h"

namespace duplex::tools {

struct SlotPlace {
  std::string device;      ///< As DeviceSpec has it.
  std::vector<int> cores;  ///< That the slot's threads are bound to; empty: to none.
};

/// The device of a rank that has so many slots of other ranks before it on its machine: where the
/// user has asked for a GPU and named none, ranks take the machine's GPUs in turn.
std::string device_behind(const std::string& device, int before);

/// The places of this machine's slots of which a rank has `own`, behind the `before` of other
/// ranks, of `here` in all. Slots of GPUs have one each, from the device's on. Those of a processor
/// have as many cores each, which lie together (core/processor/cores.h); the cores are shared out
/// among all slots of the machine. Throws Error, beginning with `command`, if there are fewer GPUs
/// or cores than slots.
std::vector<SlotPlace> slot_places(const DeviceSpec& spec, int own, int before, int here,
                                   const std::string& command);

}  // namespace duplex::tools
