// Copies between host and device that run beside the operations.
#pragma once

namespace duplex {

/// A Transfer is a copy under way. Both memories have to live as long as it, or until wait() has
/// returned.
class Transfer {
 public:
  /// Waits, too, so that no copy goes on after its Transfer.
  virtual ~Transfer() = default;
  /// Returns when the copy is done. Any thread may call it.
  virtual void wait() = 0;
};

/// Says how long operations had to wait for copies, in seconds in which the device had nothing else
/// to do.
struct CopyWaits {
  double input = 0.0;    ///< Waits for prefetched memory.
  double weights = 0.0;  ///< Waits for uploads that were started.
};

}  // namespace duplex
