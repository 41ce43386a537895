// Names the paths of all that launch --deploy puts onto machines.
#pragma once
#include <cstdint>
#include <string>

#include "tools/deploy/bundle.h"
#include "tools/launch/hosts.h"

namespace duplex::tools {

/// A file of this machine that others get.
struct DeployedFile {
  std::string path;    ///< Here.
  std::string digest;  ///< SHA-256, in hexadecimal.
  std::uint64_t bytes = 0;

  /// Its name there: the beginning of its digest and its own name, of which letters that a shell
  /// might not take as they are become "_". So files of the same name do not meet.
  std::string name() const;
};

/// Reads the file to know its digest. Throws Error that names it.
DeployedFile deployed_file(const std::string& path);

/// The folder of launch --deploy, which is the same on all machines.
struct Deployed {
  std::string folder;  ///< An absolute path.

  /// Returns where machines have the program.
  Place place() const { return {folder + "/" + bundle_name() + "/duplex", folder}; }
  std::string path_of(const DeployedFile& file) const { return folder + "/files/" + file.name(); }
  /// The name of a run directory there; `logdir` is the one here.
  static std::string run_name(const std::string& logdir);
  std::string run_path(const std::string& logdir) const {
    return folder + "/runs/" + run_name(logdir);
  }
};

/// Takes what --deploy was given. Throws Error(Exit::usage) unless it is an absolute path of
/// printable letters, below the root folder.
Deployed deployed_in(const std::string& flag, const std::string& folder);

}  // namespace duplex::tools
