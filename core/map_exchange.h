// The way on which maps and their gradients cross between the ranks that a network is cut over.
#pragma once
#include <cstddef>
#include <cstdint>
#include <tuple>

namespace duplex {

/// A message carries some of a layer's output for one micro-batch, or its gradient, which goes back
/// the same way.
struct MapMessage {
  std::size_t transfer = 0;  ///< Number in CutNetwork::transfers().
  bool gradient = false;
  std::uint64_t micro_batch = 0;  ///< Counted from the training's first.

  bool operator<(const MapMessage& other) const {
    return std::tie(micro_batch, gradient, transfer) <
           std::tie(other.micro_batch, other.gradient, other.transfer);
  }
};

/// Seen from one rank. Its values are plain, in logical order: samples, channels, rows, columns.
class MapExchange {
 public:
  virtual ~MapExchange() = default;

  /// Returns memory for what is sent next, and sends it when it has been written.
  virtual float* room(const MapMessage& message) = 0;
  virtual void send(const MapMessage& message) = 0;

  /// Returns whether all of it has come.
  virtual bool arrived(const MapMessage& message) const = 0;
  virtual std::uint64_t arrivals() const = 0;  ///< How many have come so far.
  /// Waits until arrivals() is more than `known`. Throws Error if it will not be.
  virtual void wait_for_more(std::uint64_t known) = 0;
  /// Returns the values of one that has arrived, which stay until release().
  virtual const float* take(const MapMessage& message) = 0;
  virtual void release(const MapMessage& message) = 0;
  /// This rank gets on, though it sends nothing: others wait for it as long as it does.
  virtual void progress() {}
};

/// Waits for a message, and returns its values.
inline const float* await(MapExchange& maps, const MapMessage& message) {
  for (;;) {
    const std::uint64_t known = maps.arrivals();
    if (maps.arrived(message)) return maps.take(message);
    maps.wait_for_more(known);
  }
}

}  // namespace duplex
