// The ranks that this one is connected to, how far each is with the run, and what ended the run
// early, if anything did.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/connection/connection.h"

namespace duplex::net {

class Peers {
 public:
  /// `rank` is this rank, of `size`.
  Peers(int rank, int size);

  /// Call it before threads start; from then on a connection is only read, until its rank is lost.
  void add(std::unique_ptr<Connection> connection);
  /// A lost rank is back, by that connection. The one before stays as it is, stopped.
  void take_back(std::unique_ptr<Connection> connection);
  /// Null if this rank has no connection to that one.
  Connection* connection(int rank) const {
    return entries_[static_cast<std::size_t>(rank)].connection;
  }
  /// Calls `visit` with every connection in order of rank, those to lost ranks included.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Entry& entry : entries_)
      if (Connection* connection = entry.connection) visit(*connection);
  }
  /// "rank 2 (10.0.0.3:4711)" for a peer, "rank 0" for this rank.
  std::string name_of(int rank) const;

  /// The peer has said goodbye.
  void part(int rank);
  bool parted(int rank) const;
  /// The error of a rank that has parted while this one goes on.
  Error left_early(int rank) const;
  enum class Loss { none, goes_on, waits, nobody_left };
  /// The peer is lost and the run goes on without it; it counts as parted, too. Of the last of
  /// `workers` ranks that is so only if the run `may_wait` for one to come back: else nobody would
  /// be left. None: it was lost before, or the run is over.
  Loss lose(int rank, std::size_t workers, bool may_wait);
  bool lost(int rank) const;
  std::vector<int> all_lost() const;
  /// Ranks that were lost and came back, each as often as it did.
  std::vector<int> returned() const;
  void keep_report(int rank, std::string report);
  std::vector<std::string> reports() const;  ///< By rank.

  /// Ends the run early. The first cause counts: returns false if there was one, or the run is
  /// over.
  bool fail(const std::exception_ptr& cause);
  bool failed() const;
  /// Throws the cause if there is one.
  void check() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }
  /// Ends the run as it should end. Throws the cause if it has failed before.
  void finish();

  /// Waits until all peers have parted, the run has failed, one more peer has parted, or `at_most`
  /// has passed; returns false in these last cases.
  bool wait_for_goodbyes(std::chrono::milliseconds at_most);

 private:
  struct Entry {
    std::atomic<Connection*> connection{nullptr};
    bool parted = false, lost = false;
    std::string report;
  };
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  const int rank_;
  /// Guards all below but the connections themselves. Any thread takes it, and takes no other lock
  /// meanwhile.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Entry> entries_;  ///< By rank.
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<int> returned_;
  std::exception_ptr failure_;
  bool finished_ = false;
};

}  // namespace duplex::net
