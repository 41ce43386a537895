// The nodefile of a run whose ranks are all on this machine, where the user gives none.
#pragma once
#include <string>

#include "tools/launch/private_folder.h"

namespace duplex::tools {

/// Writes a nodefile of so many ranks at free ports of loopback into a folder of its own, which
/// goes with it. Throws Error if there are no free ports or the file cannot be written.
class LocalNodes {
 public:
  explicit LocalNodes(int ranks);

  const std::string& path() const { return path_; }

 private:
  PrivateFolder folder_;
  std::string path_;
};

}  // namespace duplex::tools
