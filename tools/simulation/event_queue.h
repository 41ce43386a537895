// The event queue of a simulation: its clock, and the events to come.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

namespace duplex::tools::simulation {

/// Events of equal times come in the order in which they were put.
class EventQueue {
 public:
  enum class Kind : std::uint8_t {
    worker,   ///< A worker has computed.
    lane,     ///< A connection's turn may have to be given back.
    store,    ///< An owner has added or updated a chunk.
    factors,  ///< A worker has updated a layer by factors.
    sums,     ///< A worker's slots have added up a gradient.
    loss,     ///< A rank vanishes.
  };
  struct Event {
    double at = 0.0;
    std::uint64_t number = 0;
    Kind kind = Kind::worker;
    std::uint32_t who = 0;  ///< Worker, connection, chunk or rank.
    bool operator>(const Event& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };

  double now() const { return now_; }
  void advance_to(double time) { now_ = time > now_ ? time : now_; }

  /// Puts an event, but not before now.
  void put(double at, Kind kind, std::uint32_t who) {
    events_.push({at < now_ ? now_ : at, numbered_++, kind, who});
  }
  double next() const {
    return events_.empty() ? std::numeric_limits<double>::infinity() : events_.top().at;
  }
  Event take() {
    const Event event = events_.top();
    events_.pop();
    return event;
  }

 private:
  double now_ = 0.0;
  std::uint64_t numbered_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace duplex::tools::simulation
