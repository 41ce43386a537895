// Copies between host and device that run beside the operations.
#pragma once

namespace duplex {

/// A copy under way. Both memories have to live as long as it, or until wait() has returned.
class Transfer {
 public:
  /// Waits, too: what goes does not leave a copy behind.
  virtual ~Transfer() = default;
  /// Returns when it is done. From any thread.
  virtual void wait() = 0;
};

/// How long operations had to wait for copies, in seconds: the device had nothing else to do.
struct CopyWaits {
  double input = 0.0;    ///< For prefetched memory.
  double weights = 0.0;  ///< For uploads that were started.
};

}  // namespace duplex
