#include "net/rendezvous/rendezvous.h"

#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "net/rendezvous/host_names.h"
#include "net/rendezvous/link_watch.h"
#include "net/wire/socket_setup.h"

namespace duplex::net {
namespace {

using std::chrono::milliseconds;

/// Returns the text with `host` instead of `address`, whose port every attempt has another of: so
/// that what is said once need not be said again.
std::string without_port(std::string text, const std::string& address) {
  const std::size_t host = address.rfind(':');
  for (std::size_t at = 0; (at = text.find(address, at)) != std::string::npos; at += host)
    text.erase(at + host, address.size() - host);
  return text;
}

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

}  // namespace

Rendezvous::Rendezvous(MeshSpec& spec, Listener& listener)
    : spec_(spec),
      listener_(listener),
      deadline_(Clock::now() + spec.timeout),
      self_(self_of(spec)) {
  coordinator_time_.epoch_ns = self_.epoch_ns;
  for (const int peer : spec.topology.peers_of(spec.rank))
    (spec.topology.listens(spec.rank, peer) ? awaited_ : called_).insert(peer);
}

Rendezvous::Rendezvous(MeshSpec& spec, Listener& listener, LateRanks late)
    : spec_(spec),
      listener_(listener),
      deadline_(Deadline::max()),
      self_(self_of(spec)),
      late_(std::move(late)) {
  self_.epoch_ns = late_->epoch_ns;
  for (const int peer : spec.topology.peers_of(spec.rank)) awaited_.insert(peer);
}

std::vector<Link> Rendezvous::run_late() {
  watch();
  if (failure_) std::rethrow_exception(failure_);
  return std::move(links_);
}

/// A rank may be back before the run has lost it.
void Rendezvous::await_loss(std::unique_lock<std::mutex>& lock, int rank, Deadline limit) {
  while (!late_->awaited(rank) && !over() && Clock::now() < limit) changed_.wait_for(lock, tick);
  if (over() || !late_->awaited(rank))
    throw ProtocolError("rank " + std::to_string(rank) +
                        " connects to a run that has not lost it; it may try again");
}

bool Rendezvous::over() const {
  if (late_) return failure_ || !links_.empty() || late_->over();
  return failure_ || (!lost_ && links_.size() == awaited_.size() + called_.size());
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
  if (awaited_.empty())
    listen_for_refusals();
  else
    listen();
  std::thread watcher([this] { watch(); });
  call_all();
  watcher.join();
  if (awaited_.empty()) listener_ = Listener();
  if (failure_) {
    end_links(links_, reason_of(failure_));
    std::rethrow_exception(failure_);
  }
  std::sort(links_.begin(), links_.end(),
            [](const Link& a, const Link& b) { return a.rank < b.rank; });
  const auto is_bare = [](const Link& link) {
    return !link.stream.socket().loopback() && link.stream.protection() != Protection::sealed;
  };
  if (std::any_of(links_.begin(), links_.end(), is_bare))
    spec_.warn(
        "sends frames that are neither encrypted nor authenticated, as --secure off asks: nobody "
        "else may be able to write to the network");
  if (forgets_pace() && std::any_of(links_.begin(), links_.end(), [](const Link& link) {
        return !link.stream.socket().loopback();
      }))
    log("TCP here forgets its pace in every pause and then sends slowly at first; as root, "
        "`sysctl -w net.ipv4.tcp_slow_start_after_idle=0` turns that off");
  return std::move(links_);
}

/// Connects to all lower ranks at once: one that does not answer must not keep this rank from the
/// others, which would take it for missing.
void Rendezvous::call_all() {
  std::vector<std::thread> callers;
  try {
    callers.reserve(called_.size());
    for (const int peer : called_) callers.emplace_back([this, peer] { call(peer); });
  } catch (...) {
    const std::lock_guard<std::mutex> lock(mutex_);
    fail(std::current_exception());
  }
  for (std::thread& caller : callers) caller.join();
}

void Rendezvous::listen() {
  if (!listener_) open_listener();
  if (!listener_.loopback() && spec_.key.empty())
    throw Error("listening on " + listener_.address() +
                    " needs a cluster key, or anybody could join: make one with `duplex keygen "
                    "FILE`, copy it to every machine and give every rank --key FILE",
                Exit::usage);
  log("listens on " + listener_.address() + interface_text(listener_.address()) +
      (spec_.key.empty() ? ", without a key: any user of this machine could join" : ""));
}

/// A rank that nobody connects to listens nevertheless, if it can: one whose own port is taken can
/// only so tell it.
void Rendezvous::listen_for_refusals() {
  const Address& own = spec_.addresses[static_cast<std::size_t>(spec_.rank)];
  if (listener_ || own.host.empty() || own.port == 0) return;
  try {
    Listener listener = Listener::open(own);
    if (listener.loopback() || !spec_.key.empty()) listener_ = std::move(listener);
  } catch (const Error&) {  // It does not need this port.
  }
}

void Rendezvous::open_listener() {
  try {
    listener_ =
        Listener::open(spec_.addresses[static_cast<std::size_t>(spec_.rank)], spec_.congestion);
  } catch (const Error& error) {
    throw Error("rank " + std::to_string(spec_.rank) + ": " + error.what(), error.code);
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
  for (const auto& [rank, socket] : calling_) socket->shut_down();
  changed_.notify_all();
}

void Rendezvous::add(HandshakeResult result, FrameStream stream) {
  Link link;
  link.rank = result.rank;
  link.peer = rank_name(result.rank, stream.socket().peer());
  link.stream = std::move(stream);
  Socket& socket = link.stream.socket();
  socket.name_peer(link.peer);
  socket.keep_to(spec_.link_rate);
  link.handshake = std::move(result.frames);
  const std::string here = socket.local_address();
  log(link.peer + " is connected (" + socket.congestion() + ", " +
      name_of(link.stream.protection()) + ")" +
      (awaited_.empty() ? ", from " + here + interface_text(here) : ""));
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
    if (!late_ && !over()) {
      if (spec_.check) spec_.check();
      watch_links();
    }
    if (over()) return;
    if (Clock::now() >= deadline_) {
      fail(std::make_exception_ptr(missing()));
      return;
    }
    if (!socket) continue;
    make_room();
    PendingPeer& peer = pending_.emplace_back();
    peer.host = socket.peer().substr(0, socket.peer().rfind(':'));
    peer.stream = FrameStream(std::move(socket));
    try {
      peer.thread = std::thread([this, &peer] { receive(peer); });
    } catch (...) {
      pending_.pop_back();  // It has no thread to join.
      throw;
    }
  }
}

/// Where too many shake hands, the oldest of the host that has most of them makes room: a host that
/// only opens connections is in nobody's way but its own.
void Rendezvous::make_room() {
  std::map<std::string, std::size_t> by_host;
  std::size_t shaking = 0;
  for (const PendingPeer& peer : pending_)
    if (!peer.done && !peer.given_up && !peer.accepted) {
      ++by_host[peer.host];
      ++shaking;
    }
  if (shaking < awaited_.size() + strangers_limit) return;
  const auto most =
      std::max_element(by_host.begin(), by_host.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  for (PendingPeer& peer : pending_)
    if (!peer.done && !peer.given_up && !peer.accepted && peer.host == most->first) {
      peer.cut_off();
      return;
    }
}

void Rendezvous::receive(PendingPeer& peer) {
  const std::string address = peer.stream.socket().peer();
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
      if (awaited_.count(rank) == 0)
        throw Mismatch(
            rank_name(rank, address) + " connects to rank " + std::to_string(spec_.rank) +
                ", which waits for no rank of that number: give every rank its own index",
            true);
      if (late_) await_loss(lock, rank, limit);
      const auto claim = claims_.find(rank);
      if (claim != claims_.end())
        throw Mismatch("rank " + std::to_string(rank) + " is there twice: " + claim->second +
                           " came first, now " + address +
                           ": give every rank the same nodefile and its own index",
                       false);
      claims_[rank] = address;
      claimed = rank;
      peer.accepted = true;
    };
    HandshakeResult result = server_handshake(peer.stream, self_, welcome, limit);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (peer.given_up) throw ProtocolError(address + " came too late, or made room for others");
    peer.done = true;
    add(std::move(result), std::move(peer.stream));
    return;
  } catch (const Mismatch& mismatch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (mismatch.fatal && !late_) fail(std::current_exception());
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
  peer.stream.socket().shut_down();
  peer.done = true;
  if (claimed >= 0) claims_.erase(claimed);
  changed_.notify_all();
  if (over()) return;  // reap() has cut off those that still shook hands.
  if (turned_away_.size() == strangers_limit) return;
  turned_away = without_port(turned_away, address);
  if (std::count(turned_away_.begin(), turned_away_.end(), turned_away) > 0) return;
  turned_away_.push_back(turned_away);
  spec_.warn("turned away: " + turned_away);
  if (turned_away_.size() == strangers_limit) spec_.warn("turns more away without a word");
}

void Rendezvous::call(int rank) {
  milliseconds pause{10};
  bool answered = false;  // Somebody has said why this rank does not fit.
  const Deadline name_deadline = Clock::now() + spec_.name_limit;
  for (;;) {
    std::string here;
    try {
      // A failure cannot interrupt connecting; it is seen between two attempts.
      FrameStream stream(Socket::connect(spec_.addresses[static_cast<std::size_t>(rank)],
                                         spec_.congestion,
                                         std::min(deadline_, Clock::now() + connect_limit)));
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (failure_) return;
        calling_[rank] = &stream.socket();
      }
      HandshakeResult result;
      here = stream.socket().local_address();
      try {
        result = client_handshake(stream, self_, rank, deadline_);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex_);
        calling_.erase(rank);
        throw;
      }
      const std::lock_guard<std::mutex> lock(mutex_);
      calling_.erase(rank);
      if (failure_) return;  // It was cut off; as no link, the rank is told the reason anew.
      refusals_.erase(rank);
      if (rank == spec_.topology.coordinator())
        coordinator_time_ = {result.clock.offset_ns, result.clock.epoch_ns, result.clock.error_ns};
      add(std::move(result), std::move(stream));
      return;
    } catch (const UnknownHost& error) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (Clock::now() >= name_deadline) fail(std::current_exception());
      if (std::exchange(refusals_[rank], error.what()) != error.what())
        log(std::string("tries again: ") + error.what());
    } catch (const NetworkError& error) {
      // It is not up yet, or down again: the watching thread ends this at the deadline.
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!answered) refusals_[rank] = error.what();
    } catch (const Mismatch& mismatch) {
      // Whoever answers there has not proved that it is of this run. It may be a stranger at the
      // rank's address, or the rank with another key.
      const std::lock_guard<std::mutex> lock(mutex_);
      if (mismatch.fatal) fail(std::current_exception());
      const std::string reason = without_port(mismatch.what(), here);
      if (!mismatch.fatal && refusals_[rank] != reason)
        log("tries again until it is right: " + reason);
      refusals_[rank] = reason;
      answered = true;
    } catch (const ProtocolError& error) {
      const std::lock_guard<std::mutex> lock(mutex_);
      refusals_[rank] = error.what();
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      fail(std::current_exception());
    }
    std::unique_lock<std::mutex> lock(mutex_);
    if (failure_ || changed_.wait_for(lock, pause, [this] { return failure_ != nullptr; })) return;
    pause = std::min(2 * pause, longest_pause);
  }
}

}  // namespace duplex::net
