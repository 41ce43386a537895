#include "net/rendezvous/rendezvous.h"

#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "net/rendezvous/host_names.h"
#include "net/rendezvous/refusal.h"
#include "net/wire/socket_setup.h"

namespace duplex::net {
namespace {

using std::chrono::milliseconds;

/// A connection that does not finish its handshake within this time is closed, whoever made it; a
/// rank tries again.
constexpr milliseconds handshake_limit{10000};
/// An attempt to connect takes no longer, so that a run that has failed meanwhile ends soon. TCP
/// has sent its first segment three times by then.
constexpr milliseconds connect_limit{4000};
/// Connections that may shake hands at one time, beyond the awaited ranks.
constexpr std::size_t strangers_limit = 32;
constexpr milliseconds tick{20};
constexpr milliseconds longest_pause{500};
/// Time that a failing rank gives its peers to take the reason.
constexpr milliseconds last_words{1000};
/// Time that it stays for peers which have not come yet, where another rank has told it the reason
/// and tells others, too.
constexpr milliseconds passed_on{1000};

std::string seconds_text(milliseconds time) {
  std::string text = std::to_string(time.count() / 1000);
  if (time.count() % 1000 != 0) {
    std::string part = std::to_string(1000 + time.count() % 1000).substr(1);
    part.erase(part.find_last_not_of('0') + 1);
    text += "." + part;
  }
  return text + " s";
}

}  // namespace

Rendezvous::Rendezvous(MeshSpec& spec, Listener& listener)
    : spec_(spec), listener_(listener), deadline_(Clock::now() + spec.timeout) {
  self_.rank = spec.rank;
  self_.size = spec.topology.size;
  self_.identity = spec.identity;
  self_.key = spec.key;
  self_.epoch_ns = clock_ns();
  coordinator_time_.epoch_ns = self_.epoch_ns;
  for (const int peer : spec.topology.peers_of(spec.rank))
    (spec.topology.listens(spec.rank, peer) ? awaited_ : called_).insert(peer);
}

std::vector<Link> Rendezvous::run() {
  try {
    return meet();
  } catch (...) {
    tell_unlinked(std::current_exception());
    throw;
  }
}

std::vector<Link> Rendezvous::meet() {
  if (!spec_.key.empty()) log("has the cluster key " + spec_.key.fingerprint());
  if (!awaited_.empty()) listen();
  std::thread watcher([this] { watch(); });
  for (const int peer : called_) call(peer);
  watcher.join();
  if (failure_) {
    tell_others();
    std::rethrow_exception(failure_);
  }
  std::sort(links_.begin(), links_.end(),
            [](const Link& a, const Link& b) { return a.rank < b.rank; });
  if (forgets_pace() && std::any_of(links_.begin(), links_.end(),
                                    [](const Link& link) { return !link.socket.loopback(); }))
    log("TCP here forgets its pace in every pause and then sends slowly at first; as root, "
        "`sysctl -w net.ipv4.tcp_slow_start_after_idle=0` turns that off");
  return std::move(links_);
}

void Rendezvous::listen() {
  if (!listener_) open_listener();
  if (!listener_.loopback() && spec_.key.empty())
    throw Error("listening on " + listener_.address() +
                    " needs a cluster key, or anybody could join: make one with `duplex keygen "
                    "FILE`, copy it to every machine and give every rank --key FILE",
                Exit::usage);
  log("listens on " + listener_.address() + interface_text(listener_.address()));
}

void Rendezvous::open_listener() {
  try {
    listener_ =
        Listener::open(spec_.addresses[static_cast<std::size_t>(spec_.rank)], spec_.congestion);
  } catch (const Error& error) {
    throw Error("rank " + std::to_string(spec_.rank) + " " + error.what(), error.code);
  }
}

bool Rendezvous::linked(int rank) const {
  return std::any_of(links_.begin(), links_.end(),
                     [&](const Link& link) { return link.rank == rank; });
}

void Rendezvous::log(const std::string& line) {
  if (spec_.log) spec_.log(line);
}

void Rendezvous::fail(std::exception_ptr failure) {
  if (failure_) return;
  failure_ = std::move(failure);
  if (calling_ != nullptr) calling_->shut_down();
  changed_.notify_all();
}

void Rendezvous::add(HandshakeResult result, Socket socket) {
  Link link;
  link.rank = result.rank;
  link.peer = rank_name(result.rank, socket.peer());
  link.socket = std::move(socket);
  link.socket.name_peer(link.peer);
  link.handshake = std::move(result.frames);
  const std::string here = link.socket.local_address();
  log(link.peer + " is connected (" + link.socket.congestion() + ")" +
      (listener_ ? "" : ", from " + here + interface_text(here)));
  links_.push_back(std::move(link));
  changed_.notify_all();
}

void Rendezvous::watch() {
  try {
    accept_peers();
  } catch (...) {
    const std::lock_guard<std::mutex> lock(mutex_);
    fail(std::current_exception());
  }
  std::unique_lock<std::mutex> lock(mutex_);
  reap(lock, true);
}

void Rendezvous::accept_peers() {
  for (;;) {
    Socket socket = listener_ ? listener_.accept(tick) : Socket();
    std::unique_lock<std::mutex> lock(mutex_);
    if (!listener_) changed_.wait_for(lock, tick);
    reap(lock, false);
    if (!over()) watch_links();
    if (over()) return;
    if (Clock::now() >= deadline_) {
      fail(std::make_exception_ptr(missing()));
      return;
    }
    if (!socket || pending_.size() >= awaited_.size() + strangers_limit) continue;
    PendingPeer& peer = pending_.emplace_back();
    peer.socket = std::move(socket);
    try {
      peer.thread = std::thread([this, &peer] { receive(peer); });
    } catch (...) {
      pending_.pop_back();  // It has no thread to join.
      throw;
    }
  }
}

void Rendezvous::reap(std::unique_lock<std::mutex>& lock, bool all) {
  if (all)
    for (PendingPeer& peer : pending_)
      if (!peer.done) peer.socket.shut_down();
  for (auto peer = pending_.begin(); peer != pending_.end();) {
    if (!all && !peer->done) {
      ++peer;
      continue;
    }
    lock.unlock();
    peer->thread.join();
    lock.lock();
    peer = pending_.erase(peer);
  }
}

void Rendezvous::receive(PendingPeer& peer) {
  const std::string address = peer.socket.peer();
  int claimed = -1;
  std::string turned_away;
  const Deadline limit = std::min(deadline_, Clock::now() + handshake_limit);
  try {
    const auto welcome = [&](int rank) {
      std::unique_lock<std::mutex> lock(mutex_);
      // If another connection claims this rank and has not got through, it may have broken off.
      changed_.wait_until(lock, limit, [&] {
        const auto claim = claims_.find(rank);
        return failure_ || claim == claims_.end() || linked(rank);
      });
      const auto claim = claims_.find(rank);
      if (claim != claims_.end())
        throw Mismatch("rank " + std::to_string(rank) + " is there twice: " + claim->second +
                           " came first, now " + address +
                           ": give every rank the same nodefile and its own index",
                       false);
      if (awaited_.count(rank) == 0)
        throw Mismatch(
            rank_name(rank, address) + " connects to rank " + std::to_string(spec_.rank) +
                ", which waits for no rank of that number: give every rank its own index",
            true);
      claims_[rank] = address;
      claimed = rank;
    };
    HandshakeResult result = server_handshake(peer.socket, self_, welcome, limit);
    const std::lock_guard<std::mutex> lock(mutex_);
    peer.done = true;
    add(std::move(result), std::move(peer.socket));
    return;
  } catch (const Mismatch& mismatch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (mismatch.fatal) fail(std::current_exception());
    turned_away = mismatch.what();
  } catch (const ProtocolError& error) {
    turned_away = error.what();
  } catch (const NetworkError& error) {
    turned_away = error.what();
  } catch (...) {  // No stranger can cause this.
    const std::lock_guard<std::mutex> lock(mutex_);
    fail(std::current_exception());
    turned_away = reason_of(std::current_exception()).text;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  peer.socket.shut_down();
  peer.done = true;
  if (claimed >= 0) claims_.erase(claimed);
  changed_.notify_all();
  if (over()) return;  // reap() has cut off those that still shook hands.
  if (turned_away_.size() < strangers_limit) turned_away_.push_back(turned_away);
  log("turned away: " + turned_away);
}

void Rendezvous::watch_links() {
  for (Link& link : links_) {
    std::uint8_t bytes[header_bytes + abort_limit];
    const std::ptrdiff_t got = link.socket.peek(bytes, sizeof bytes);
    if (got < 0) {
      told_ = true;
      fail(std::make_exception_ptr(NetworkError("recv", link.peer, "waiting for other ranks",
                                                "the connection was closed", waited(),
                                                Exit::peer_lost)));
    } else if (static_cast<std::size_t>(got) >= header_bytes) {
      HeaderBytes header_part;
      std::copy(bytes, bytes + header_bytes, header_part.begin());
      const FrameHeader header = decode(header_part);
      const auto rest = static_cast<std::size_t>(got) - header_bytes;
      if (header.kind != FrameKind::abort || header.length > rest) continue;
      told_ = true;
      try {
        const AbortReason reason = decode_abort(bytes + header_bytes, header.length);
        fail(std::make_exception_ptr(
            Error(link.peer + " ended the run: " + reason.text, reason.code)));
      } catch (const ProtocolError&) {
        fail(std::current_exception());
      }
    }
  }
}

double Rendezvous::waited() const {
  return std::chrono::duration<double>(Clock::now() - (deadline_ - spec_.timeout)).count();
}

Error Rendezvous::missing() const {
  std::string text;
  for (const auto* ranks : {&called_, &awaited_})
    for (const int rank : *ranks) {
      if (linked(rank)) continue;
      const Address& address = spec_.addresses[static_cast<std::size_t>(rank)];
      text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank);
      if (!address.host.empty()) text += " (" + address.str() + ")";
    }
  text = "rank " + std::to_string(spec_.rank) + " waited " + seconds_text(spec_.timeout) +
         " in vain for " + text;
  if (!last_refusal_.empty()) text += "; last: " + last_refusal_;
  for (const std::string& line : turned_away_) text += "; turned away: " + line;
  return Error(text, Exit::timed_out);
}

void Rendezvous::call(int rank) {
  milliseconds pause{10};
  for (;;) {
    try {
      // A failure cannot interrupt connecting; it is seen between two attempts.
      Socket socket =
          Socket::connect(spec_.addresses[static_cast<std::size_t>(rank)], spec_.congestion,
                          std::min(deadline_, Clock::now() + connect_limit));
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (failure_) return;
        calling_ = &socket;
      }
      HandshakeResult result;
      try {
        result = client_handshake(socket, self_, rank, deadline_);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex_);
        calling_ = nullptr;
        throw;
      }
      const std::lock_guard<std::mutex> lock(mutex_);
      calling_ = nullptr;
      last_refusal_.clear();
      if (rank == spec_.topology.coordinator())
        coordinator_time_ = {result.clock.offset_ns, result.clock.epoch_ns, result.clock.error_ns};
      add(std::move(result), std::move(socket));
      return;
    } catch (const NetworkError& error) {
      // It is not up yet, or down again: the watching thread ends this at the deadline.
      const std::lock_guard<std::mutex> lock(mutex_);
      last_refusal_ = error.what();
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      fail(std::current_exception());
    }
    std::unique_lock<std::mutex> lock(mutex_);
    if (failure_ || changed_.wait_for(lock, pause, [this] { return failure_ != nullptr; })) return;
    pause = std::min(2 * pause, longest_pause);
  }
}

/// Tells the peers that have not come yet why this rank ends, so that they need not wait for it. At
/// the deadline there is nothing to tell: theirs has come, too.
void Rendezvous::tell_unlinked(const std::exception_ptr& failure) {
  const AbortReason reason = reason_of(failure);
  if (reason.code == Exit::timed_out) return;
  std::vector<int> peers;
  for (const int peer : spec_.topology.peers_of(spec_.rank))
    if (!linked(peer)) peers.push_back(peer);
  bool told = told_;
  try {
    std::rethrow_exception(failure);
  } catch (const Mismatch&) {
    told = true;
  } catch (...) {
  }
  if (peers.empty()) return;
  const milliseconds limit = std::min(told ? passed_on : refusal_limit, spec_.timeout);
  if (!told)
    log("cannot take part, and tells the others, for at most " + seconds_text(limit) + ": " +
        reason.text);
  tell_refusal(spec_, reason.text, peers, listener_, std::min(deadline_, Clock::now() + limit));
}

void Rendezvous::tell_others() {
  const auto payload = encode(reason_of(failure_));
  FrameHeader header;
  header.kind = FrameKind::abort;
  header.length = payload.size();
  const HeaderBytes bytes = encode(header);
  const Deadline deadline = Clock::now() + last_words;
  for (Link& link : links_) {
    try {
      link.socket.write_all(bytes.data(), bytes.size(), payload.data(), payload.size(), deadline,
                            "ending the run");
      link.socket.end_sending();
    } catch (const NetworkError&) {  // The peer sees that the connection ends.
    }
  }
  for (Link& link : links_) link.socket.drain(deadline);
}

}  // namespace duplex::net
