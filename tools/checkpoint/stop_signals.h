// The signals by which users and batch systems ask a training to end, or for a checkpoint.
#pragma once

namespace duplex::tools {

/// Catches SIGINT and SIGTERM as long as it lives, and from its beginning on SIGUSR1, which
/// catch_checkpoint_requests() may do before; there may be one at a time. A second SIGINT or
/// SIGTERM ends the program at once.
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
  /// SIGUSR1 ends the program no more: it waits for the training to begin, and means nothing after
  /// its end.
  static void catch_checkpoint_requests();
};

/// "SIGTERM" for one of those.
const char* signal_name(int signal);

}  // namespace duplex::tools
