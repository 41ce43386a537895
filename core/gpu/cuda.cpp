#include "core/gpu/cuda.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/error.h"
#include "core/gpu/libraries.h"
#include "core/gpu/library.h"
#include "core/program_path.h"

namespace duplex {
namespace {

/// Returns the path of the library that a test puts in the place of the built one, or null.
const char* other_library() {
  return std::getenv("DUPLEX_CUDNN");
}

/// Returns DUPLEX_CUDNN, else the path beside the program, else the one a folder above it, where
/// test programs find the library.
std::string library_path() {
  if (other_library() != nullptr) return other_library();
  const auto folder = std::filesystem::path(program_file()).parent_path();
  const std::string beside = (folder / cudnn::library_name).string();
  const std::string above = (folder.parent_path() / cudnn::library_name).string();
  return ::access(beside.c_str(), R_OK) != 0 && ::access(above.c_str(), R_OK) == 0 ? above : beside;
}

/// Opens the library, which stays open until the program ends. Throws Error.
void* open_library() {
  const std::string path = library_path();
  if (::access(path.c_str(), R_OK) != 0)
    throw Error("cuda: this build has no " + path + "; make CUDA=1 makes it, or says what it lacks",
                Exit::usage);
  return open_with_needed(path, cuda_folders());
}

template <class Function>
Function* find(const char* name) {
  static void* const library = open_library();
  void* found = ::dlsym(library, name);
  if (found == nullptr) throw Error(std::string("cuda: ") + ::dlerror());
  return reinterpret_cast<Function*>(found);
}

bool has_driver() {
  constexpr std::array<const char*, 3> signs{"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"};
  for (const char* sign : signs)
    if (::access(sign, F_OK) == 0) return true;
  return false;
}

}  // namespace

std::unique_ptr<Device> make_cuda_device(const GpuOptions& options) {
  return std::unique_ptr<Device>(find<cudnn::MakeDevice>(cudnn::make_device_name)(options));
}

int cuda_devices() {
  try {
    return has_driver() || other_library() != nullptr
               ? find<cudnn::CountDevices>(cudnn::count_devices_name)()
               : 0;
  } catch (const Error&) {
    return 0;
  }
}

}  // namespace duplex
