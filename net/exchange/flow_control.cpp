#include "net/exchange/flow_control.h"

#include <optional>
#include <string>
#include <vector>

namespace duplex::net {

FlowControl::FlowControl(const Topology& topology, int rank, bool semaphore, bool paced,
                         Peers& peers)
    : peers_(peers),
      coordinates_(rank == topology.coordinator()),
      trains_(topology.is_worker(rank)),
      paced_(paced && trains_ && topology.is_owner(rank) && topology.peers_of(rank).size() > 1),
      coordinator_(topology.coordinator()),
      window_(window_of(topology.peers_of(rank).size(), !trains_, semaphore)) {}

void FlowControl::attach(Connection& connection) {
  connection.keep_to(window_, [this] { tell_window(); });
}

void FlowControl::start() {
  if (window_.narrowed()) tell_window();
}

/// The workers of a dedicated server send to nobody else, so they need not know its window.
void FlowControl::tell_window() {
  if (!trains_) return;
  peers_.for_each(
      [this](Connection& connection) { connection.tell(FrameKind::window, window_.own()); });
}

void FlowControl::hear_window(int peer, std::uint64_t bytes) {
  if (!trains_ || !window_.bytes()) throw ProtocolError("this rank takes no windows");
  if (bytes < least_window) throw ProtocolError(std::to_string(bytes) + " bytes are too few");
  window_.hear(peer, bytes);
}

/// The coordinator finds the pace for all: ranks with paces of their own would fill each other's
/// queues, none would find the right pace, and the slowest would hold up the others.
void FlowControl::step_ended() {
  if (!coordinates_ || !paced_) return;
  std::vector<Flow> flows;
  bool unknown = false;
  peers_.for_each([&](const Connection& connection) {
    const std::optional<Flow> flow = connection.flow();
    if (!flow || connection.loopback())
      unknown = true;
    else
      flows.push_back(*flow);
  });
  if (unknown) return;
  // The peers' windows are equal to this rank's.
  const auto count = static_cast<double>(flows.size());
  const double window = count * static_cast<double>(*window_.bytes());
  const double rate = pace_.step(Clock::now(), flows, window).value_or(0) / count;
  const std::uint64_t pace = rate < least_pace ? 0 : static_cast<std::uint64_t>(rate);
  if (pace == told_pace_) return;
  told_pace_ = pace;
  peers_.for_each([pace](Connection& connection) { connection.tell(FrameKind::pace, pace); });
  keep_pace(pace);
}

void FlowControl::hear_pace(int peer, std::uint64_t pace) {
  if (peer != coordinator_ || !paced_) throw ProtocolError("this rank takes no pace from it");
  if (pace != 0 && pace < least_pace)
    throw ProtocolError(std::to_string(pace) + " bytes a second are too few");
  keep_pace(pace);
}

void FlowControl::keep_pace(std::uint64_t pace) {
  peers_.for_each([pace](Connection& connection) { connection.keep_pace(pace); });
}

}  // namespace duplex::net
