// Keeps track of which ranks make progress. A rank may take longer than the timeout for a test, and
// its peers wait for it as long as its heartbeats report progress.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.h"

namespace duplex::net {

/// "3.2 s".
std::string seconds_text(Clock::duration time);

/// Any thread may call it.
class Progress {
 public:
  /// `rank` is this rank, of `size`.
  Progress(int rank, int size);

  /// This rank has got on.
  void made();
  /// Returns the number that heartbeats tell: it grows whenever this rank gets on.
  std::uint64_t count() const { return count_; }
  /// A heartbeat of that rank has told this number. Returns whether the rank has got on since its
  /// last one.
  bool heard(int rank, std::uint64_t count);
  /// That rank has sent a gradient or weights.
  void moved(int rank);

  /// Returns when that rank got on last, as this one has heard; the clock's beginning if never.
  Deadline last(int rank) const;
  /// "it got on 3.2 s ago": what is known of a rank that is waited for.
  std::string text(int rank) const;
  /// Returns when any other rank got on last.
  Deadline last_of_others() const;

 private:
  struct Entry {
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::int64_t> last_ns{0};  ///< By clock_ns().
  };

  const int rank_;
  std::atomic<std::uint64_t> count_{0};
  std::vector<Entry> entries_;  ///< By rank.
};

}  // namespace duplex::net
