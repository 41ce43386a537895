#include "tools/planning/ways.h"

namespace duplex::tools {
namespace {

/// Everything that a way of exchanging in each step may have besides.
std::vector<ParallelSpec> variants_of(const ParallelSpec& usual) {
  std::vector<ParallelSpec> variants;
  for (const bool overlap : {true, false})
    for (const bool semaphore : {false, true})
      for (const net::Shards shards : {net::Shards::even, net::Shards::tensors}) {
        if (usual.central() && shards != net::Shards::even) continue;
        if (usual.average > 0 && !overlap) continue;
        ParallelSpec variant = usual;
        variant.overlap = overlap;
        variant.semaphore = semaphore;
        variant.shards = shards;
        if (!variant.is_usual()) variants.push_back(variant);
      }
  return variants;
}

}  // namespace

std::vector<Family> all_families() {
  std::vector<Family> families;
  for (const auto server : {net::ServerMode::distributed, net::ServerMode::central}) {
    ParallelSpec spec;
    spec.server = server;
    for (const net::Sync sync : {net::Sync::join, net::Sync::split, net::Sync::none}) {
      spec.sync = sync;
      families.push_back({spec, variants_of(spec)});
      for (const net::Coding coding : {net::Coding::lossless, net::Coding::bf16}) {
        ParallelSpec coded = spec;
        coded.wire = {coding, coding};
        families.push_back({coded, {}});
      }
      if (!spec.takes_factors()) continue;
      for (const net::Coding coding :
           {net::Coding::float32, net::Coding::lossless, net::Coding::bf16}) {
        ParallelSpec factored = spec;
        factored.wire = {coding, coding};
        factored.factors = Factors::automatic;
        families.push_back({factored, {}});
      }
    }
    spec.sync = net::Sync::join;
    for (const std::uint64_t batches : {2, 4, 8, 16}) {
      spec.average = batches;
      families.push_back({spec, variants_of(spec)});
    }
  }
  return families;
}

}  // namespace duplex::tools
