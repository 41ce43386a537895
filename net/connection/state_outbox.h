// This is what an owner sends of a checkpoint to the rank that keeps a copy of its part: all that
// this rank does not have already (docs/decisions/training.md).
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "net/connection/connection.h"

namespace duplex::net {

/// An array of a checkpoint.
struct StateValues {
  std::size_t count = 0;
  std::function<void(float* to)> get;  ///< Copies the values out. Any thread may call it.
};

/// One checkpoint's state is under way at a time, as frames of `state`. A frame is made when the
/// one before it has left. So what waits to be sent takes the memory of the checkpoint that it
/// comes from, of one array and of one frame. Any thread may call it.
class StateOutbox {
 public:
  /// Begins to send the state of the checkpoint after so many steps over a connection, which must
  /// live until all is sent or stop() was called and the connection has stopped. Call it when
  /// nothing is under way.
  void send(Connection& to, std::uint64_t steps, std::vector<StateValues> arrays);
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

  /// Guards all below. A thread that holds it takes no other lock.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Connection* to_ = nullptr;  ///< Null: nothing is under way.
  std::vector<StateValues> arrays_;
  std::size_t next_ = 0;       ///< The array that comes when the one that is being sent is out.
  std::vector<float> values_;  ///< Of the one that is being sent.
  std::size_t sent_ = 0;       ///< So many of these have gone into frames.
  std::uint64_t steps_ = 0, parts_ = 0;
  std::uint32_t number_ = 0;  ///< Of the next part.
  bool stopped_ = false;
};

}  // namespace duplex::net
