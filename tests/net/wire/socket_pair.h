// The two ends of a connection over loopback, and a stopwatch.
#pragma once

#include <chrono>
#include <functional>

#include "net/wire/listener.h"

namespace duplex::net {

/// `near` has connected to `far`. Both know the other's address; `near` calls its peer "rank 7
/// (there)".
struct SocketPair {
  SocketPair() : listener(Listener::open({"127.0.0.1", 0})) {
    near = Socket::connect({"127.0.0.1", listener.port()}, "", in(5000));
    far = listener.accept(std::chrono::milliseconds(5000));
    near.name_peer("rank 7 (there)");
  }
  /// The deadline in so many milliseconds.
  static Deadline in(int ms) { return Clock::now() + std::chrono::milliseconds(ms); }
  Listener listener;
  Socket near, far;
};

inline double seconds_of(const std::function<void()>& body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace duplex::net
