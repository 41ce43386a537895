#include "tools/launch/run_key.h"

#include "net/rendezvous/key.h"

namespace duplex::tools {

RunKey::RunKey() : folder_("the run's key"), path_(folder_.path() + "/key") {
  net::create_key(path_);
}

}  // namespace duplex::tools
