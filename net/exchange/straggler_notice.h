// Tells the user whom a run waits for, while it waits.
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "core/clock.h"

namespace duplex::net {

/// One thread uses it.
class StragglerNotice {
 public:
  /// `log` may be empty. A wait is worth a line when it has taken a quarter of the timeout, at most
  /// `patience`.
  StragglerNotice(std::chrono::milliseconds timeout, std::function<void(const std::string&)> log);

  static constexpr std::chrono::seconds patience{15}, pause{60};

  /// Returns whether a wait of so long is to be told now: at most one in a minute is.
  bool due(Clock::duration waited) const;
  /// Returns how long a wait is before it is worth a line.
  Clock::duration least() const { return least_; }
  void tell(const std::string& line);

 private:
  const Clock::duration least_;
  const std::function<void(const std::string&)> log_;
  Deadline last_;  ///< When the last line was told.
};

}  // namespace duplex::net
