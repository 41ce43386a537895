// Opens a library that needs CUDA's, which may lie in folders that the loader does not search.
#pragma once
#include <string>
#include <vector>

namespace duplex {

/// Returns the folders, for a program that was moved to another machine: CUDA_HOME, CUDA_PATH,
/// /usr/local/cuda, and those of the Python packages of NVIDIA (in a virtual environment, of the
/// user, or of the system), which PyTorch brings along.
std::vector<std::string> cuda_folders();

/// Opens a library by dlopen(), which stays open until the program ends. Where the loader misses a
/// library that it needs, that one is opened first, from the first of the folders that has it.
/// Throws Error, which names the library that is missing.
void* open_with_needed(const std::string& path, const std::vector<std::string>& folders);

}  // namespace duplex
