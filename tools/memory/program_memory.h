// The memory that the program takes before it has anything of its own to keep.
#pragma once
#include <cstddef>

#include "tools/setup/device_spec.h"

namespace duplex::tools {

/// Bytes of a process of this program with its libraries, as far as it uses them.
struct ProgramMemory {
  std::size_t alone = 0;   ///< One that trains.
  std::size_t works = 0;   ///< One that trains with others.
  std::size_t serves = 0;  ///< One that exchanges weights and computes nothing.
};

/// Measures this process: after a step of a network of some hundred weights, and after two ranks,
/// in threads and over loopback, have exchanged some. It has to come before any other use of a
/// device in the process. Where there is no loopback, ranks are taken for processes that train
/// alone.
ProgramMemory program_memory(const DeviceSpec& computing);

}  // namespace duplex::tools
