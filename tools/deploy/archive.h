// Archives as tar unpacks them (POSIX's ustar), packed by gzip.
#pragma once
#include <string>
#include <vector>

#include "tools/deploy/bundle.h"

namespace duplex::tools {

/// Writes an archive of these files of `folder` to `path`, in their order, and packs it: `path`
/// gets
/// ".gz" behind it. Throws Error if a file cannot be read or has too long a path, if there is no
/// room, and if there is no gzip. Returns the archive's path.
std::string write_archive(const std::string& path, const std::string& folder,
                          const std::vector<BundleFile>& files);

}  // namespace duplex::tools
