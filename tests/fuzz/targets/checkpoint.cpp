// A rank's checkpoint, as --resume looks for it and takes it.
#include "tools/checkpoint/checkpoint_files.h"

#include <cstdio>

#include "core/files/state_file.h"
#include "tests/fuzz/memory_file.h"
#include "tools/checkpoint/state_pieces.h"

namespace duplex::fuzz {
namespace {

void ignore(const float* /*values*/) {}

std::vector<StateArray> small_state() {
  return {{"fc.weight", {2, 3}, nullptr, ignore}, {"fc.bias", {2}, nullptr, ignore}};
}

/// Pieces as a rank wants them where another number of ranks wrote the checkpoint.
std::vector<StateArray> small_pieces() {
  return {{"fc.weight[2:6]", {4}, nullptr, ignore},
          {"fc.bias[0:2]", {2}, nullptr, ignore},
          {"fc.running_mean", {2}, nullptr, ignore}};
}

}  // namespace

void checkpoint(const Bytes& input) {
  static MemoryFolder folder;
  static const std::string name = "checkpoints/step-0000000005/rank-0.safetensors";
  if (!folder.has(name)) {
    folder.add(name);
    // A damaged file is passed over with a line on standard error, millions of times here. The C
    // library lets a program name another stream; what has the descriptor still writes there.
    stderr = std::fopen("/dev/null", "w");
  }
  folder[name].write(input);
  reads(input, 400, [] {
    const tools::CheckpointFiles files(folder.path(), 0, 2, "net small, batch 4");
    const std::vector<tools::Checkpoint> whole = files.whole();
    require(whole.size() <= 1, "one file is two checkpoints");
    for (const tools::Checkpoint& each : whole) {
      if (each.ranks == 2 && !each.files.front().partial) {
        load_state(each.path(), small_state(), "Small");
        continue;
      }
      std::vector<std::string> paths;
      for (const tools::CheckpointFile& file : each.files) paths.push_back(file.path);
      const tools::StatePieces pieces(paths);
      for (const StateArray& array : small_pieces())
        if (pieces.has(array)) pieces.load(array);
    }
  });
}

}  // namespace duplex::fuzz
