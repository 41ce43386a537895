// The clock of a replay: layers end at deadlines, so that late wake-ups do not add up.
#pragma once
#include <cstdint>
#include <utility>

namespace duplex::tools {

class ReplayClock {
 public:
  ReplayClock();

  /// Waits as long as a layer computes. Returns when it began and ended by the profile, by
  /// clock_ns().
  std::pair<std::int64_t, std::int64_t> run(double seconds);
  /// The next layer begins now.
  void begin();
  /// The rank may have waited for others since the last layer: then the next one begins now.
  void end_wait();

 private:
  std::int64_t deadline_ = 0;  ///< The time at which the last layer ended by the profile.
  std::int64_t returned_ = 0;  ///< When run() returned.
};

}  // namespace duplex::tools
