// The memory that ranks take where the network is cut over them.
#pragma once
#include <string>

#include "tools/memory/rank_memory.h"
#include "tools/parts/cut_part.h"

namespace duplex::tools {

/// Returns a text that is the same for parts whose networks take the same memory.
std::string key_of(const NetworkPart& part, const Model& whole);

class PartMemory {
 public:
  /// Cuts the network as such a training does. Throws Error(usage) where it cannot be cut so.
  PartMemory(const Model& model, const MemorySpec& spec, const ProgramMemory& program);

  const CutPart& cut() const { return cut_; }
  /// Returns what a rank takes. `networks` are those of its `part`, one for each micro-batch in
  /// flight. `tested` is the whole network where the first rank tests it, else null.
  RankMemory of_rank(int rank, const NetworkPart& part, const NetworkMemory& networks,
                     const NetworkMemory* tested) const;

 private:
  std::size_t map_bytes(int rank) const;
  std::size_t frames(int rank) const;
  std::size_t kept_of(int rank, const std::vector<Model::Linear>& factored) const;
  std::size_t gathered_bytes() const;

  const MemorySpec spec_;
  const ProgramMemory program_;
  const CutPart cut_;
  const net::Topology topology_;
  const net::ShardMap map_;
};

}  // namespace duplex::tools
