// Rank 0 of a run, for tests that connect to it as its peers.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "net/rendezvous/mesh.h"
#include "tests/net/cluster.h"
#include "tests/net/connection/raw_peer.h"

namespace duplex::net {

using std::chrono::milliseconds;

/// Rank 0 of a run of `size` ranks, which listens in a thread.
class RankZero {
 public:
  explicit RankZero(int size = 2, milliseconds timeout = milliseconds(20000), const Key& key = {},
                    const Identity& identity = test_identity()) {
    Topology topology{ServerMode::distributed, size, 0};
    Listener listener = Listener::open({"127.0.0.1", 0});
    spec.topology = topology;
    spec.identity = identity;
    spec.timeout = timeout;
    spec.key = key;
    spec.addresses.assign(static_cast<std::size_t>(size), {"127.0.0.1", 0});
    spec.addresses[0].port = listener.port();
    MeshSpec mine = spec;
    mine.log = [this](const std::string& line) {
      const std::lock_guard<std::mutex> lock(mutex_);
      log_ += line + "\n";
    };
    thread_ = std::thread([this, mine, listener = std::move(listener)]() mutable {
      try {
        mesh = Mesh::join(mine, std::move(listener));
        outcome.ok = true;
      } catch (const Error& error) {
        outcome.code = error.code;
        outcome.message = error.what();
      }
    });
  }
  ~RankZero() { wait(); }
  void wait() {
    if (thread_.joinable()) thread_.join();
  }
  Socket connect() const { return Socket::connect(spec.addresses[0], "", soon()); }
  /// Joins as `rank` with rank 0's spec as `change` has altered it. Returns the error that it was
  /// told, or "" if it got in.
  std::string join(int rank, const std::function<void(MeshSpec&)>& change = {}) const {
    MeshSpec other = spec;
    other.rank = rank;
    if (change) change(other);
    try {
      Mesh::join(other);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }
  std::string log() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return log_;
  }

  MeshSpec spec;
  Mesh mesh;
  Outcome outcome;

 private:
  std::thread thread_;
  std::mutex mutex_;
  std::string log_;
};

inline void expect_in(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace duplex::net
