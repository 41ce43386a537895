// A key for one run whose ranks are all on this machine, where other users could join or end it.
#pragma once
#include <string>

namespace duplex::tools {

/// Makes a key in a folder that its user alone can enter, and removes both at the end. Throws Error
/// if it cannot be made.
class RunKey {
 public:
  RunKey();
  ~RunKey();
  RunKey(const RunKey&) = delete;
  RunKey& operator=(const RunKey&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string folder_, path_;
};

}  // namespace duplex::tools
