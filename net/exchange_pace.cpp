#include "net/exchange_state.h"

namespace duplex::net {

/// Where all connections carry as much, each way, at any time of a step.
bool ParameterExchange::State::may_pace() const {
  return is_worker() && topology_.is_owner(rank_) && topology_.peers_of(rank_).size() > 1 &&
         !is_async() && !spec_.semaphore && spec_.overlap && spec_.shards == Shards::even;
}

/// At the end of a step. The hub finds the pace for all: ranks with paces of their own would fill
/// each other's queues and none would be right, and the slowest would hold up the others.
void ParameterExchange::State::find_pace() {
  if (rank_ != topology_.hub() || !may_pace()) return;
  std::vector<Flow> flows;
  for (const auto& connection : connections_) {
    if (!connection) continue;
    const std::optional<Flow> flow = connection->flow();
    if (!flow || connection->loopback()) return;
    flows.push_back(*flow);
  }
  const auto peers = static_cast<double>(flows.size());  // Whose windows are as this rank's.
  const double window = peers * static_cast<double>(*receive_window_.bytes());
  const double rate = pace_.step(Clock::now(), flows, window).value_or(0) / peers;
  const std::uint64_t pace = rate < least_pace ? 0 : static_cast<std::uint64_t>(rate);
  if (pace == told_pace_) return;
  told_pace_ = pace;
  for (auto& connection : connections_)
    if (connection) connection->tell_pace(pace);
  keep_pace(pace);
}

void ParameterExchange::State::told_pace(int peer, std::uint64_t pace) {
  if (peer != topology_.hub() || !may_pace())
    throw ProtocolError(name_of_rank(peer) + " told a pace to a rank that takes none from it");
  if (pace != 0 && pace < least_pace)
    throw ProtocolError(name_of_rank(peer) + " told a pace of " + std::to_string(pace) +
                        " bytes a second");
  keep_pace(pace);
}

void ParameterExchange::State::keep_pace(std::uint64_t pace) {
  for (auto& connection : connections_)
    if (connection) connection->keep_pace(pace);
}

}  // namespace duplex::net
