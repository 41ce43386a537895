// The ways of training in parallel that a plan is chosen from. A new way of exchange is added here:
// one file of this room that gives its ParallelSpecs, and a line in all_families().
#pragma once
#include <string>
#include <vector>

#include "tools/plan/parallel.h"

namespace duplex::tools {

/// Ways of one kind: `usual` is tried for every number of workers, `variants` of it only for the
/// number that it does best with.
struct Family {
  ParallelSpec usual;
  std::vector<ParallelSpec> variants;
};

/// join, split and none with each server, in the thesis's order and with whole tensors, too, and
/// with semaphores; averaging after 2, 4, 8 and 16 batches; join, split and none packed
/// without loss, and with 16 bits a value, on the wire; join and split of a distributed server with
/// factors, with each of these codings.
std::vector<Family> all_families();

}  // namespace duplex::tools
