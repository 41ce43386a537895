// The memory that ranks take where the network is cut over them.
#pragma once
#include <string>

#include "tools/memory/rank_memory.h"
#include "tools/parts/cut_part.h"

namespace duplex::tools {

/// Returns how the first rank cuts the network in such a training.
CutPartSpec cut_spec_of(const MemorySpec& spec);

/// Returns a text that is the same for parts whose networks take the same memory.
std::string key_of(const NetworkPart& part, const Model& whole);

/// One rank of those. `part` has the copies of the rank's part that train. `tested` is the whole
/// network where the first rank tests it, else null.
RankMemory memory_of_part(const MemorySpec& spec, const CutPart& cut, int rank,
                          const NetworkMemory& part, const NetworkMemory* tested,
                          const ProgramMemory& program);

}  // namespace duplex::tools
