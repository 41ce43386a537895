// The folder in which processes leave notes on a GPU for those that come after them.
#pragma once
#include <string>

namespace duplex::cudnn {

/// Returns the folder: DUPLEX_CACHE, else duplex in XDG_CACHE_HOME, else .cache/duplex in the
/// user's home. It is empty where DUPLEX_CACHE is "off" and where there is no home.
std::string cache_folder();

/// Returns the path of a file in such a folder, which is made, for what `name` names; "" where
/// there is no folder.
std::string cache_file(const std::string& folder, const std::string& name);

}  // namespace duplex::cudnn
