// Finds where this program lies, and how it is started again. In a bundle (docs/bundle.md) the C
// library's loader runs the program, so that /proc/self/exe is the loader.
#pragma once
#include <string>

namespace duplex {

/// Returns whether the loader was started by name, and was told to run this program.
bool run_by_loader();

/// Returns the path of the file that holds this program, without symbolic links where the system
/// says it; empty where it does not.
std::string program_file();

/// Returns the path by which this program is started again, by this process or on another machine
/// that has the same folders: in a bundle its starter, which lies a folder above the program, else
/// program_file().
std::string program_path();

}  // namespace duplex
