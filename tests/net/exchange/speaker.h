// A peer that shook hands properly and says what a test lets it say.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "tests/net/cluster.h"
#include "tests/net/connection/raw_peer.h"

namespace duplex::net {
using std::chrono::milliseconds;

inline const std::vector<std::size_t> counts{6, 6, 6};  // A chunk each.

enum Kind : std::uint16_t {
  weights = 16,
  gradient = 17,
  heartbeat = 18,
  report = 19,
  goodbye = 20,
  abort_run = 21,
  done = 22,
  ask = 23,
  grant = 24,
  checkpoint = 28,
  snapshot = 29
};

inline RawFrame frame_of(std::uint16_t kind, std::uint64_t step = 0, std::uint32_t parameter = 0) {
  RawFrame frame;
  frame.kind = kind;
  frame.step = step;
  frame.parameter = parameter;
  if (kind == weights || kind == gradient)
    frame.payload.assign(counts[parameter] * sizeof(float), 0);
  return frame;
}

/// A peer that says what the test lets it say.
struct Speaker {
  int rank;
  std::vector<Link>& links;

  Socket& to(int other) const {
    for (Link& link : links)
      if (link.rank == other) return link.stream.socket();
    throw Error("no such link");
  }
  void say(const RawFrame& frame, int other = 0) const { send_raw(to(other), frame); }
  /// Reads frames of rank `other` up to one of that kind, or of an abort.
  RawFrame hear(std::uint16_t kind, int other = 0) const {
    for (;;) {
      RawFrame frame = receive_raw(to(other));
      if (frame.kind == kind || frame.kind == abort_run) return frame;
    }
  }
  /// Says that it gets on, until rank 0 has ended the connection.
  void live() const {
    try {
      for (std::uint64_t count = 1;; ++count) {
        say(frame_of(heartbeat, count));
        std::this_thread::sleep_for(milliseconds(50));
      }
    } catch (const NetworkError&) {  // It has.
    }
  }
};

struct Scene {
  Topology topology{ServerMode::central, 2, 0};
  ExchangeSpec spec;
  /// This is what the last rank says; all others are as they should be, and train `steps`.
  std::function<void(const Speaker&)> speak;
  std::uint64_t steps = 2;
  std::function<bool()>
      begins;             ///< The others begin to train when it returns true; empty: at once.
  std::vector<int> lost;  ///< By rank 0.
};

/// No wait of a run takes as long as the time-out of these runs, unless that is shorter.
constexpr double soon_s = 8;

inline std::vector<Outcome> play(Scene& scene) {
  return run_ranks(scene.topology, [&](int rank, const MeshSpec& spec, Listener listener) {
    Mesh mesh = Mesh::join(spec, std::move(listener));
    if (rank == scene.topology.size - 1) {
      scene.speak({rank, mesh.links()});
      return;
    }
    Replica replica(counts);
    ExchangeSpec own = scene.spec;
    own.chunk_bytes = 4096;
    ParameterExchange exchange(own, replica.spans(), std::move(mesh));
    while (scene.begins && !scene.begins()) std::this_thread::sleep_for(milliseconds(1));
    if (exchange.is_worker()) {
      train(exchange, replica, rank, scene.steps);
      train_leases(exchange, replica, scene.steps);
    }
    exchange.finish();
    if (rank == 0) scene.lost = exchange.lost();
  });
}

/// The run ends at once, and rank 0 says why and who.
inline void expect_refused(Scene& scene, const std::string& says) {
  const std::vector<Outcome> outcomes = play(scene);
  const std::string culprit = "rank " + std::to_string(scene.topology.size - 1) + " (127.0.0.1:";
  EXPECT_FALSE(outcomes[0].ok);
  EXPECT_NE(outcomes[0].message.find(culprit), std::string::npos) << outcomes[0].message;
  EXPECT_NE(outcomes[0].message.find(says), std::string::npos) << outcomes[0].message;
  EXPECT_LT(outcomes[0].seconds, soon_s) << outcomes[0].message;
}

/// Waits until rank 0 has closed or ended the run.
inline void wait_for_the_end(const Speaker& self) {
  try {
    while (self.hear(abort_run).kind != abort_run) {
    }
  } catch (const NetworkError&) {
  }
}

}  // namespace duplex::net
