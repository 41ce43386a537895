// The connections of one machine to the others while it is checked. They are made as ranks make
// theirs, at the same ports, and prove to each other that they belong to this check.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "net/rendezvous/handshake.h"
#include "net/wire/listener.h"
#include "tools/check/machine/messages.h"

namespace duplex::tools {

class CheckPeers {
 public:
  /// Listens at all ports of its own machine. `task` must outlive it.
  explicit CheckPeers(const CheckTask& task);
  /// Ends all connections.
  ~CheckPeers();
  CheckPeers(const CheckPeers&) = delete;
  CheckPeers& operator=(const CheckPeers&) = delete;

  /// Why it does not listen at a port; empty: it listens at all.
  const std::vector<std::string>& closed() const { return closed_; }

  /// Calls these machines at all of their ports, all at once; whoever does not answer counts as
  /// unanswered after some seconds. The connection to the first port of each stays.
  std::vector<CallFacts> call(const std::vector<std::int64_t>& peers);

  /// Measures the link with a peer that does the same: over the connection that this machine has
  /// opened (`called`), or over the one that the peer has.
  RateFacts rate(std::int64_t peer, bool called);

 private:
  struct Visitor {
    net::FrameStream stream;
    std::thread thread;
    bool done = false;  ///< Under the mutex.
  };
  struct Target {
    std::int64_t peer = 0, port = 0;
  };

  net::Self self() const;
  void accept(net::Listener& listener);
  void receive(Visitor& visitor, bool stays);
  CallFacts call(const Target& target);
  net::FrameStream take(std::int64_t peer, bool called);

  const CheckTask& task_;
  const net::Key key_;
  std::vector<std::string> closed_;
  std::list<net::Listener> listeners_;
  const net::Listener* first_ = nullptr;  ///< The one at the first port.
  std::vector<std::thread> accepting_;

  /// Guards all below. The threads that accept, shake hands and call take it.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::list<Visitor> visitors_;
  std::map<std::int64_t, net::FrameStream> called_, came_;  ///< By machine.
};

}  // namespace duplex::tools
