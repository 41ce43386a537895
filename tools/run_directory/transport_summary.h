// transport-ROLE.json: what transport has measured between two machines.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace duplex::tools {

/// Seconds for all weights, in each direction, alone and while the other direction is busy too.
struct DirectionTimes {
  double down = 0.0, up = 0.0;  ///< From ps to worker; from worker to ps.
  double down_both = 0.0, up_both = 0.0;
};

struct TransportSummary {
  std::string command = "transport";
  std::string network, title;
  std::uint64_t bytes = 0;       ///< Bytes of all weights.
  std::string role;              ///< "ps" or "worker": who wrote it.
  std::string peer, congestion;  ///< The other end; TCP's congestion control.
  double round_trip = 0.0;       ///< Seconds.
  DirectionTimes times;          ///< In frames, as dist sends them.
  DirectionTimes link;           ///< As many bytes as one stream.
  double comm = 0.0;             ///< The slower of times.down and times.up.
  /// Processor seconds a gigabyte, of the process that wrote this: to send, and to receive.
  std::optional<double> send_processor, receive_processor;
  std::optional<double> frame_processor;  ///< The same of a frame, beside its bytes: the worker's.
  std::optional<double> owner_rate;       ///< Bytes of gradients a second that an owner adds.
  std::string protection;                 ///< Frames had it; "": plain.
  /// Bytes a second that all processors together seal or open; none: the frames were not sealed.
  std::optional<double> seal_rate;
  std::optional<double> link_rate;  ///< Bytes a second of --link-rate; none: no limit.
};

}  // namespace duplex::tools
