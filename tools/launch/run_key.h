// A key for one run whose ranks are all on this machine, where other users could join or end it.
#pragma once
#include <string>

#include "tools/launch/private_folder.h"

namespace duplex::tools {

/// Makes a key in a folder of its own, which goes with it. Throws Error if it cannot be made.
class RunKey {
 public:
  RunKey();

  const std::string& path() const { return path_; }

 private:
  PrivateFolder folder_;
  std::string path_;
};

}  // namespace duplex::tools
