#include "tools/check/machine/peers.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <iterator>
#include <utility>

#include "core/error.h"
#include "net/link_survey.h"
#include "net/wire/network_reason.h"
#include "net/wire/socket_setup.h"

namespace duplex::tools {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds tick{50};
/// TCP has sent its first segment three times by then.
constexpr milliseconds connect_limit{4000};
constexpr milliseconds handshake_limit{5000};
/// A machine that is called may be a moment behind the one that has called it.
constexpr milliseconds arrival_limit{3000};
/// Nothing of a measurement takes longer, and the whole of it not longer than that.
constexpr milliseconds silence_limit{4000}, rate_limit{7000};
/// Connections that may shake hands at one time, beyond those of the check.
constexpr std::size_t strangers_limit = 32;

/// Returns what a failed connect says of the way there.
Call call_of(const net::NetworkError& error) {
  const std::string reason = net::bare_reason(error);
  const auto is = [&](int code) { return reason == net::errno_text(code); };
  if (is(ECONNREFUSED)) return Call::refused;
  if (is(EHOSTUNREACH) || is(ENETUNREACH) || is(EACCES) || is(EPERM) || is(EINVAL))
    return Call::unreachable;
  return Call::unanswered;
}

/// Ends a connection that takes too long, from a thread of its own.
class Watchdog {
 public:
  explicit Watchdog(net::Socket& socket)
      : thread_([this, &socket] {
          std::unique_lock<std::mutex> lock(mutex_);
          if (!changed_.wait_for(lock, rate_limit, [this] { return over_; })) {
            barked_ = true;
            socket.shut_down();
          }
        }) {}
  ~Watchdog() { stop(); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Returns whether it has ended the connection.
  bool stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    return barked_;
  }

 private:
  std::mutex mutex_;  ///< Guards the two below; both threads take it.
  std::condition_variable changed_;
  bool over_ = false, barked_ = false;
  std::thread thread_;
};

}  // namespace

CheckPeers::CheckPeers(const CheckTask& task) : task_(task), key_(net::sha256(task.secret)) {
  const CheckedMachine& own = task.machines[static_cast<std::size_t>(task.index)];
  for (const std::int64_t port : own.ports) {
    try {
      listeners_.push_back(net::Listener::open({own.host, static_cast<std::uint16_t>(port)}));
      if (port == own.ports.front()) first_ = &listeners_.back();
    } catch (const Error& error) {
      closed_.emplace_back(error.what());
    }
  }
  for (net::Listener& listener : listeners_)
    accepting_.emplace_back([this, &listener] { accept(listener); });
}

CheckPeers::~CheckPeers() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    for (Visitor& visitor : visitors_)
      if (!visitor.done) visitor.stream.socket().shut_down();
  }
  changed_.notify_all();
  for (std::thread& thread : accepting_) thread.join();
  for (Visitor& visitor : visitors_) visitor.thread.join();  // No more of them come.
}

net::Self CheckPeers::self() const {
  net::Self self;
  self.rank = static_cast<int>(task_.index);
  self.size = static_cast<int>(task_.machines.size());
  self.identity.job = "check";
  self.key = key_;
  return self;
}

void CheckPeers::accept(net::Listener& listener) {
  const std::size_t most =
      2 * task_.machines.size() * task_.machines[task_.index].ports.size() + strangers_limit;
  for (;;) {
    net::Socket socket = listener.accept(tick);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (over_) return;
    // A thread that is done takes no lock any more.
    for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
      if (visitor->done) visitor->thread.join();
      visitor = visitor->done ? visitors_.erase(visitor) : std::next(visitor);
    }
    if (!socket || visitors_.size() >= most) continue;
    Visitor& visitor = visitors_.emplace_back();
    visitor.stream = net::FrameStream(std::move(socket));
    try {
      visitor.thread =
          std::thread([this, &visitor, stays = &listener == first_] { receive(visitor, stays); });
    } catch (const std::exception&) {
      visitors_.pop_back();  // It has no thread to join.
    }
  }
}

/// Strangers and calls that break off cost nothing but their own connection.
void CheckPeers::receive(Visitor& visitor, bool stays) {
  int rank = -1;
  try {
    const net::HandshakeResult result = net::server_handshake(
        visitor.stream, self(),
        [&](int caller) {
          if (caller < 0 || caller >= static_cast<int>(task_.machines.size()) ||
              caller == task_.index)
            throw net::Mismatch("there is no such machine", false);
        },
        Clock::now() + handshake_limit);
    rank = result.rank;
  } catch (const std::exception&) {
    visitor.stream.socket().shut_down();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  visitor.done = true;
  if (rank < 0 || over_ || !stays) return;
  came_.insert_or_assign(rank, std::move(visitor.stream));
  changed_.notify_all();
}

CallFacts CheckPeers::call(const Target& target) {
  CallFacts facts;
  facts.peer = target.peer;
  facts.port = target.port;
  const CheckedMachine& machine = task_.machines[static_cast<std::size_t>(target.peer)];
  bool connected = false;
  try {
    net::FrameStream stream(net::Socket::connect(
        {machine.host, static_cast<std::uint16_t>(target.port)}, "", Clock::now() + connect_limit));
    connected = true;
    const net::HandshakeResult result = net::client_handshake(
        stream, self(), static_cast<int>(target.peer), Clock::now() + handshake_limit);
    facts.offset_ns = result.clock.offset_ns;
    facts.error_ns = result.clock.error_ns;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (target.port == machine.ports.front())
      called_.insert_or_assign(target.peer, std::move(stream));
  } catch (const net::NetworkError& error) {
    facts.call = connected ? Call::strange : call_of(error);
    facts.trouble = net::bare_reason(error);
  } catch (const Error& error) {
    facts.call = connected ? Call::strange : Call::unreachable;
    facts.trouble = error.what();
  }
  return facts;
}

std::vector<CallFacts> CheckPeers::call(const std::vector<std::int64_t>& peers) {
  std::vector<CallFacts> all;
  for (const std::int64_t peer : peers) {
    if (peer < 0 || peer >= static_cast<std::int64_t>(task_.machines.size()) || peer == task_.index)
      throw Error("check: machine " + std::to_string(peer) + " is not to be called");
    for (const std::int64_t port : task_.machines[static_cast<std::size_t>(peer)].ports)
      all.emplace_back().peer = peer, all.back().port = port;
  }
  std::vector<std::thread> threads;
  for (CallFacts& each : all)
    threads.emplace_back([this, &each] { each = call(Target{each.peer, each.port}); });
  for (std::thread& thread : threads) thread.join();
  return all;
}

net::FrameStream CheckPeers::take(std::int64_t peer, bool called) {
  std::unique_lock<std::mutex> lock(mutex_);
  auto& streams = called ? called_ : came_;
  changed_.wait_for(lock, arrival_limit, [&] { return streams.count(peer) > 0; });
  const auto found = streams.find(peer);
  if (found == streams.end()) throw Error("there is no connection any more");
  net::FrameStream stream = std::move(found->second);
  streams.erase(found);
  return stream;
}

RateFacts CheckPeers::rate(std::int64_t peer, bool called) {
  RateFacts facts;
  facts.peer = peer;
  try {
    // The two are a mesh of their own, in which the lower number is rank 0.
    const int mine = task_.index < peer ? 0 : 1;
    std::vector<net::Link> links(1);
    links[0].rank = 1 - mine;
    links[0].stream = take(peer, called);
    net::Mesh mesh = net::Mesh::of({net::ServerMode::distributed, 2, 0}, mine, std::move(links));
    net::FrameStream& stream = mesh.links()[0].stream;
    Watchdog watchdog(stream.socket());
    const auto other = static_cast<std::size_t>(1 - mine);
    try {
      const net::LinkRates rates = net::survey_links(mesh, {task_.seconds, silence_limit});
      facts.out = rates.out[other];
      facts.in = rates.in[other];
      facts.round_trip = rates.round_trip[other];
    } catch (const Error&) {
      if (!watchdog.stop()) throw;
      throw Error("it took longer than " + std::to_string(rate_limit.count() / 1000) + " s");
    }
    watchdog.stop();
    const std::lock_guard<std::mutex> lock(mutex_);
    (called ? called_ : came_).emplace(peer, std::move(stream));  // Somebody may ask again.
  } catch (const net::NetworkError& error) {
    facts.trouble = net::bare_reason(error);
  } catch (const Error& error) {
    facts.trouble = error.what();
  }
  return facts;
}

}  // namespace duplex::tools
