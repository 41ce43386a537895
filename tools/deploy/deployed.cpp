#include "tools/deploy/deployed.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "core/error.h"
#include "net/crypto/digest.h"

namespace duplex::tools {
namespace fs = std::filesystem;
namespace {

/// So many digits of a digest tell files apart.
constexpr std::size_t digits = 16;

std::string plain(std::string name) {
  for (char& letter : name)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0 && letter != '.' && letter != '_')
      letter = letter == '-' ? '-' : '_';
  return name;
}

}  // namespace

std::string DeployedFile::name() const {
  return digest.substr(0, digits) + "-" + plain(fs::path(path).filename().string());
}

DeployedFile deployed_file(const std::string& path) {
  const auto [digest, bytes] = digest_of(path);
  return {path, digest, bytes};
}

std::string Deployed::run_name(const std::string& logdir) {
  const fs::path path = fs::absolute(logdir).lexically_normal();
  const fs::path last = path.has_filename() ? path : path.parent_path();
  return plain(last.filename().string()) + "-" + net::short_hex(net::sha256(last.string()));
}

Deployed deployed_in(const std::string& flag, const std::string& folder) {
  const bool printable = std::all_of(folder.begin(), folder.end(), [](unsigned char letter) {
    return letter >= 32 && letter != 127;
  });
  if (!printable || folder.empty() || folder[0] != '/')
    throw Error("launch: " + flag + " '" + (printable ? folder : "...") +
                    "' has to be a whole path without line ends, such as /tmp/duplex",
                Exit::usage);
  fs::path path = fs::path(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (path == path.root_path())
    throw Error("launch: " + flag + " needs a folder of its own, such as /tmp/duplex", Exit::usage);
  return {path.string()};
}

}  // namespace duplex::tools
