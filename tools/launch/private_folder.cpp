#include "tools/launch/private_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/error.h"

namespace duplex::tools {
namespace fs = std::filesystem;

PrivateFolder::PrivateFolder(const std::string& what) {
  std::error_code error;
  fs::path folder = fs::temp_directory_path(error);
  if (error) folder = "/tmp";
  path_ = folder / ("duplex-run-" + std::string(6, 'X'));  // mkdtemp() replaces these six.
  if (::mkdtemp(path_.data()) == nullptr)
    throw Error("launch: no folder for " + what + " can be made in " + folder.string() + ": " +
                std::generic_category().message(errno));
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace duplex::tools
