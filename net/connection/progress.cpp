#include "net/connection/progress.h"

#include <algorithm>
#include <cstdio>

namespace duplex::net {
namespace {

Deadline time_of(std::int64_t ns) {
  return Deadline(std::chrono::nanoseconds(ns));
}

}  // namespace

std::string seconds_text(Clock::duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(time).count());
  return text;
}

Progress::Progress(int rank, int size) : rank_(rank), entries_(static_cast<std::size_t>(size)) {}

void Progress::made() {
  ++count_;
  moved(rank_);
}

bool Progress::heard(int rank, std::uint64_t count) {
  Entry& entry = entries_[static_cast<std::size_t>(rank)];
  if (entry.count.exchange(count) == count) return false;
  moved(rank);
  return true;
}

void Progress::moved(int rank) {
  entries_[static_cast<std::size_t>(rank)].last_ns = clock_ns();
}

Deadline Progress::last(int rank) const {
  return time_of(entries_[static_cast<std::size_t>(rank)].last_ns);
}

std::string Progress::text(int rank) const {
  if (entries_[static_cast<std::size_t>(rank)].last_ns == 0) return "it has not got on yet";
  return "it got on " + seconds_text(Clock::now() - last(rank)) + " ago";
}

Deadline Progress::last_of_others() const {
  std::int64_t last = 0;
  for (std::size_t rank = 0; rank < entries_.size(); ++rank)
    if (static_cast<int>(rank) != rank_)
      last = std::max<std::int64_t>(last, entries_[rank].last_ns);
  return time_of(last);
}

}  // namespace duplex::net
