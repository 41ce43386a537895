// Forecasts are looked for by making networks, which plain loops give memory as soon as they are
// made.
#pragma once
#include "tools/setup/device_spec.h"

namespace duplex::tools::testing {

inline bool has_onednn() {
  return DeviceSpec().make()->name() == "onednn";
}
constexpr const char* without_onednn =
    "this build has no oneDNN, and plain loops allocate what they keep as soon as they are made, "
    "so "
    "that --fits is refused (NetsMemory.RefusesWhatMakesNoSense tests that)";

}  // namespace duplex::tools::testing
