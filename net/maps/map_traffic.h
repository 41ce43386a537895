// The maps and gradients of maps that this rank sends and receives: buffers, order, and what may
// come next.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/map_exchange.h"
#include "core/mapped_memory.h"
#include "net/connection/peers.h"
#include "net/connection/progress.h"
#include "net/maps/map_route.h"

namespace duplex::net {

struct MapTrafficSpec {
  std::vector<MapRoute> routes;     ///< By number: MapMessage::transfer.
  std::uint64_t micro_batches = 1;  ///< Of a step.
  std::uint64_t in_flight = 1;      ///< The most that a rank has begun and not ended.
  std::uint64_t first_step = 0;
  std::size_t part_bytes = map_frame_bytes;  ///< The most bytes of a frame.
};

/// Every message crosses in parts, frames of about equal size, which come in order: of a route and
/// a direction, one micro-batch after the other. Nothing else is taken, so that no peer can make
/// this rank keep more than `in_flight` messages of each.
class MapTraffic final : public MapExchange {
 public:
  /// `wait` is called by wait_for_more() in place of waiting: it calls wait() below, and throws
  /// what has ended the run. `peers` and `progress` must outlive it.
  MapTraffic(MapTrafficSpec spec, int rank, Peers& peers, Progress& progress,
             std::function<void(std::uint64_t known)> wait);

  // The training thread calls these.

  float* room(const MapMessage& message) override;
  void send(const MapMessage& message) override;
  bool arrived(const MapMessage& message) const override;
  std::uint64_t arrivals() const override;
  void wait_for_more(std::uint64_t known) override { wait_(known); }
  const float* take(const MapMessage& message) override;
  void release(const MapMessage& message) override;
  void progress() override { progress_.made(); }
  /// Waits until arrivals() is more than `known` or stop() is called, at most for so long. Returns
  /// whether one of these is so.
  bool wait(std::uint64_t known, std::chrono::milliseconds at_most);

  // Connections' threads call these, as ConnectionHandler has them.

  Reservation reserve(int peer, const FrameHeader& header);
  void commit(const Reservation& reservation);
  void sent(const Outgoing& frame);

  /// A message that another rank is to send next.
  struct Due {
    int rank = 0;
    std::string text;  ///< "the map of conv1 for micro-batch 3 of step 7"
  };
  std::optional<Due> due() const;
  /// Ends all waiting for good.
  void stop();

 private:
  /// A message's elements. They are on pages of their own, since they leave from where they lie
  /// (map_memory), and are no part of the heap when they lie idle.
  using Values = Buffer;
  /// One direction of a route.
  struct Stream {
    std::uint64_t next = 0;  ///< The number of the message that comes, or leaves, next.
    std::uint32_t next_part = 0;
    std::uint64_t waiting = 0;  ///< Messages that have begun to come, and were not released.
    std::vector<Values> spare;  ///< Buffers for one message each.
  };
  struct Kept {
    float* data() const { return static_cast<float*>(values.data()); }

    Values values;
    std::uint32_t parts_left = 0;  ///< Parts that have not left, or not come.
  };
  struct Part {
    std::size_t offset = 0, count = 0;
  };

  std::uint32_t parts(std::size_t route) const;
  /// The messages of a route in a step.
  std::uint64_t messages(std::size_t route) const {
    return spec_.routes[route].every_step ? 1 : spec_.micro_batches;
  }
  /// Returns how many of them may have come that were not taken. A rank that sends a value in every
  /// step may be in the next one.
  std::uint64_t most(std::size_t route) const {
    return spec_.routes[route].every_step ? 2 : spec_.in_flight;
  }
  Part part(std::size_t route, std::uint32_t number) const;
  Stream& stream(std::size_t route, bool gradient) {
    return streams_[2 * route + (gradient ? 1 : 0)];
  }
  const Stream& stream(std::size_t route, bool gradient) const {
    return streams_[2 * route + (gradient ? 1 : 0)];
  }
  int sender(std::size_t route, bool gradient) const {
    return gradient ? spec_.routes[route].to : spec_.routes[route].from;
  }
  int receiver(std::size_t route, bool gradient) const { return sender(route, !gradient); }
  Values buffer_for(const MapMessage& message);
  std::string text_of(const MapMessage& message) const;

  const MapTrafficSpec spec_;
  const int rank_;
  Peers& peers_;
  Progress& progress_;
  const std::function<void(std::uint64_t known)> wait_;

  /// Guards all below. The training thread and those of connections take it, and take no other lock
  /// meanwhile.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Stream> streams_;  ///< By route: of maps, of gradients.
  std::map<MapMessage, Kept> leaving_, coming_;
  std::uint64_t arrivals_ = 0;
  bool stopped_ = false;
};

}  // namespace duplex::net
