#include "tools/launch/run_key.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "net/rendezvous/key.h"

namespace duplex::tools {
namespace fs = std::filesystem;

RunKey::RunKey() {
  std::error_code error;
  fs::path folder = fs::temp_directory_path(error);
  if (error) folder = "/tmp";
  folder_ = folder / ("duplex-run-" + std::string(6, 'X'));  // mkdtemp() replaces these six.
  if (::mkdtemp(folder_.data()) == nullptr)
    throw Error("launch: no folder for the run's key can be made in " + folder.string() + ": " +
                std::generic_category().message(errno));
  path_ = folder_ + "/key";
  try {
    net::create_key(path_);
  } catch (...) {
    fs::remove_all(folder_, error);
    throw;
  }
}

RunKey::~RunKey() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace duplex::tools
