// What an owner sends of a checkpoint to the rank that keeps a copy of its part: all that this rank
// does not have already (docs/decisions/training.md).
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "net/connection/send_order.h"
#include "net/exchange/peers.h"

namespace duplex::net {

/// Values that lie in one array after the other.
using HeldValues = std::vector<std::shared_ptr<const std::vector<float>>>;

/// One checkpoint's state is under way at a time, as frames of `state`. A frame is made when the
/// one before it has left, so that what waits to be sent is the checkpoint's own copy and one
/// frame. Any thread may call it.
class StateOutbox {
 public:
  /// `peers` must outlive it.
  explicit StateOutbox(Peers& peers) : peers_(peers) {}

  /// Begins to send the state of the checkpoint after so many steps, which has values. Call it when
  /// nothing is under way.
  void send(int to, std::uint64_t steps, HeldValues values);
  /// The frame that was handed to the connection last has been written.
  void part_sent();
  /// Waits until all has been sent or stop() was called, or `at_most` has passed; returns false in
  /// that last case.
  bool wait_until_sent(std::chrono::milliseconds at_most);
  /// Frames that have been written.
  std::uint64_t parts() const;
  /// Sends nothing more.
  void stop();

 private:
  std::optional<Outgoing> next_part();

  Peers& peers_;

  /// Guards all below. A thread that holds it takes no other lock.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  HeldValues values_;  ///< Those that are still to be sent.
  std::size_t array_ = 0, offset_ = 0;
  int to_ = -1;  ///< -1: nothing is under way.
  std::uint64_t steps_ = 0, parts_ = 0;
  std::uint32_t number_ = 0;  ///< Of the next part.
  bool stopped_ = false;
};

}  // namespace duplex::net
