#include "tools/text/host_name.h"

#include <unistd.h>

#include <climits>

namespace duplex::tools {

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace duplex::tools
