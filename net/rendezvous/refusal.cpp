#include "net/rendezvous/refusal.h"

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/error.h"

namespace duplex::net {
namespace {

using std::chrono::milliseconds;

/// A handshake that takes longer is a stranger's or a busy rank's, and is given up for the next
/// one.
constexpr milliseconds one_handshake{1000};
constexpr milliseconds pause{50};

Deadline soon(Deadline deadline) {
  return std::min(deadline, Clock::now() + one_handshake);
}

/// Connects to a peer, again and again until it is up, and tells it the reason in a handshake.
/// Throws nothing, since it is a thread's body.
void tell(const MeshSpec& spec, const Self& self, int peer, Deadline deadline) noexcept {
  while (Clock::now() < deadline) {
    try {
      // The congestion control that the user asked for may be why this rank cannot start.
      FrameStream stream(
          Socket::connect(spec.addresses[static_cast<std::size_t>(peer)], "", soon(deadline)));
      client_handshake(stream, self, peer, soon(deadline));
    } catch (const Mismatch& told) {  // The peer knows the reason: nothing fits a refusal.
      if (told.fatal) return;
      std::this_thread::sleep_for(pause);
    } catch (const NetworkError&) {
      std::this_thread::sleep_for(pause);
    } catch (const ProtocolError&) {
      std::this_thread::sleep_for(pause);
    } catch (const UnknownHost&) {
      std::this_thread::sleep_for(pause);
    } catch (...) {  // Others that are told tell it.
      return;
    }
  }
}

/// Shakes hands with peers that connect, until all of `ranks` have been told.
void answer(const MeshSpec& spec, const Self& self, std::set<int> ranks, Listener& listener,
            Deadline deadline) {
  if (!listener.loopback() && spec.key.empty()) return;
  while (!ranks.empty() && Clock::now() < deadline) {
    FrameStream stream(listener.accept(pause));
    if (!stream.socket()) continue;
    try {
      server_handshake(
          stream, self, [](int) {}, soon(deadline));
    } catch (const Mismatch& told) {
      stream.socket().end_sending();
      stream.socket().drain(soon(deadline));
      ranks.erase(told.rank);
    } catch (const Error&) {
    }
  }
}

/// Returns whether the listener is open or could be opened; it may be the port that is taken.
bool opened(const MeshSpec& spec, Listener& listener) {
  try {
    if (!listener) listener = Listener::open(spec.addresses[static_cast<std::size_t>(spec.rank)]);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void tell_refusal(const MeshSpec& spec, const AbortReason& reason, const std::vector<int>& peers,
                  Listener& listener, Deadline deadline) noexcept {
  std::vector<std::thread> telling;
  try {
    Self self = self_of(spec);
    self.identity = refusal(spec.identity.job, reason);
    std::set<int> awaited;
    for (const int peer : peers)
      if (spec.topology.listens(spec.rank, peer)) awaited.insert(peer);
    // Ranks listen while they meet, even those that await no other, so all can be told.
    if (!awaited.empty() && !opened(spec, listener)) awaited.clear();
    telling.reserve(peers.size());
    for (const int peer : peers) {
      if (awaited.count(peer) != 0) continue;
      telling.emplace_back([&spec, self, peer, deadline] { tell(spec, self, peer, deadline); });
    }
    if (!awaited.empty()) answer(spec, self, awaited, listener, deadline);
  } catch (...) {  // No thread can be started, for instance; peers notice that nobody comes.
  }
  for (std::thread& thread : telling) thread.join();
}

}  // namespace duplex::net
