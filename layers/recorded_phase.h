// A network's whole forward or backward, as its device has recorded it.
#pragma once
#include <functional>
#include <memory>

#include "core/device.h"

namespace duplex {

class RecordedPhase {
 public:
  /// Returns the phase's recording, for the caller to run, and makes it if there is none of use.
  /// `prepare` gives the operations what differs from run to run, and has been called then. `work`
  /// asks for the operations one by one. Returns null where the caller is to call it: the first
  /// time, and where the device records nothing.
  Recording* get(Device& device, const std::function<void()>& prepare,
                 const std::function<void()>& work);
  /// The phase is another one from now on.
  void forget() { *this = {}; }

 private:
  std::unique_ptr<Recording> recording_;
  bool has_run_ = false;
  int recorded_ = 0;  ///< How often it was recorded, or was to be.
};

}  // namespace duplex
