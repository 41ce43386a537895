#include "tools/launch/local_nodes.h"

#include <vector>

#include "core/files/output_file.h"
#include "net/wire/address.h"
#include "net/wire/listener.h"

namespace duplex::tools {

LocalNodes::LocalNodes(int ranks) : folder_("the nodefile"), path_(folder_.path() + "/nodes") {
  // All are open at the same time, so that no two have the same port.
  std::vector<net::Listener> listeners;
  std::string lines;
  for (int rank = 0; rank < ranks; ++rank) {
    listeners.push_back(net::Listener::open({"127.0.0.1", 0}));
    lines += listeners.back().address() + "\n";
  }
  OutputFile file(path_);
  file.write(lines);
  file.commit();
}

}  // namespace duplex::tools
