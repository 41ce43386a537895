// How a rendezvous ends: what becomes of handshakes, what an error says, and how other ranks are
// told.
#include <algorithm>
#include <string>
#include <utility>

#include "core/clock.h"
#include "net/rendezvous/link_watch.h"
#include "net/rendezvous/refusal.h"
#include "net/rendezvous/rendezvous.h"
#include "net/rendezvous/waiting.h"

namespace duplex::net {
namespace {

using std::chrono::milliseconds;

/// Time that it stays for peers which have not come yet, where another rank has told it the reason
/// and tells others, too.
constexpr milliseconds passed_on{1000};
/// A handshake that is nearly over when its rank fails may take so long more.
constexpr milliseconds last_handshake{1000};
/// A rank whose connection has ended may come once more to say why, if it learned the reason while
/// it shook hands.
constexpr milliseconds last_word_limit{1500};

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

void Rendezvous::reap(std::unique_lock<std::mutex>& lock, bool all) {
  if (all) {
    changed_.wait_for(lock, last_handshake, [this] {
      return std::none_of(pending_.begin(), pending_.end(),
                          [](const PendingPeer& peer) { return peer.accepted && !peer.done; });
    });
    for (PendingPeer& peer : pending_)
      if (!peer.done) peer.cut_off();
  }
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

void Rendezvous::watch_links() {
  try {
    if (!lost_) check_links(links_, waited());
  } catch (const NetworkError&) {
    lost_ = std::current_exception();
    lost_until_ = Clock::now() + last_word_limit;
  } catch (...) {
    told_ = true;
    fail(std::current_exception());
  }
  if (lost_ && Clock::now() >= lost_until_) {
    told_ = true;
    fail(lost_);
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
         waited_in_vain + text;
  for (const auto& [rank, refusal] : refusals_) text += "; last: " + refusal;
  for (const std::string& line : turned_away_) text += "; turned away: " + line;
  return Error(text, Exit::timed_out);
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
  tell_refusal(spec_, reason, peers, listener_, std::min(deadline_, Clock::now() + limit));
}

}  // namespace duplex::net
