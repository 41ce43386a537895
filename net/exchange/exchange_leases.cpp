// How an asynchronous run with a central server goes on without a worker, and how that comes back.
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "net/exchange/exchange.h"
#include "net/exchange/lost_ranks.h"
#include "net/rendezvous/resume.h"

namespace duplex::net {

// ---- On a worker.

std::optional<Lease> ParameterExchange::next_lease(std::uint64_t total) {
  if (!takes_leases() || has_all_leases_) return std::nullopt;
  await_all();
  ending_ = true;
  leases_.open();
  peers_.connection(topology_.server)->done(total);
  const Deadline begin = Clock::now();
  std::optional<Lease> lease;
  while (!(lease = leases_.take(look_every)) && !peers_.failed()) {
    ledger_.flush();
    if (peers_.parted(topology_.server))
      fail(std::make_exception_ptr(peers_.left_early(topology_.server)));
    else if (is_overdue(begin))
      fail(overdue(topology_.server, "the run's end"));
    else if (spec_.while_ending)
      spec_.while_ending();
  }
  peers_.check();
  ending_ = false;
  if (lease->steps.count() > 0) return lease;
  has_all_leases_ = true;
  return std::nullopt;
}

/// The weights that follow an empty lease are the last ones. The training thread waits meanwhile.
void ParameterExchange::hear_lease(const Notice& notice) {
  if (!takes_leases() || !leases_.is_open()) throw ProtocolError("none is waited for");
  const Lease lease{static_cast<int>(notice.number), {notice.value, notice.value + notice.count}};
  const bool known = notice.number < topology_.workers().size() && lease.steps.end >= notice.value;
  if (!known) throw ProtocolError("there are no such batches");
  if (notice.count == 0) incoming_.expect_all(step_ + 1);
  if (!leases_.put(lease)) throw ProtocolError("another is there");
}

std::vector<int> ParameterExchange::lost() const {
  if (!takes_leases()) return peers_.all_lost();
  const std::string report = peers_.reports()[static_cast<std::size_t>(topology_.server)];
  return report.empty() ? std::vector<int>() : decode_ranks(report, topology_.size);
}

// ---- On the server.

/// A worker is lost: the others go on, and train what it has left. Where it was the last one, and
/// did not say why it ends, it may come back.
void ParameterExchange::lose(int peer, const std::exception_ptr& cause) {
  const AbortReason reason = reason_of(cause);
  const bool says_why = reason.code == Exit::failed || reason.code == Exit::usage;
  const bool may_wait = door_ && !says_why && !server_->over();
  Peers::Loss loss = Peers::Loss::none;
  {
    // A thread that sees that all are lost sees since when, too.
    const std::lock_guard<std::mutex> lock(lost_mutex_);
    loss = peers_.lose(peer, topology_.workers().size(), may_wait);
    if (loss == Peers::Loss::none) return;
    lost_last_ = cause;
    lost_since_ = Clock::now();
  }
  if (loss == Peers::Loss::nobody_left) {
    fail(cause);
    return;
  }
  spec_.warn((loss == Peers::Loss::waits ? "waits for a worker to come back, since it has lost "
                                         : "going on without ") +
             peers_.name_of(peer) + ": " + reason.text);
  peers_.connection(peer)->drop();
  server_->lose(peer);
}

/// Waits until all batches are done.
void ParameterExchange::wait_until_over() {
  while (!server_->wait_until_over(look_every)) {
    peers_.check();
    ledger_.flush();
    mind_turns();
    name_stragglers();
    if (spec_.while_serving) spec_.while_serving();
    if (peers_.all_lost().size() < topology_.workers().size()) continue;
    std::unique_lock<std::mutex> lock(lost_mutex_);
    if (Clock::now() - lost_since_ < spec_.timeout) continue;
    const std::exception_ptr cause = lost_last_;
    lock.unlock();
    fail(cause);
  }
}

/// The doorkeeper's thread: takes lost workers back, one after the other.
void ParameterExchange::watch_door() {
  try {
    while (auto link = door_->next([this](int rank) { return server_->is_lost(rank); },
                                   [this] { return door_closes_ || peers_.failed(); }))
      take_back(std::move(*link));
  } catch (...) {
    spec_.warn("takes no lost worker back any more: " + reason_of(std::current_exception()).text);
  }
}

void ParameterExchange::take_back(Link link) {
  const int rank = link.rank;
  const std::string name = link.peer;
  // Its threads may still be at what they received.
  peers_.connection(rank)->stop();
  peers_.connection(rank)->release();
  const std::optional<ParameterServer::Return> back = server_->come_back(rank);
  try {
    ResumePoint point;
    point.samples = static_cast<std::uint64_t>(time_.epoch_ns);
    point.ranks = static_cast<std::uint32_t>(topology_.size);
    point.late = true;
    point.positions.resize(topology_.workers().size());
    point.ends.resize(point.positions.size(), ResumePoint::no_end);
    const auto worker = static_cast<std::size_t>(topology_.worker_number(rank));
    if (back) {
      point.steps = back->checkpoint;
      point.positions[worker] = back->steps.first;
      point.ends[worker] = back->steps.end;
    }
    answer_late(link, std::move(point), back ? "" : "the run that it comes back to is over",
                Clock::now() + spec_.timeout);
  } catch (const Error& error) {
    spec_.warn(name + " came back, and is lost again: " + error.what());
    if (back) server_->lose(rank);
    return;
  }
  if (!back) return;
  if (spec_.log)
    spec_.log(name + " is back, and goes on after " + std::to_string(back->steps.first) + " steps");
  progress_.moved(rank);
  std::unique_ptr<Connection> connection = connection_to(std::move(link));
  Connection& started = *connection;
  peers_.take_back(std::move(connection));
  for (const CheckpointCall& call : server_->owed_by(rank))
    started.tell(FrameKind::checkpoint, call.steps, static_cast<std::uint32_t>(call.signal));
  for (const std::uint64_t steps : calls_.unwritten())
    started.tell(FrameKind::checkpoint, steps, not_written_mark);
  server_->begin_again(rank, back->steps.first);
  started.start();
}

void ParameterExchange::close_door() {
  door_closes_ = true;
  if (doorkeeper_.joinable()) doorkeeper_.join();
}

}  // namespace duplex::net
