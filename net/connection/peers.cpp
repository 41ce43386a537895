#include "net/connection/peers.h"

#include <algorithm>
#include <utility>

namespace duplex::net {

Peers::Peers(int rank, int size) : rank_(rank), entries_(static_cast<std::size_t>(size)) {}

void Peers::add(std::unique_ptr<Connection> connection) {
  entries_[index(connection->peer())].connection = connection.get();
  connections_.push_back(std::move(connection));
}

void Peers::take_back(std::unique_ptr<Connection> connection) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = entries_[index(connection->peer())];
  entry.connection = connection.get();
  entry.lost = entry.parted = false;
  returned_.push_back(connection->peer());
  connections_.push_back(std::move(connection));
}

std::vector<int> Peers::returned() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return returned_;
}

std::string Peers::name_of(int rank) const {
  const Connection* to = rank == rank_ ? nullptr : connection(rank);
  return to != nullptr ? to->peer_name() : "rank " + std::to_string(rank);
}

void Peers::part(int rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_[index(rank)].parted = true;
  changed_.notify_all();
}

bool Peers::parted(int rank) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return entries_[index(rank)].parted;
}

Error Peers::left_early(int rank) const {
  return Error(name_of(rank) +
               " ended its training while this rank goes on: give every rank as many batches");
}

Peers::Loss Peers::lose(int rank, std::size_t workers, bool may_wait) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = entries_[index(rank)];
  if (finished_ || entry.lost) return Loss::none;
  const auto lost =
      std::count_if(entries_.begin(), entries_.end(), [](const Entry& each) { return each.lost; });
  const bool last = static_cast<std::size_t>(lost) + 1 == workers;
  if (last && !may_wait) return Loss::nobody_left;
  entry.lost = entry.parted = true;
  changed_.notify_all();
  return last ? Loss::waits : Loss::goes_on;
}

bool Peers::lost(int rank) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return entries_[index(rank)].lost;
}

std::vector<int> Peers::all_lost() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < entries_.size(); ++rank)
    if (entries_[rank].lost) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

void Peers::keep_report(int rank, std::string report) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_[index(rank)].report = std::move(report);
}

std::vector<std::string> Peers::reports() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> reports;
  for (const Entry& entry : entries_) reports.push_back(entry.report);
  return reports;
}

bool Peers::fail(const std::exception_ptr& cause) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failure_ || finished_) return false;
  failure_ = cause;
  changed_.notify_all();
  return true;
}

bool Peers::failed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failure_ != nullptr;
}

void Peers::finish() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  finished_ = true;
}

bool Peers::wait_for_goodbyes(std::chrono::milliseconds at_most) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto parted = [this] {
    return std::count_if(entries_.begin(), entries_.end(),
                         [](const Entry& entry) { return !entry.connection || entry.parted; });
  };
  const auto all = static_cast<std::ptrdiff_t>(entries_.size()), before = parted();
  if (before < all) changed_.wait_for(lock, at_most, [&] { return failure_ || parted() > before; });
  return failure_ || parted() == all;
}

}  // namespace duplex::net
