// The signals by which users and batch systems ask a training to end, or for a checkpoint.
#pragma once

namespace duplex::tools {

/// Catches SIGINT, SIGTERM and SIGUSR1 as long as it lives; there may be one at a time. A second
/// SIGINT or SIGTERM ends the program at once.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Returns the SIGINT or SIGTERM that has come, or 0.
  static int stop();
  /// Returns whether SIGUSR1 has come since the last call.
  static bool take_checkpoint_request();
};

/// "SIGTERM" for one of those.
const char* signal_name(int signal);

}  // namespace duplex::tools
