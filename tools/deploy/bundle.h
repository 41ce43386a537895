// The bundle that launch --deploy puts onto machines: an unpacked folder duplex-VERSION, of which
// MANIFEST names every file with its digest (docs/bundle.md).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/launch/private_folder.h"

namespace duplex::tools {

struct BundleFile {
  std::string path;    ///< From the bundle's folder on.
  std::string digest;  ///< SHA-256, in hexadecimal.
  std::uint64_t bytes = 0;
  bool runs = false;  ///< Its owner may run it.
};

class Bundle {
 public:
  /// Opens the one to deploy: `asked`, an archive or a folder; where that is empty, the folder that
  /// this program runs from, or the archive of this version that `make bundle` has left beside this
  /// build. Checks every file's digest. Throws Error if there is none, if a file is missing or
  /// differs, and if it is not of this program's version and commit.
  static Bundle open(const std::string& asked);

  const std::string& folder() const { return folder_; }  ///< On this machine.
  /// MANIFEST first, then what it names.
  const std::vector<BundleFile>& files() const { return files_; }

 private:
  Bundle() = default;
  void unpack(const std::string& archive);
  void read_manifest(const std::string& source);
  void require_same_version(const std::string& source) const;

  std::string folder_;
  std::vector<BundleFile> files_;
  std::unique_ptr<PrivateFolder> unpacked_;  ///< An archive is unpacked there.
};

/// "duplex-VERSION": the name of a bundle's folder.
std::string bundle_name();

/// The SHA-256 of a file, in hexadecimal, and its size. Throws Error that names the file, and where
/// SIGINT or SIGTERM has been noted (note_interrupts()).
std::pair<std::string, std::uint64_t> digest_of(const std::string& path);

}  // namespace duplex::tools
