// The files of checkpoints that a rank says it holds, and what the coordinator plans with them.
#include "net/rendezvous/held_files.h"
#include "tests/fuzz/target.h"

namespace duplex::fuzz {

void holding(const Bytes& input) {
  if (input.size() > net::most_held_bytes + 1) return;
  reads(input, 64, [&] {
    const std::vector<net::HeldFiles> held = net::decode_held(input);
    require(net::encode_held(held) == input || held.empty(), "a lot of files changes its bytes");
    if (held.empty()) return;
    const net::Topology topology{net::ServerMode::distributed, 3, 0};
    const net::SharingPlan plan = net::plan_sharing(
        topology, held.front().point, {{true, {}}, {false, held}, {false, {}}},
        [](const net::ResumePoint& point, int, const net::HeldParts& parts) {
          std::vector<net::PartNeed> needs;
          for (int rank = 0; rank < 3 && rank < static_cast<int>(point.ranks); ++rank)
            needs.push_back({rank, parts.held(rank, true)});
          return needs;
        });
    for (const net::FileTransfer& each : plan.transfers)
      require(each.from == 1 && each.to == 2, "a file comes from where it is not");
  });
}

}  // namespace duplex::fuzz
